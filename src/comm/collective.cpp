#include "comm/collective.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "comm/fault.hpp"
#include "comm/staging.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

namespace zerocomm::comm {
namespace {

using transport::PostSlot;

// Frees the communicator for the next collective.
class Occupied {
 public:
  explicit Occupied(std::atomic<bool>& flag) : flag_(&flag) {}
  ~Occupied() { flag_->store(false); }
  Occupied(const Occupied&) = delete;
  Occupied& operator=(const Occupied&) = delete;

 private:
  std::atomic<bool>* flag_;
};

// This rank reads other ranks' buffers while one of these lives.
class Reading {
 public:
  explicit Reading(std::atomic<std::uint32_t>& busy) : busy_(&busy) { busy_->fetch_add(1); }
  ~Reading() { busy_->fetch_sub(1); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  std::atomic<std::uint32_t>* busy_;
};

// This call in the flight recorder, from its post to its return.
class Flight {
 public:
  Flight(const Comm& comm, std::uint64_t sequence, const Collect& what) : ring_(&comm.flight()) {
    transport::FlightRecord record;
    record.begin_ns = now_ns();
    record.kind = what.call.collective;
    record.call = sequence;
    record.brief = pack_brief(what.call);
    number_ = ring_->begin(record);
  }
  zc_status end(zc_status status) {
    ring_->finish(number_, status, now_ns());
    return status;
  }

