// Training whose ranks are processes comes to the same bits as that of thread ranks.
#include "support/child_ranks.hpp"
#include "support/engine_world.hpp"

#include <gtest/gtest.h>

namespace zerocomm::test {
namespace {

constexpr std::size_t kSteps = kSanitized ? 2 : 4;

// What every rank came to; one result if all agree.
WorldResult train_processes(const WorldSetup& setup, std::size_t passes) {
  const SharedArray<WorldResult> results(static_cast<std::size_t>(setup.ranks));
  RankProcesses(setup.ranks, {.deadline_ns = kSlack * 20 * kSecondNs}).run([&](zc_comm* comm, std::int32_t rank) {
    RankEngine engine(comm, setup);
    engine.load();
    for (std::size_t step = 0; step < kSteps; ++step) engine.step(step, passes);
    results[rank] = {engine.digest(), engine.seen(), engine.last_norm().norm};
    RANK_OK(zc_barrier(comm, nullptr));  // others may read this rank's shard until here
  });
  for (const WorldResult& result : results) EXPECT_EQ(result, results[0]);
  return results[0];
}

struct Case {
  const char* name;
  std::size_t passes;
  zc_accumulation accumulation;
  zc_slices slices;
  bool drop_released;
};
constexpr Case kCases[] = {{"one pass", 1, ZC_ACCUMULATE_REDUCE_EACH, ZC_SLICES_CLAIMED, false},
                           {"two passes, added first", 2, ZC_ACCUMULATE_FIRST, ZC_SLICES_STATIC, true}};

class TrainingOfProcesses : public testing::TestWithParam<std::tuple<std::int32_t, zc_placement>> {};

TEST_P(TrainingOfProcesses, has_the_bits_of_thread_ranks_in_every_stage) {
  const auto& [ranks, placement] = GetParam();
  slice_of_table(0, ZC_DTYPE_F32, 1);  // made once for all children
  for (const bool odd : {false, true})
    for (const zc_stage stage : {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3})
      for (const Case& each : kCases) {
        if (kSanitized && (each.passes == 2) != (stage % 2 == 0)) continue;
        WorldSetup setup;
        setup.model = odd ? odd_with_short_giant() : data_model("tiny-gpt");
        setup.ranks = ranks;
        setup.layout.stage = stage;
        setup.layout.placement = placement;
        setup.layout.bucket_bytes = 65'536;
        setup.zero.micro_steps = static_cast<std::int32_t>(each.passes);
        setup.zero.accumulation = each.accumulation;
        setup.zero.slices = each.slices;
        setup.zero.drop_released = each.drop_released;
        setup.gradient_dtype = odd ? ZC_DTYPE_BF16 : ZC_DTYPE_NONE;
        setup.some_absent = true;
        setup.clip = 30;
        EXPECT_EQ(train_processes(setup, each.passes), train_world(setup, kSteps, each.passes))
            << setup.model.name << ", stage " << stage << ", " << each.name;
        if (HasFailure()) return;
      }
}

INSTANTIATE_TEST_SUITE_P(ranks, TrainingOfProcesses,
                         testing::Combine(testing::Values(1, 2, 3, 4, 8),
                                          testing::Values(ZC_PLACEMENT_PER_UNIT, ZC_PLACEMENT_FLAT)));

}  // namespace
}  // namespace zerocomm::test
