#include "comm/comm.hpp"

#include "base/check.hpp"
#include "base/fork.hpp"
#include "comm/call.hpp"
#include "comm/fault.hpp"
#include "comm/progress.hpp"
#include "comm/requests.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

namespace zerocomm::comm {
namespace {

// How often a sleeping call looks for work of other groups' engines, whose bells it does not hear.
constexpr std::int64_t kForeignPollNs = 10'000'000;
// Longest sleep: whoever sleeps longer than it asked for was stopped, and its deadline moves by that much.
constexpr std::int64_t kSliceNs = 250'000'000;
constexpr std::int64_t kStoppedNs = 100'000'000;
constexpr int kSpinsPerLook = 64;
// A process that does not run for that long is stopped, or nearly so.
constexpr std::int64_t kSilentNs = 1'000'000'000;
// Longest wait for readers that are alive and do not go on.
constexpr std::int64_t kReadersNs = 1'000'000'000;

double seconds(std::int64_t duration_ns) { return static_cast<double>(duration_ns) * 1e-9; }

}  // namespace

Comm::Comm(std::shared_ptr<transport::Group> group, std::int32_t rank, const Settings& settings)
    : source_offsets(static_cast<std::size_t>(group->control().ranks())),
      group_(std::move(group)),
      rank_(rank),
      ranks_(group_->control().ranks()),
      settings_(settings),
      fork_generation_(fork_generation()) {}

zc_status Comm::check_process() const noexcept {
  if (fork_generation() == fork_generation_) return ZC_OK;
  return fail(ZC_FORKED, "rank %d: this communicator belongs to the parent of this process", rank_);
}

zc_status Comm::check_alive() const noexcept {
  ZC_TRY(check_process());
  return dead() ? first_error() : ZC_OK;
}

// The record that stands, as this thread's last error.
zc_status Comm::first_error() const noexcept {
  const std::uint32_t first = control().header().first_error.load();
  const auto rank = static_cast<std::int32_t>((first & ~transport::ControlHeader::kAborted) - 1);
  if ((first & transport::ControlHeader::kAborted) != 0) {
    char who[48];
    describe_rank(rank, who, sizeof who);
    return fail(ZC_ABORTED, "%s called zc_comm_abort", who);
  }
  const transport::ErrorRecord& error = control().rank(rank).error;
  return record_error(static_cast<zc_status>(error.status), error.text);
}

zc_status Comm::record_first_error(zc_status status, const char* text) const noexcept {
  {
    const std::lock_guard lock(record_mutex_);
    if (auto& first = control().header().first_error; first.load() == 0) {
      transport::ErrorRecord& error = own_block().error;
      error.status = status;
      std::snprintf(error.text, sizeof error.text, "%s", text);
      step("error written");
      std::uint32_t none = 0;
      first.compare_exchange_strong(none, static_cast<std::uint32_t>(rank_ + 1));
      step("error recorded");
    }
  }
  control().ring_all();
  return first_error();
}

void Comm::abort() const noexcept {
  std::uint32_t none = 0;
  control().header().first_error.compare_exchange_strong(
      none, static_cast<std::uint32_t>(rank_ + 1) | transport::ControlHeader::kAborted);
  control().ring_all();
}

void Comm::describe_rank(std::int32_t rank, char* text, std::size_t capacity_bytes) const noexcept {
  const std::int32_t pid = control().rank(rank).liveness.pid;
  char process[24] = "", parent[32] = "";
  if (pid != 0) std::snprintf(process, sizeof process, "pid %d", pid);
  if (!parent_ranks.empty())
    std::snprintf(parent, sizeof parent, "%sparent's rank %d", pid != 0 ? "; " : "",
                  parent_ranks[static_cast<std::size_t>(rank)]);
  if (pid != 0 || !parent_ranks.empty())
    std::snprintf(text, capacity_bytes, "rank %d (%s%s)", rank, process, parent);
  else
    std::snprintf(text, capacity_bytes, "rank %d", rank);
}

void Comm::describe_last(std::int32_t rank, char* text, std::size_t capacity_bytes) const noexcept {
  const transport::FlightRing& ring = control().flight(rank);
  transport::FlightRecord record;
  std::uint64_t number = ring.last();
  while (number > 0 && !ring.read(number, &record)) --number;  // the last one may be half written for ever
  if (number == 0) {
    std::snprintf(text, capacity_bytes, "none");
    return;
  }
  const double began = seconds(now_ns() - record.begin_ns);
  if (record.kind == 0)
    std::snprintf(text, capacity_bytes, "%.16s %llu, begun %.3f s ago", record.label,
                  static_cast<unsigned long long>(record.call), began);
  else
    std::snprintf(text, capacity_bytes, "%s %llu, %s, begun %.3f s ago%s",
                  record.is_keyed() ? format("tag %lld, turn", static_cast<long long>(record.tag())).c_str() : "call",
                  static_cast<unsigned long long>(record.call), describe_brief(record.brief).c_str(), began,
                  record.end_ns == 0       ? " and not ended"
                  : record.status == ZC_OK ? " and done"
                                           : " and failed");
}

void Comm::note(const char* label, std::uint64_t value) const noexcept {
  transport::FlightRecord record;
  record.begin_ns = record.end_ns = now_ns();
  record.call = value;
  std::memcpy(record.label, label, strnlen(label, sizeof record.label));
  flight().begin(record);
}

void Comm::stand(std::shared_ptr<transport::Keeper> keeper) {
  own_block().liveness.pid = static_cast<std::int32_t>(getpid());
  keeper_id_ = keeper->stand_for(control(), rank_, [this](std::int32_t rank) { record_lost(rank); });
  keeper_ = std::move(keeper);
}

Comm::~Comm() {
  if (keeper_ && fork_generation() == fork_generation_) keeper_->leave(keeper_id_);
}

void Comm::record_lost(std::int32_t rank) const noexcept {
  char who[48], last[256], text[512];
  describe_rank(rank, who, sizeof who);
  describe_last(rank, last, sizeof last);
  std::snprintf(text, sizeof text, "%s ended without destroying its communicator; its last operation: %s", who, last);
  record_first_error(ZC_PEER_LOST, text);
}

zc_status Comm::time_out(const WaitSpec& spec) const noexcept {
  std::int32_t culprit = ZC_NONE;
  char who[768] = "";
  if (spec.blame != nullptr) (*spec.blame)(&culprit, who, sizeof who);
  char silent[96] = "";
  if (culprit >= 0 && culprit < ranks_) {
    if (control().rank(culprit).detached.load() != 0 && std::strstr(who, "destroyed") == nullptr)
      std::snprintf(silent, sizeof silent, "; rank %d has destroyed its communicator", culprit);
    if (const std::int64_t silent_ns = group_->silent_ns(culprit); silent_ns > kSilentNs)
      std::snprintf(silent, sizeof silent, "; the process of rank %d is stopped: it has not run for %.1f s", culprit,
                    seconds(silent_ns));
  }
  const std::int64_t deadline_ns = spec.told_ns != 0       ? spec.told_ns
                                   : spec.deadline_ns != 0 ? spec.deadline_ns
                                                           : settings_.deadline_ns;
  char text[1024];
  std::snprintf(text, sizeof text, "rank %d waited %.3f s in %s: %s%s", rank_,
                seconds(std::max<std::int64_t>(deadline_ns, 0)), spec.label != nullptr ? spec.label : "a wait",
                who[0] != '\0' ? who : "what it waits for did not happen", silent);
  return record_first_error(ZC_TIMEOUT, text);
}

zc_status Comm::wait(FunctionRef<int()> ready, const WaitSpec& spec) const noexcept {
  ZC_TRY(check_process());
  Bell& bell = own_block().bell;
  Deadline deadline = Deadline::after(spec.deadline_ns != 0 ? spec.deadline_ns : settings_.deadline_ns);
  const std::int64_t spin_end_ns = now_ns() + settings_.spin_ns, yield_end_ns = spin_end_ns + settings_.yield_ns;
  bool asleep = false;
  zc_status result = ZC_OK;
  // The time in which this process was stopped does not count for its deadline: what has passed since the last time
  // here, but for what it wanted to sleep.
  std::int64_t running_ns = now_ns();
  const auto forgive = [&](std::int64_t asleep_ns) {
    const std::int64_t now = now_ns(), late_ns = now - running_ns - asleep_ns;
    if (late_ns > kStoppedNs) deadline.extend(late_ns);
    running_ns = now;
  };
  for (;;) {
    // The bell is read before the condition: what happens after this line ends the sleep below.
    const std::uint32_t seen = bell.count.load();
    if (const int state = ready(); state != 0) {
      result = state > 0 ? ZC_OK : static_cast<zc_status>(-state);
      break;
    }
    const Progress progress = run_progress(&control().header());
    if (const int state = ready(); state != 0) {
      result = state > 0 ? ZC_OK : static_cast<zc_status>(-state);
      break;
    }
    if (dead()) {
      result = first_error();
      break;
    }
    if (deadline.is_poll() && !spec.announced) {
      result = fail(ZC_AGAIN, "rank %d: %s is not ready", rank_, spec.label != nullptr ? spec.label : "the condition");
      break;
    }
    forgive(0);
    const std::int64_t left_ns = deadline.left_ns();  // 0 for a poll
    if (left_ns == 0) {
      if (const std::int64_t more_ns = spec.extend_ns != nullptr ? (*spec.extend_ns)() : 0; more_ns > 0) {
        deadline = Deadline::after(more_ns);
        continue;
      }
      result = time_out(spec);
      break;
    }
    if (progress.more) continue;
    if (!asleep && spin_end_ns > running_ns) {
      for (int i = 0; i < kSpinsPerLook; ++i) pause();
      continue;
    }
    if (!asleep && yield_end_ns > running_ns) {
      std::this_thread::yield();
      continue;
    }
    if (!asleep) {
      asleep = true;
      bell.sleepers.fetch_add(1);
      continue;  // look once more, now that others know they have to ring
    }
    Counters::add(counters_.sleeps, 1);
    const std::int64_t limit_ns = std::min({left_ns, kSliceNs, progress.foreign ? kForeignPollNs : kSliceNs});
    sleep_on(bell, seen, limit_ns);
    forgive(limit_ns);
  }
  if (asleep) bell.sleepers.fetch_sub(1);
  return result;
}

void Comm::wait_for_readers() const noexcept {
  // Readers of the same process go on by themselves; a process that is stopped in the middle may never.
  const Deadline deadline = Deadline::after(kReadersNs);
  for (std::int32_t rank = 0; rank < ranks_; ++rank)
    while (control().rank(rank).busy.load() != 0) {
      if (group_->has_died(rank) || (group_->silent_ns(rank) > kSilentNs / 2 && deadline.left_ns() == 0)) break;
      std::this_thread::yield();
    }
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

std::shared_ptr<transport::Segment> Comm::find_memory(const void* address, std::size_t bytes) noexcept {
  const std::lock_guard lock(memory_mutex);
  auto after = memory.upper_bound(const_cast<void*>(address));
  if (after == memory.begin()) return nullptr;
  const std::shared_ptr<transport::Segment>& segment = std::prev(after)->second;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - segment->address);
  return offset <= segment->bytes && bytes <= segment->bytes - offset ? segment : nullptr;
}

Requests& Comm::requests() {
  const std::lock_guard lock(requests_mutex_);
  if (!requests_) {
    requests_ = std::make_unique<Requests>(*this);
    made_requests_.store(requests_.get());
  }
  return *requests_;
}

bool Comm::has_requests() const noexcept {
  const Requests* const requests = made_requests_.load();
  return requests != nullptr && requests->in_flight() != 0;
}

void Comm::detach() noexcept {
  if (Requests* const requests = made_requests_.load(); requests != nullptr) requests->stop();
  // Announced first, then looked for: who begins to read the buffers of a request after this sees it.
  own_block().detached.store(1);
  wait_for_readers();
  control().ring_all();
  if (keeper_) keeper_->leave(keeper_id_);
  keeper_ = nullptr;
}

}  // namespace zerocomm::comm
