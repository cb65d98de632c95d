// The algorithm "dissemination": a barrier in ceil(log2 p) rounds.
#pragma once

#include "schedule/cost.hpp"
#include "schedule/step.hpp"

namespace zerocomm::schedule {

// In round k every rank tells the rank 2^k after it what it has heard. Any number of ranks; lanes beyond the first stay
// empty.
RankSchedule dissemination_steps(const Key& key, std::uint32_t rank);

// ceil(log2 p) messages sent per rank, ceil(log2 p) a.
Cost dissemination_cost(const Key& key);

}  // namespace zerocomm::schedule
