// Training whose ranks are processes comes to the bits of thread ranks, under both placements.
#include "bits_rows.hpp"
#include "support/child_ranks.hpp"

#include <gtest/gtest.h>

namespace zerocomm::test {
namespace {

WorldResult train_processes(const WorldSetup& setup, std::size_t steps, std::size_t passes) {
  const SharedArray<WorldResult> results(static_cast<std::size_t>(setup.ranks));
  RankProcesses(setup.ranks).run([&](zc_comm* comm, std::int32_t rank) {
    RankEngine engine(comm, setup);
    engine.load();
    for (std::size_t step = 0; step < steps; ++step) engine.step(step, passes);
    results[rank] = {engine.digest(), engine.seen(), engine.last_norm().norm};
    RANK_OK(zc_barrier(comm, nullptr));
  });
  for (const WorldResult& result : results) EXPECT_EQ(result, results[0]);
  return results[0];
}

class BitsOfProcesses : public testing::TestWithParam<zc_placement> {};

TEST_P(BitsOfProcesses, are_those_of_thread_ranks) {
  constexpr std::size_t kShortSteps = 3;
  for (const std::int32_t ranks : {2, 3, 5})
    for (std::size_t stage = 0; stage < 4; ++stage) {
      const Order& order = kOrders[stage];
      Row row(kFactors, 0);
      row[kStage] = stage;
      row[kModel] = static_cast<std::size_t>(ranks % 2);
      row[kBucket] = 1;
      WorldSetup setup = bits_setup(ranks, order, row, true);
      setup.layout.placement = GetParam();
      const WorldResult wanted = train_world(setup, kShortSteps, order.passes);
      EXPECT_EQ(train_processes(setup, kShortSteps, order.passes), wanted) << ranks << " ranks, stage " << stage;
    }
}

INSTANTIATE_TEST_SUITE_P(placements, BitsOfProcesses, testing::Values(ZC_PLACEMENT_PER_UNIT, ZC_PLACEMENT_FLAT));

}  // namespace
}  // namespace zerocomm::test
