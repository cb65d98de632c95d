#include "comm/collective.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "comm/agree.hpp"
#include "comm/fault.hpp"
#include "comm/progress.hpp"
#include "comm/transfer.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>

namespace zerocomm::comm {
namespace {

// This call in the flight recorder, from its post to its return.
class Flight {
 public:
  Flight(const Comm& comm, std::uint64_t sequence, const Operation& what) : ring_(&comm.flight()) {
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

void post(Comm& comm, std::uint64_t sequence, const Operation& what, std::uint64_t failed_bytes) noexcept {
  transport::PostSlot& slot = comm.own_block().slots[sequence % 2];
  announce(comm, slot.post, what, failed_bytes);
  step("post");
  comm.own_block().brief.store(pack_brief(what.call));
  slot.sequence.store(sequence + 1);
  step("posted");
  comm.control().ring_all();
  step("rung");
}

zc_status wait_for_posts(Comm& comm, const Posts& posts, const Operation& what) noexcept {
  std::int32_t next = 0;  // ranks below have come
  const auto name_culprit = [&](std::int32_t* culprit, char* text, std::size_t capacity_bytes) {
    blame_absent(comm, posts, what, culprit, text, capacity_bytes);
  };
  FunctionRef<void(std::int32_t*, char*, std::size_t)> blame = name_culprit;
  const auto ready = [&]() -> int {
    while (next < comm.ranks() && posts.has_come(next)) ++next;
    if (next == comm.ranks()) return 1;
    if (comm.control().rank(next).detached.load() == 0 || posts.has_come(next)) return 0;
    // It will never come: no need to wait for the deadline.
    return -static_cast<int>(comm.record_first_error(
        ZC_PEER_LOST, format("rank %d has destroyed its communicator and does not come to %s, %s", next,
                             posts.name().c_str(), describe(what.call).c_str())
                          .c_str()));
  };
  return comm.wait(ready, {what.deadline_ns, collective_name(what.call.collective), &blame, true});
}

// The deadline is for each wait: moving may take as long as it does.
zc_status move_all(Comm& comm, Operation& what, const Posts& posts,
                   FunctionRef<zc_status(const Peers&)>* local) noexcept {
  Transfer transfer(comm, what, posts, local);
  const auto name_culprit = [&](std::int32_t* culprit, char* text, std::size_t capacity_bytes) {
    transfer.blame(culprit, text, capacity_bytes);
  };
  FunctionRef<void(std::int32_t*, char*, std::size_t)> blame = name_culprit;
  const auto ready = [&]() -> int { return transfer.ready() ? 1 : 0; };
  while (!transfer.done()) {
    ZC_TRY(comm.wait(ready, {what.deadline_ns, collective_name(what.call.collective), &blame, true}));
    // Requests of this process are not kept waiting by a long call.
    const bool has_company = comm.has_requests();
    if (has_company) run_progress(&comm.control().header());
    ZC_TRY(transfer.work(has_company ? kSliceBytes : SIZE_MAX));
  }
  return ZC_OK;
}

zc_status run_posted(Comm& comm, std::uint64_t sequence, Operation& what,
                     FunctionRef<zc_status(const Peers&)>* local) noexcept {
  const Posts posts(comm, sequence);
  if (const zc_status status = wait_for_posts(comm, posts, what); status != ZC_OK) {
    comm.wait_for_readers();  // they may read this rank's buffers still
    return status;
  }
  comm.next_sequence = sequence + 1;
  step("all posted");
  ZC_TRY(agree(comm, posts, what));
  if (const zc_status status = move_all(comm, what, posts, local); status != ZC_OK) {
    if (!zc_status_comm_usable(status)) comm.wait_for_readers();
    return status;
  }
  Counters::add(comm.counters().collectives, 1);
  Counters::add(comm.counters().logical_bytes[traffic_index(what.traffic)], what.logical_bytes);
  return ZC_OK;
}

}  // namespace

void announce(const Comm& comm, transport::Post& post, const Operation& what, std::uint64_t failed_bytes) noexcept {
  post.set_back();
  post.call = what.call;
  post.send = comm.group().refer(what.send, what.send_bytes);
  post.recv = comm.group().refer(what.recv, what.recv_bytes);
  post.failed_bytes = failed_bytes;
}

zc_status Hold::refuse(const Comm& comm, const transport::CallRecord& call) noexcept {
  return fail(ZC_STATE, "rank %d: %s while another collective of this communicator runs on another thread", comm.rank(),
              describe(call).c_str());
}

zc_status run_collective(Comm& comm, Operation& what, FunctionRef<zc_status(const Peers&)>* local) noexcept {
  ZC_TRY(comm.check_alive());
  std::optional<Hold> hold;
  if (!what.held && !hold.emplace(comm).is_held()) return Hold::refuse(comm, what.call);
  what.source_offsets = comm.source_offsets.data();
  const std::uint64_t sequence = comm.next_sequence;
  const std::uint64_t failed_bytes = what.prepare != nullptr ? (*what.prepare)(sequence) : 0;
  Flight flight(comm, sequence, what);
  step("begin");
  post(comm, sequence, what, failed_bytes);
  return flight.end(run_posted(comm, sequence, what, local));
}

}  // namespace zerocomm::comm
