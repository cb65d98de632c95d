#include "comm/comm.hpp"

#include "base/check.hpp"
#include "base/fork.hpp"
#include "comm/progress.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

namespace zerocomm::comm {
namespace {

// How often a sleeping call looks for work of other groups' engines, whose bells it does not hear.
constexpr std::int64_t kForeignPollNs = 10'000'000;
constexpr int kSpinsPerLook = 64;

}  // namespace

Comm::Comm(std::shared_ptr<transport::ThreadGroup> group, std::int32_t rank, const Settings& settings)
    : group_(std::move(group)),
      rank_(rank),
      ranks_(group_->control().ranks()),
      settings_(settings),
      fork_generation_(fork_generation()) {}

bool Comm::dead() const noexcept { return control().header().error.state.load() == 2; }

zc_status Comm::check_process() const noexcept {
  if (fork_generation() == fork_generation_) return ZC_OK;
  return fail(ZC_FORKED, "rank %d: this communicator belongs to the parent of this process", rank_);
}

zc_status Comm::check_alive() const noexcept {
  ZC_TRY(check_process());
  if (!dead()) return ZC_OK;
  const auto& error = control().header().error;
  return record_error(static_cast<zc_status>(error.status), error.text);
}

zc_status Comm::record_first_error(zc_status status, const char* text) const noexcept {
  auto& error = control().header().error;
  std::uint32_t none = 0;
  if (error.state.compare_exchange_strong(none, 1)) {
    error.status = status;
    error.rank = rank_;
    std::snprintf(error.text, sizeof error.text, "%s", text);
    error.state.store(2);
    control().ring_all();
  }
  while (error.state.load() != 2) std::this_thread::yield();  // the other rank is between two stores
  return record_error(static_cast<zc_status>(error.status), error.text);
}

zc_status Comm::time_out(const WaitSpec& spec) const noexcept {
  std::int32_t culprit = ZC_NONE;
  char who[768] = "";
  if (spec.blame != nullptr) (*spec.blame)(&culprit, who, sizeof who);
  const std::int64_t deadline_ns = spec.deadline_ns != 0 ? spec.deadline_ns : settings_.deadline_ns;
  char text[1024];
  std::snprintf(text, sizeof text, "rank %d waited %.3f s in %s: %s", rank_, static_cast<double>(deadline_ns) * 1e-9,
                spec.label != nullptr ? spec.label : "a wait",
                who[0] != '\0' ? who : "what it waits for did not happen");
  return record_first_error(ZC_TIMEOUT, text);
}

zc_status Comm::wait(FunctionRef<int()> ready, const WaitSpec& spec) const noexcept {
  ZC_TRY(check_process());
  Bell& bell = own_block().bell;
  Deadline deadline = Deadline::after(spec.deadline_ns != 0 ? spec.deadline_ns : settings_.deadline_ns);
  const std::int64_t spin_end_ns = settings_.spin_ns > 0 ? now_ns() + settings_.spin_ns : 0;
  bool asleep = false;
  zc_status result = ZC_OK;
  for (;;) {
    // The bell is read before the condition: what happens after this line ends the sleep below.
    const std::uint32_t seen = bell.count.load();
    if (const int state = ready(); state != 0) {
      result = state > 0 ? ZC_OK : static_cast<zc_status>(-state);
      break;
    }
    const bool foreign = run_progress(group_.get());
    if (const int state = ready(); state != 0) {
      result = state > 0 ? ZC_OK : static_cast<zc_status>(-state);
      break;
    }
    if (dead()) {
      result = check_alive();
      break;
    }
    if (deadline.is_poll() && !spec.announced) {
      result = fail(ZC_AGAIN, "rank %d: %s is not ready", rank_, spec.label != nullptr ? spec.label : "the condition");
      break;
    }
    const std::int64_t left_ns = deadline.left_ns();  // 0 for a poll
    if (left_ns == 0) {
      if (const std::int64_t more_ns = spec.extend_ns != nullptr ? (*spec.extend_ns)() : 0; more_ns > 0) {
        deadline = Deadline::after(more_ns);
        continue;
      }
      result = time_out(spec);
      break;
    }
    if (!asleep && spin_end_ns > now_ns()) {
      for (int i = 0; i < kSpinsPerLook; ++i) pause();
      continue;
    }
    if (!asleep) {
      asleep = true;
      bell.sleepers.fetch_add(1);
      continue;  // look once more, now that others know they have to ring
    }
    Counters::add(counters_.sleeps, 1);
    sleep_on(bell, seen, foreign ? std::min(left_ns, kForeignPollNs) : left_ns);
  }
  if (asleep) bell.sleepers.fetch_sub(1);
  return result;
}

void Comm::wait_for_readers() const noexcept {
  for (std::int32_t rank = 0; rank < ranks_; ++rank)
    while (control().rank(rank).busy.load() != 0) std::this_thread::yield();
}

void Comm::count_moved(std::int32_t peer, std::size_t bytes, zc_traffic traffic) const noexcept {
  Counters::add(counters_.moved_bytes[traffic_index(traffic)][group_->link(rank_, peer)], bytes);
}

void Comm::copy(void* destination, const void* source, std::size_t bytes, std::int32_t peer,
                zc_traffic traffic) const noexcept {
  if (bytes == 0) return;
  std::memcpy(destination, source, bytes);
  count_moved(peer, bytes, traffic);
}

std::shared_ptr<Pages> Comm::find_memory(const void* address, std::size_t bytes) noexcept {
  const std::lock_guard lock(memory_mutex);
  auto after = memory.upper_bound(const_cast<void*>(address));
  if (after == memory.begin()) return nullptr;
  const std::shared_ptr<Pages>& pages = std::prev(after)->second;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - pages->address());
  return offset <= pages->bytes() && bytes <= pages->bytes() - offset ? pages : nullptr;
}

void Comm::detach() const noexcept {
  wait_for_readers();
  own_block().detached.store(1);
  control().ring_all();
}

}  // namespace zerocomm::comm
