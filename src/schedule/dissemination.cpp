// The algorithm "dissemination".
#include "schedule/dissemination.hpp"

#include "schedule/builder.hpp"

#include <bit>

namespace zerocomm::schedule {

RankSchedule dissemination_steps(const Key& key, std::uint32_t rank) {
  return each_lane(key, rank, [](const Place& at, std::vector<Step>& steps) {
    if (at.lane != 0) return;
    for (std::uint64_t d = 1; d < at.key.ranks; d *= 2) {
      steps.push_back(send(at.after_me(static_cast<std::uint32_t>(d))));
      steps.push_back(recv(at.before_me(static_cast<std::uint32_t>(d))));
    }
  });
}

Cost dissemination_cost(const Key& key) {
  const auto rounds = static_cast<std::uint64_t>(std::bit_width(key.ranks - 1));
  Cost cost;
  cost.ranks.assign(key.ranks, Traffic{rounds, 0, rounds, 0});
  cost.critical_path = {rounds, 0};
  return cost;
}

}  // namespace zerocomm::schedule
