// The algorithm "ring": every rank sends to the next one only, one block per message. For links that are fast between
// neighbours. Sums begin with the rank after the owner: equal on all ranks, not canonical.
#pragma once

#include "schedule/cost.hpp"
#include "schedule/step.hpp"

namespace zerocomm::schedule {

// all_gather, reduce_scatter, all_reduce; any number of ranks and lanes.
RankSchedule ring_steps(const Key& key, std::uint32_t rank);

// With n = chunks, p = ranks, l = lanes, in each lane:
//   all_gather, reduce_scatter    (p-1) messages sent per rank,   (p-1) (a + n/(p l) b)
//   all_reduce                  2 (p-1) messages sent per rank, 2 (p-1) (a + n/(p l) b)
Cost ring_cost(const Key& key);

// reduce_scatter: up to two blocks. The others need none.
std::uint32_t ring_scratch(const Key& key);

}  // namespace zerocomm::schedule
