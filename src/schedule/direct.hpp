// The algorithm "direct": every contribution goes straight to its owner, which adds in rank order.
#pragma once

#include "schedule/cost.hpp"
#include "schedule/step.hpp"

namespace zerocomm::schedule {

// What rank `rank` does. The key must have passed check_key() of the catalogue.
RankSchedule direct_steps(const Key& key, std::uint32_t rank);

// The closed form of its cost with one element per chunk. With n = chunks, p = ranks, l = lanes, in each lane:
//   all_reduce        2 (p-1) messages sent per rank, 2a + 2 (p-1) n/(p l) b
//   reduce_scatter,
//   all_gather          (p-1) messages sent per rank,  a +   (p-1) n/(p l) b
//   all_to_all          (p-1) messages sent per rank,  a +   (p-1) n/(p p l) b
//   broadcast           (p-1) messages sent by root,   a +   (p-1) n/l b
//   scatter_from_root   (p-1) messages sent by root,   a +   (p-1) n/(p l) b
//   reduce                  1 message sent per rank,   a +         n/l b
//   gather_to_root          1 message sent per rank,   a +         n/(p l) b
//   barrier             (p-1) messages sent per rank,  a
Cost direct_cost(const Key& key);

}  // namespace zerocomm::schedule
