#include "comm/requests.hpp"

#include "base/check.hpp"
#include "comm/agree.hpp"
#include "comm/collective.hpp"
#include "comm/fault.hpp"
#include "comm/progress.hpp"

#include <algorithm>
#include <cstdio>
#include <thread>

namespace zerocomm::comm {
namespace {

constexpr std::size_t kCountArrays = 3;  // sent, received, and where in the others' buffers the own blocks begin

bool needs_staging(const Comm& comm, const Operation& operation) {
  // Another rank's buffer may be one that cannot be reached, and then all use staging.
  const bool some_are_private = !comm.group().is_shared({0, 0, 1});
  const bool has_scratch = operation.plan != nullptr && operation.plan->program->scratch_chunks() != 0;
  // A rank alone reads its buffer where it lies, but its counts are compared in staging as everybody's are.
  return has_scratch || always_stages(comm, operation) ||
         (comm.ranks() > 1 && some_are_private && moves_data(operation));
}

transport::RequestKey key_of(const Comm& comm, const Operation& operation, std::int64_t tag) {
  transport::RequestKey key;
  key.tag = tag;
  if (operation.collective() == Collective::send) key.from = comm.rank(), key.to = operation.call.root;
  if (operation.collective() == Collective::recv) key.from = operation.call.root, key.to = comm.rank();
  return key;
}

bool run_work(void* requests) { return static_cast<Requests*>(requests)->work(); }

}  // namespace

Requests::Requests(Comm& comm)
    : comm_(&comm),
      count_(static_cast<std::size_t>(comm.control().requests())),
      places_(count_ * static_cast<std::size_t>(comm.ranks())),
      requests_(std::make_unique<zc_request[]>(count_)) {
  for (std::size_t slot = 0; slot < count_; ++slot) {
    requests_[slot].table = this;
    requests_[slot].slot = slot;
    requests_[slot].places = places_.data() + slot * static_cast<std::size_t>(comm.ranks());
  }
  progress_ = add_progress(&run_work, this, &comm.control().header());
  progress_->quiet.store(true);
  try {
    if (comm.settings().helper_thread) helper_ = std::make_unique<Helper>(*this, comm.own_block().bell);
  } catch (...) {
    remove_progress(progress_);
    throw;
  }
}

Requests::~Requests() { stop(); }

void Requests::stop() noexcept {
  helper_ = nullptr;
  if (progress_ != nullptr) remove_progress(progress_);
  progress_ = nullptr;
  std::unique_lock lock(mutex_);
  stopped_ = true;
  // A thread that tests or waits may have a slice in hand.
  const auto none_works = [&] {
    return std::none_of(requests_.get(), requests_.get() + count_, [](const zc_request& one) { return one.working; });
  };
  while (!none_works()) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  for (std::size_t slot = 0; slot < count_; ++slot) {
    zc_request& request = requests_[slot];
    if (request.phase == Phase::gathering || request.phase == Phase::moving)
      end(request, fail(ZC_STATE, "rank %d: the communicator was destroyed with %s, %s, in flight", comm_->rank(),
                        posts(request).name().c_str(), describe(request.operation.call).c_str()));
  }
}

// Memory that the first request of its kind brings for all of them.
void Requests::bring_memory(const Operation& operation) {
  const auto ranks = static_cast<std::size_t>(comm_->ranks());
  if (operation.counts != nullptr && counts_.empty()) counts_.resize(count_ * kCountArrays * ranks);
  transport::BufferRef& staging = comm_->own_block().request_staging;
  if (staging.bytes != 0 || !needs_staging(*comm_, operation)) return;
  const std::size_t bytes = count_ * 2 * Posts::request_half_bytes(comm_->ranks());
  staging = comm_->group().allocate_for_all(comm_->rank(), bytes, "staging of requests");
  comm_->word_bytes.fetch_add(bytes);
}

zc_request* Requests::find_free() noexcept {
  for (std::size_t slot = 0; slot < count_; ++slot)
    if (!requests_[slot].listed && !requests_[slot].held && requests_[slot].phase == Phase::idle)
      return &requests_[slot];
  return nullptr;
}

void Requests::fill_in(zc_request& request, const Operation& operation, const transport::RequestKey& key,
                       std::int64_t since_ns) noexcept {
  const auto ranks = static_cast<std::size_t>(comm_->ranks());
  request.operation = operation;
  request.key = key;
  request.hash = key.hash();
  request.total_bytes = operation.send_bytes + operation.recv_bytes;
  request.status = ZC_OK;
  request.deadline_ns = operation.deadline_ns != 0 ? operation.deadline_ns : comm_->settings().deadline_ns;
  request.since_ns = since_ns != 0 ? since_ns : now_ns();
  std::fill_n(request.places, ranks, Place{});
  request.places[comm_->rank()].slot = static_cast<std::int32_t>(request.slot);
  if (operation.counts == nullptr) return;
  std::size_t* const counts = counts_.data() + request.slot * kCountArrays * ranks;
  request.operation.counts = std::copy_n(operation.counts, ranks, counts) - ranks;
  if (operation.recv_counts != nullptr)
    request.operation.recv_counts = std::copy_n(operation.recv_counts, ranks, counts + ranks) - ranks;
  request.operation.source_offsets = counts + 2 * ranks;
}

void Requests::post(zc_request& request) noexcept {
  transport::FlightRecord record;
  record.begin_ns = request.since_ns;
  record.kind = request.operation.call.collective | transport::FlightRecord::kKeyed;
  record.call = request.key.turn;
  record.brief = pack_brief(request.operation.call);
  record.set_tag(request.key.tag);
  request.flight = comm_->flight().begin(record);
  transport::RequestSlot& slot = own_slot(request);
  announce(*comm_, slot.post, request.operation, 0);
  slot.state.store(transport::RequestSlot::kOpen);
  slot.seen.clear();
  slot.set_key(request.key);  // last: another key may have the same hash, and somebody may be about to compare this one
  step("request written");
  comm_->own_block().brief.store(record.brief);
  comm_->control().request_hash(comm_->rank(), request.slot).store(request.hash);
  comm_->own_block().posts.fetch_add(1);
  step("request posted");
  comm_->control().ring_all();
}

zc_status Requests::make(const Operation& operation, std::int64_t tag, zc_request** request, std::int64_t since_ns) {
  ZC_TRY(comm_->check_alive());
  transport::RequestKey key = key_of(*comm_, operation, tag);
  const auto try_to = [&] {
    const std::lock_guard lock(mutex_);
    // After an error slots are free although others may read them.
    if (comm_->dead()) return false;
    zc_request* const found = find_free();
    if (found == nullptr) return false;
    bring_memory(operation);
    std::uint64_t& turn = turns_[{tag, key.from, key.to}];
    key.turn = turn;
    fill_in(*found, operation, key, since_ns);
    found->keep = comm_->shared_from_this();
    found->phase = Phase::gathering;
    found->held = true;
    ++turn;
    post(*found);
    list(*found);
    in_flight_.fetch_add(1);
    if (progress_ != nullptr) progress_->quiet.store(false);
    *request = found;
    return true;
  };
  if (try_to()) {
    if (helper_) helper_->wake();
    return ZC_OK;
  }
  work();  // others may have seen the end of some
  if (try_to()) {
    if (helper_) helper_->wake();
    return ZC_OK;
  }
  ZC_TRY(comm_->check_alive());
  return fail(ZC_AGAIN, "rank %d: %s: all %zu requests of this rank are in use, %zu of them in flight", comm_->rank(),
              describe(operation.call).c_str(), count_, in_flight());
}

zc_status Requests::make_and_wait(const Operation& operation, std::int64_t tag) {
  const std::int64_t since_ns = now_ns();
  const std::int64_t deadline_ns = operation.deadline_ns != 0 ? operation.deadline_ns : comm_->settings().deadline_ns;
  zc_request* request = nullptr;
  for (;;) {
    const zc_status status = make(operation, tag, &request, since_ns);
    if (status == ZC_OK) return wait(*request);
    // A slot whose request is over here comes back when the others have seen that; the caller's own do not.
    const auto comes_back = [&] {
      const std::lock_guard lock(mutex_);
      return std::any_of(requests_.get(), requests_.get() + count_, [](const zc_request& one) { return !one.held; });
    };
    if (status != ZC_AGAIN || !comes_back()) return status;
    ZC_TRY(wait_for_slot(operation, tag, deadline_ns, since_ns));
  }
}

zc_status Requests::wait_for_slot(const Operation& operation, std::int64_t tag, std::int64_t deadline_ns,
                                  std::int64_t since_ns) noexcept {
  const auto ready = [&]() -> int {
    work();
    const std::lock_guard lock(mutex_);
    return find_free() != nullptr;
  };
  const auto name_culprit = [&](std::int32_t*, char* text, std::size_t capacity_bytes) {
    std::snprintf(
        text, capacity_bytes,
        "all %zu requests of this rank are in use, %zu of them in flight, and none came free for %s, tag %lld", count_,
        in_flight(), describe(operation.call).c_str(), static_cast<long long>(tag));
  };
  FunctionRef<void(std::int32_t*, char*, std::size_t)> who = name_culprit;
  const std::int64_t left = deadline_ns - (now_ns() - since_ns);
  WaitSpec spec;
  spec.deadline_ns = left > 0 ? left : ZC_POLL;
  spec.told_ns = deadline_ns;
  spec.label = collective_name(operation.call.collective);
  spec.blame = &who;
  spec.announced = true;
  auto& wants_slot = comm_->own_block().wants_slot;
  wants_slot.fetch_add(1);
  const zc_status waited = comm_->wait(ready, spec);
  wants_slot.fetch_sub(1);
  return waited;
}

std::int64_t Requests::left_ns(const zc_request& request) const noexcept {
  return request.deadline_ns - (now_ns() - request.since_ns);
}

// Frees the handle.
zc_status Requests::report(zc_request& request) noexcept {
  // Others may read this rank's buffers still.
  if (request.status != ZC_OK && !zc_status_comm_usable(request.status)) comm_->wait_for_readers();
  const std::shared_ptr<Comm> keep = std::move(request.keep);  // may be the last to hold it: released behind the lock
  zc_status status = ZC_OK;
  {
    const std::lock_guard lock(mutex_);
    status = request.status;
    if (status != ZC_OK) record_error(status, request.text);
    request.held = false;
    if (!request.listed) request.phase = Phase::idle;
  }
  // A call of another thread may wait for this place.
  if (transport::RankBlock& own = comm_->own_block(); own.wants_slot.load() != 0) ring(own.bell);
  return status;
}

void Requests::time_out(const zc_request& request) noexcept {
  const auto name_culprit = [&](std::int32_t* culprit, char* text, std::size_t capacity_bytes) {
    if (request.phase == Phase::gathering)
      blame_absent(*comm_, posts(request), request.operation, culprit, text, capacity_bytes);
    else if (request.phase == Phase::moving)
      request.transfer->blame(culprit, text, capacity_bytes);
  };
  FunctionRef<void(std::int32_t*, char*, std::size_t)> who = name_culprit;
  WaitSpec spec;
  spec.blame = &who;
  spec.label = collective_name(request.operation.call.collective);
  spec.told_ns = request.deadline_ns;
  static_cast<void>(comm_->time_out(spec));
}

zc_status Requests::test(zc_request& request, bool* over) {
  ZC_TRY(comm_->check_process());
  work();
  {
    const std::lock_guard lock(mutex_);
    if (request.phase != Phase::over && !request.working && !look(request) && request.phase != Phase::over &&
        request.deadline_ns >= 0 && left_ns(request) <= 0) {
      time_out(request);
      static_cast<void>(look(request));  // which ends it
    }
    *over = request.phase == Phase::over;
  }
  return *over ? report(request) : ZC_OK;
}

zc_status Requests::wait(zc_request& request) {
  ZC_TRY(comm_->check_process());
  const auto is_over = [&] {
    const std::lock_guard lock(mutex_);
    return request.phase == Phase::over;
  };
  const auto ready = [&]() -> int { return is_over() ? 1 : 0; };
  // What has been waited for may have come a little at a time. Whether it has not, and the end that follows, are one
  // step: another thread may be about to end it well.
  const auto count_again = [&]() -> std::int64_t {
    constexpr std::int64_t kOneLookNs = 1;
    const std::lock_guard lock(mutex_);
    if (request.phase == Phase::over) return kOneLookNs;
    if (request.working) return std::max(request.deadline_ns, kOneLookNs);
    if (const std::int64_t left = left_ns(request); left > 0) return left;
    time_out(request);
    return kOneLookNs;
  };
  FunctionRef<std::int64_t()> extend_ns = count_again;
  WaitSpec spec;
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t left = left_ns(request);
    spec.deadline_ns = left > 0 ? left : ZC_POLL;
  }
  spec.label = collective_name(request.operation.call.collective);
  spec.announced = true;
  spec.extend_ns = &extend_ns;
  // What stopped the wait ends the request too, but for the thread that may be working on it at this moment.
  static_cast<void>(comm_->wait(ready, spec));
  while (!is_over()) {
    work();
    std::this_thread::yield();
  }
  return report(request);
}

zc_status Requests::cancel(zc_request& request) {
  ZC_TRY(comm_->check_process());
  bool canceled = false;
  {
    const std::lock_guard lock(mutex_);
    if (!request.working) static_cast<void>(look(request));
    std::uint32_t open = transport::RequestSlot::kOpen;
    if (request.phase == Phase::gathering &&
        own_slot(request).state.compare_exchange_strong(open, transport::RequestSlot::kCanceled)) {
      step("request canceled");
      end(request, fail(ZC_CANCELED, "rank %d has canceled %s, %s", comm_->rank(), posts(request).name().c_str(),
                        describe(request.operation.call).c_str()));
      canceled = true;
    }
    if (!canceled)
      return fail(ZC_STATE, "rank %d: %s, %s, cannot be canceled any more: %s", comm_->rank(),
                  posts(request).name().c_str(), describe(request.operation.call).c_str(),
                  request.phase == Phase::over ? "it is over" : "all its ranks have come");
  }
  comm_->control().ring_all();
  static_cast<void>(report(request));
  return ZC_OK;
}

}  // namespace zerocomm::comm
