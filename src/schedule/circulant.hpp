// The algorithm "circulant": the fewest rounds and the fewest blocks at once, for any number of ranks.
//
// Source: Traeff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", 2024.
#pragma once

#include "schedule/cost.hpp"
#include "schedule/step.hpp"

namespace zerocomm::schedule {

// all_gather, reduce_scatter, all_reduce (one after the other); one lane. Blocks that wrap around the end of the vector
// travel as two messages. Sums are equal on all ranks, not canonical.
RankSchedule circulant_steps(const Key& key, std::uint32_t rank);

// With q = ceil(log2 p) rounds, n = chunks:
//   all_gather, reduce_scatter   q messages sent per rank, and one more for each that wraps,  q a +   (p-1) n/p b
//   all_reduce                   the sum of both,                                            2q a + 2 (p-1) n/p b
Cost circulant_cost(const Key& key);

// Reductions of 3 ranks and more: ceil(p/2) blocks. all_gather needs none.
std::uint32_t circulant_scratch(const Key& key);

}  // namespace zerocomm::schedule
