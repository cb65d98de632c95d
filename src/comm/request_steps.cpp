// How a request goes on: find the posts of its ranks, take them, move data by slices, count oneself out.
#include "base/check.hpp"
#include "comm/agree.hpp"
#include "comm/fault.hpp"
#include "comm/progress.hpp"
#include "comm/requests.hpp"

#include <cstdio>

namespace zerocomm::comm {
namespace {

using transport::RequestSlot;

static_assert(kMostRanks <= transport::RankSet::kMostRanks);

// Pieces of staging are smaller than a slice.
constexpr int kStagedTurns = 16;

}  // namespace

void Requests::list(zc_request& request) noexcept {
  zc_request** at = &first_;
  while (*at != nullptr && (*at)->total_bytes <= request.total_bytes) at = &(*at)->next;
  request.next = *at;
  *at = &request;
  request.listed = true;
  listed_.fetch_add(1);
}

void Requests::unlist(zc_request& request) noexcept {
  zc_request** at = &first_;
  while (*at != &request) at = &(*at)->next;
  *at = request.next;
  request.next = nullptr;
  request.listed = false;
  listed_.fetch_sub(1);
  if (!request.held) request.phase = Phase::idle;
}

// Looks for the post of a rank, if that rank has posted anything since the last time.
void Requests::find(zc_request& request, std::int32_t rank) const noexcept {
  Place& place = request.places[rank];
  const auto posted = static_cast<std::uint32_t>(comm_->control().rank(rank).posts.load());
  if (place.is_known() || (place.slot == Place::kAbsent && place.looked == posted)) return;
  place.slot = Place::kAbsent;
  place.looked = posted;
  // Most programs make the same requests on all ranks: the own place is a good guess.
  for (std::size_t i = 0; i < count_; ++i) {
    const std::size_t at = (request.slot + i) % count_;
    if (comm_->control().request_hash(rank, at).load() != request.hash ||
        !comm_->control().request(rank, at).has_key(request.key))
      continue;
    place.slot = static_cast<std::int32_t>(at);
    return;
  }
}

// Takes the posts of all ranks. One that is canceled ends the request for all: what was found so stays so.
zc_status Requests::take(const zc_request& request) const noexcept {
  const Posts all = posts(request);
  for (std::size_t i = 0; i < all.count(); ++i) {
    std::uint32_t state = RequestSlot::kOpen;
    if (!all.slot(all.rank(i)).state.compare_exchange_strong(state, RequestSlot::kTaken) &&
        state == RequestSlot::kCanceled)
      return fail(ZC_CANCELED, "rank %d has canceled %s, %s (this is rank %d)", all.rank(i), all.name().c_str(),
                  describe(request.operation.call).c_str(), comm_->rank());
    step("request taken");
  }
  return ZC_OK;
}

zc_status Requests::lost(const zc_request& request, std::int32_t rank) const noexcept {
  return comm_->record_first_error(ZC_PEER_LOST,
                                   format("rank %d has destroyed its communicator, and %s, %s, waits for it", rank,
                                          posts(request).name().c_str(), describe(request.operation.call).c_str())
                                       .c_str());
}

void Requests::gather(zc_request& request) noexcept {
  const Posts all = posts(request);
  std::int32_t missing = ZC_NONE;  // a rank that has left without coming
  bool complete = true;
  for (std::size_t i = 0; i < all.count(); ++i) {
    const std::int32_t rank = all.rank(i);
    // A rank that has left comes no more; but it may have posted just before.
    const bool left = comm_->control().rank(rank).detached.load() != 0;
    find(request, rank);
    if (!request.places[rank].is_known()) {
      if (left && missing == ZC_NONE) missing = rank;
      complete = false;
    } else if (all.slot(rank).state.load() == RequestSlot::kCanceled) {
      return end(request, fail(ZC_CANCELED, "rank %d has canceled %s, %s (this is rank %d)", rank, all.name().c_str(),
                               describe(request.operation.call).c_str(), comm_->rank()));
    }
  }
  if (missing != ZC_NONE) return end(request, lost(request, missing));
  if (!complete) return;
  if (const zc_status status = take(request); status != ZC_OK) return end(request, status);
  if (const zc_status status = agree(*comm_, all, request.operation); status != ZC_OK) return end(request, status);
  request.transfer.emplace(*comm_, request.operation, all, nullptr);
  request.phase = Phase::moving;
  request.since_ns = now_ns();
}

bool Requests::look(zc_request& request) noexcept {
  if (request.phase == Phase::over) {
    if (request.listed) linger(request);  // else its slot has come back already, and only the handle is left
    return false;
  }
  if (comm_->dead()) {
    end(request, comm_->check_alive());
    return false;
  }
  if (request.phase == Phase::gathering) gather(request);
  if (request.phase != Phase::moving) return false;
  if (request.transfer->done()) {
    end(request, ZC_OK);
    return false;
  }
  const std::int32_t awaited = request.transfer->awaited();
  const bool left = comm_->control().rank(awaited).detached.load() != 0;
  if (request.transfer->ready()) return true;
  if (left && request.transfer->awaited() == awaited) end(request, lost(request, awaited));
  return false;
}

zc_status Requests::move(zc_request& request) noexcept {
  Transfer& transfer = *request.transfer;
  for (int turn = 0; turn < kStagedTurns && !transfer.done() && (turn == 0 || transfer.ready()); ++turn) {
    const bool is_staged = transfer.is_staged();
    ZC_TRY(transfer.work(kSliceBytes));
    if (!is_staged) break;
  }
  return ZC_OK;
}

bool Requests::work() noexcept {
  bool worked = false;
  std::unique_lock lock(mutex_);
  for (zc_request *request = stopped_ ? nullptr : first_, *next = nullptr; request != nullptr; request = next) {
    next = request->next;
    if (request->working || !look(*request)) continue;
    request->working = true;
    lock.unlock();
    const zc_status status = move(*request);
    lock.lock();
    request->working = false;
    request->since_ns = now_ns();
    worked = true;
    next = request->next;  // the list has changed meanwhile, but this one is in it
    if (status != ZC_OK)
      end(*request, status);
    else if (request->transfer->done())
      end(*request, ZC_OK);
  }
  lock.unlock();
  if (worked) ring(comm_->own_block().bell);  // a thread may wait for what this one had in hand
  return worked;
}

void Requests::end(zc_request& request, zc_status status) noexcept {
  request.status = status;
  if (status != ZC_OK) std::snprintf(request.text, sizeof request.text, "%s", zc_last_error());
  request.transfer.reset();
  request.phase = Phase::over;
  comm_->flight().finish(request.flight, status, now_ns());
  if (status == ZC_OK) {
    Counters::add(comm_->counters().collectives, 1);
    Counters::add(comm_->counters().logical_bytes[traffic_index(request.operation.traffic)],
                  request.operation.logical_bytes);
  }
  if (in_flight_.fetch_sub(1) == 1 && progress_ != nullptr) progress_->quiet.store(true);
  linger(request);
  ring(comm_->own_block().bell);
}

// It is over here. The others are told, as they come, and when all have told this rank its slot is free. A rank that
// has left looks at nothing any more: it needs no telling, and is waited for no longer.
void Requests::linger(zc_request& request) noexcept {
  // Nothing is used again after the communicator's end, or this rank's.
  if (comm_->dead() || stopped_) return unlist(request);
  const Posts all = posts(request);
  bool all_know = true;
  for (std::size_t i = 0; i < all.count(); ++i) {
    const std::int32_t rank = all.rank(i);
    transport::RankBlock& block = comm_->control().rank(rank);
    if (rank == comm_->rank() || block.detached.load() != 0) continue;
    Place& place = request.places[rank];
    if (!place.told) find(request, rank);
    if (place.is_known() && !place.told) {
      all.slot(rank).seen.add(comm_->rank());
      place.told = true;
      step("request seen");
      if (block.wants_slot.load() != 0) ring(block.bell);
    }
    all_know = all_know && place.told && own_slot(request).seen.has(rank);
  }
  if (!all_know) return;
  comm_->control().request_hash(comm_->rank(), request.slot).store(0);
  step("request free");
  unlist(request);
}

}  // namespace zerocomm::comm
