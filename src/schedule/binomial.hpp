// The algorithm "binomial": rooted collectives along a binomial tree, ceil(log2 p) levels.
#pragma once

#include "schedule/cost.hpp"
#include "schedule/step.hpp"

namespace zerocomm::schedule {

// broadcast and reduce (any lanes), gather_to_root and scatter_from_root (one lane); any number of ranks, any root.
// Sums follow the tree: one result, but not canonical.
RankSchedule binomial_steps(const Key& key, std::uint32_t rank);

// With n = chunks, p = ranks, l = lanes, f = floor(log2 p), c = ceil(log2 p):
//   broadcast           1 message received per rank in each lane,                  f a + c n/l b
//   reduce              1 message sent per rank in each lane,                      f a + f n/l b
//   scatter_from_root   1 message received per rank, one more where blocks wrap,   f a + (p-1) n/p b
//   gather_to_root      1 message sent per rank, one more where blocks wrap,       f a + g(p) n/p b
// where g(1) = 0 and, with h the largest power of two below p, g(p) = max(h - 1, p - h + g(p - h)); p - 1 if p = 2^c.
Cost binomial_cost(const Key& key);

// broadcast: none. reduce: the whole vector, from 4 ranks on. gather_to_root, scatter_from_root: the blocks of the
// largest subtree with more than one rank, at most p/2.
std::uint32_t binomial_scratch(const Key& key);

}  // namespace zerocomm::schedule
