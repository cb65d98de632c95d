// A lane as an executor needs it that reads its peers' memory: which step of the peer each receive belongs to, and
// which steps of others must be done before memory may be written again.
//
// Such an executor has one word per rank: how many steps of its lane it has done. A condition {rank, step} holds when
// the word of that rank is larger than `step`. A receive waits for the send that it matches and then reads the sender's
// memory; the word of the receiver says that it was read.
#pragma once

#include "schedule/step.hpp"

#include <span>

namespace zerocomm::schedule {

// "Rank `rank` has done its step `step`."
struct Reached {
  std::uint32_t rank = 0;
  std::uint32_t step = 0;
  friend bool operator==(const Reached&, const Reached&) = default;
};

struct BoundStep {
  Step step;
  // recv, recv_reduce: the matching send of step.peer and what it sends. Else as given here.
  std::uint32_t peer_step = 0;
  Buf peer_buf = Buf::none;
  std::uint32_t peer_chunk = 0;  // first of step.n_chunks
};

class BoundLane {
 public:
  std::span<const BoundStep> steps() const { return steps_; }

  // What must hold before step `index` stores: earlier sends of the range were read. Left out is what an earlier step
  // of this lane waited for, and what a message that came since implies.
  std::span<const Reached> before(std::size_t index) const { return waits(index); }
  // What must hold before the call may return, or scratch be used for the next piece: all sends were read.
  std::span<const Reached> at_end() const { return waits(steps_.size()); }

 private:
  friend BoundLane bind_lane(const Schedule& schedule, std::uint32_t rank);
  std::span<const Reached> waits(std::size_t index) const {
    return std::span(waits_).subspan(first_wait_[index], first_wait_[index + 1] - first_wait_[index]);
  }

  std::vector<BoundStep> steps_;
  std::vector<Reached> waits_;
  std::vector<std::size_t> first_wait_;  // of each step and of the end
};

// Throws ARGUMENT if the schedule has no such rank, or a message of the rank has no other end; UNSUPPORTED if it has
// more than one lane. Looks at the lanes of the rank and its peers alone.
BoundLane bind_lane(const Schedule& schedule, std::uint32_t rank);

}  // namespace zerocomm::schedule