 private:
  transport::FlightRing* ring_;
  std::uint64_t number_;
};

void post(Comm& comm, std::uint64_t sequence, const Collect& what, std::uint64_t failed_bytes) noexcept {
  PostSlot& slot = comm.own_block().slots[sequence % 2];
  slot.call = what.call;
  slot.send = comm.group().refer(what.send, what.send_bytes);
  slot.recv = comm.group().refer(what.recv, what.recv_bytes);
  slot.failed_bytes = failed_bytes;
  step("post");
  comm.own_block().brief.store(pack_brief(what.call));
  slot.sequence.store(sequence + 1);
  step("posted");
  comm.control().ring_all();
  step("rung");
}

// From here on a buffer is worth a system call per peer.
constexpr std::uint64_t kLeastPrivateRead = std::uint64_t{128} << 10;

// Whether data can move directly: a function of what all ranks posted, so all come to the same.
bool is_direct(const Comm& comm, std::uint64_t sequence, const Collect& what) {
  if (comm.ranks() == 1) return true;
  std::uint64_t most_bytes = 0;
  bool all_shared = true;
  for (std::int32_t rank = 0; rank < comm.ranks(); ++rank) {
    const PostSlot& slot = comm.control().rank(rank).slots[sequence % 2];
    const bool touches_send = what.touches == Touches::send_of_all || what.touches == Touches::both_of_all ||
                              (what.touches == Touches::send_of_root && rank == what.call.root);
    if (touches_send && !comm.group().is_shared(slot.send)) {
      all_shared = false;
      most_bytes = std::max(most_bytes, slot.send.bytes);
    }
    if (what.touches == Touches::both_of_all && !comm.group().is_shared(slot.recv)) return false;
  }
  return all_shared || (what.copies_alone && most_bytes >= kLeastPrivateRead && comm.group().can_read_private());
}

bool has_come(const Comm& comm, std::int32_t rank, std::uint64_t sequence) {
  return comm.control().rank(rank).slots[sequence % 2].sequence.load() > sequence;
}

// Names the ranks that have not posted call `sequence`, and what the first of them did last.
void blame_absent(const Comm& comm, std::uint64_t sequence, const Collect& what, std::int32_t* culprit, char* text,
                  std::size_t capacity_bytes) {
  constexpr int kMostNamed = 16;  // the rest of the text must fit too
  std::string ranks;
  int absent = 0;
  for (std::int32_t rank = 0; rank < comm.ranks(); ++rank) {
    if (has_come(comm, rank, sequence)) continue;
    if (*culprit == ZC_NONE) *culprit = rank;
    if (++absent <= kMostNamed) ranks += format(ranks.empty() ? "rank %d" : ", rank %d", rank);
  }
  if (absent > kMostNamed) ranks += format(" and %d more", absent - kMostNamed);
  if (absent == 0) {
    *culprit = comm.rank();
    std::snprintf(text, capacity_bytes, "all ranks have come to call %llu, %s, the last of them with the deadline",
                  static_cast<unsigned long long>(sequence), describe(what.call).c_str());
    return;
  }
  const auto& block = comm.control().rank(*culprit);
  const std::uint64_t brief = block.brief.load();
  char who[48];
  comm.describe_rank(*culprit, who, sizeof who);
  std::snprintf(text, capacity_bytes, "%s did not come to call %llu, %s; last call of %s: %s%s", ranks.c_str(),
                static_cast<unsigned long long>(sequence), describe(what.call).c_str(), who,
                brief == 0 ? "none" : describe_brief(brief).c_str(),
                block.detached.load() != 0 ? "; it has destroyed its communicator" : "");
}

// Compares what all ranks said. Every rank sees the same posts, so every rank finds the same.
zc_status agree(Comm& comm, std::uint64_t sequence, const Collect& what) noexcept {
  const auto slot_of = [&](std::int32_t rank) -> const PostSlot& {
    return comm.control().rank(rank).slots[sequence % 2];
  };
  // Against a rank that has a place, if there is one: all others must have the same.
  std::int32_t reference = 0;
  while (reference < comm.ranks() && slot_of(reference).call.in_place == transport::CallRecord::kEitherPlace)
    ++reference;
  if (reference == comm.ranks()) reference = 0;
  for (std::int32_t rank = 0; rank < comm.ranks(); ++rank) {
    if (same_call(slot_of(rank).call, slot_of(reference).call)) continue;
    Counters::add(comm.counters().mismatches, 1);
    return fail(ZC_MISMATCH, "call %llu: rank %d calls %s, but rank %d calls %s (this is rank %d: %s)",
                static_cast<unsigned long long>(sequence), reference, describe(slot_of(reference).call).c_str(), rank,
                describe(slot_of(rank).call).c_str(), comm.rank(), describe(what.call).c_str());
  }
  for (std::int32_t rank = 0; rank < comm.ranks(); ++rank)
    if (slot_of(rank).failed_bytes != 0)
      return fail(ZC_NO_MEMORY, "rank %d could not get %llu bytes for %s", rank,
                  static_cast<unsigned long long>(slot_of(rank).failed_bytes), describe(what.call).c_str());
  return ZC_OK;
}

zc_status wait_for_posts(Comm& comm, std::uint64_t sequence, const Collect& what) noexcept {
  std::int32_t next = 0;  // ranks below have come
  const auto name_culprit = [&](std::int32_t* culprit, char* text, std::size_t capacity_bytes) {
    blame_absent(comm, sequence, what, culprit, text, capacity_bytes);
  };
  FunctionRef<void(std::int32_t*, char*, std::size_t)> blame = name_culprit;
  const auto ready = [&]() -> int {
    while (next < comm.ranks() && has_come(comm, next, sequence)) ++next;
    if (next == comm.ranks()) return 1;
    if (comm.control().rank(next).detached.load() == 0 || has_come(comm, next, sequence)) return 0;
    // It will never come: no need to wait for the deadline.
    return -static_cast<int>(comm.record_first_error(
        ZC_PEER_LOST, format("rank %d has destroyed its communicator and does not come to call %llu, %s", next,
                             static_cast<unsigned long long>(sequence), describe(what.call).c_str())
                          .c_str()));
  };
  return comm.wait(ready, {what.deadline_ns, collective_name(what.call.collective), &blame, true});
}

zc_status wait_for_readers_out(Comm& comm, std::uint64_t sequence, const Collect& what) noexcept {
  std::int32_t next = 0;
  const auto name_culprit = [&](std::int32_t* culprit, char* text, std::size_t capacity_bytes) {
    *culprit = next;
    std::snprintf(text, capacity_bytes, "rank %d has not finished its share of call %llu, %s", next,
                  static_cast<unsigned long long>(sequence), describe(what.call).c_str());
  };
  FunctionRef<void(std::int32_t*, char*, std::size_t)> blame = name_culprit;
  const auto ready = [&]() -> int {
    while (next < comm.ranks() && comm.control().rank(next).finished.load() > sequence) ++next;
    return next == comm.ranks();
  };
  return comm.wait(ready, {what.deadline_ns, collective_name(what.call.collective), &blame, true});
}

// Moves this rank's share directly and waits until all others have moved theirs.
zc_status move_directly(Comm& comm, std::uint64_t sequence, const Collect& what,
                        FunctionRef<zc_status(const Peers&)>& move) noexcept {
  bool died = false;
  zc_status moved = ZC_OK;
  {
    // Announced first, then checked: a rank that has returned an error sees us and waits, or we see its error.
    const Reading reading(comm.own_block().busy);
    died = comm.dead();
    step("reading");
    if (!died) moved = move(Peers(comm, sequence));
    // Once more: others may have been told of an error while this rank was stopped in the middle, and have written
    // again what it read.
    died = died || comm.dead();
    step("read");
  }
  if (moved != ZC_OK) {
    comm.wait_for_readers();
    return moved;
  }
  if (died) {
    comm.wait_for_readers();  // they may read this rank's buffers still
    return comm.check_alive();
  }
  comm.own_block().finished.store(sequence + 1);
  step("finished");
  comm.control().ring_all();
  if (const zc_status status = wait_for_readers_out(comm, sequence, what); status != ZC_OK) {
    comm.wait_for_readers();
    return status;
  }
  return ZC_OK;
}

zc_status run_posted(Comm& comm, std::uint64_t sequence, const Collect& what,
                     FunctionRef<zc_status(const Peers&)>* move) noexcept {
  if (const zc_status status = wait_for_posts(comm, sequence, what); status != ZC_OK) {
    comm.wait_for_readers();
    return status;
  }
  comm.next_sequence = sequence + 1;
  step("all posted");
  ZC_TRY(agree(comm, sequence, what));
  if (move != nullptr) {
    if (is_direct(comm, sequence, what)) {
      ZC_TRY(move_directly(comm, sequence, what, *move));
    } else {
      Staging staging(comm, what);
      ZC_TRY((*what.staged)(staging));
    }
  }
  Counters::add(comm.counters().collectives, 1);
  Counters::add(comm.counters().logical_bytes[traffic_index(what.traffic)], what.logical_bytes);
  return ZC_OK;
}

}  // namespace

zc_status Peers::copy_from(std::int32_t rank, std::size_t offset_bytes, void* destination, std::size_t bytes,
                           zc_traffic traffic) const noexcept {
  if (bytes == 0) return ZC_OK;
  const transport::BufferRef& buffer = comm_->control().rank(rank).slots[slot_].send;
  if (const void* there = comm_->group().reach(rank, buffer); there != nullptr) {
    comm_->copy(destination, static_cast<const std::byte*>(there) + offset_bytes, bytes, rank, traffic);
    return ZC_OK;
  }
  const int result = comm_->group().read_private(rank, buffer, offset_bytes, destination, bytes);
  if (result == 0) {
    comm_->count_moved(rank, bytes, traffic);
    return ZC_OK;
  }
  // Most likely the rank has just died, and then the keeper's record is better than ours.
  constexpr std::int64_t kPatienceNs = 100'000'000;
  const Deadline patience = Deadline::after(kPatienceNs);
  while (!comm_->dead() && patience.left_ns() > 0) std::this_thread::yield();
  char text[256];
  std::snprintf(text, sizeof text,
                "rank %d could not read %zu bytes out of the memory of rank %d (ZC_COPY=staging avoids it): %s",
                comm_->rank(), bytes, rank, std::strerror(result));
  return comm_->record_first_error(ZC_TRANSPORT, text);
}

zc_status run_collective(Comm& comm, const Collect& what, FunctionRef<zc_status(const Peers&)>* move) noexcept {
  ZC_TRY(comm.check_alive());
  if (comm.in_collective.exchange(true))
    return fail(ZC_STATE, "rank %d: %s while another collective of this communicator runs on another thread",
                comm.rank(), describe(what.call).c_str());
  const Occupied occupied(comm.in_collective);
  const std::uint64_t sequence = comm.next_sequence;
  const std::uint64_t failed_bytes = what.prepare != nullptr ? (*what.prepare)(sequence) : 0;
  Flight flight(comm, sequence, what);
  step("begin");
  post(comm, sequence, what, failed_bytes);
  return flight.end(run_posted(comm, sequence, what, move));
}

}  // namespace zerocomm::comm
