// Staging: in all interleavings a half is read whole, once it is filled and before it is filled again.
#include "model/comm/staging.hpp"

#include "model/case.hpp"

namespace zerocomm::test {
namespace {

using Without = StagingModel::Without;

TEST(StagingModel, holds_for_two_and_three_ranks) {
  expect_holds("2 ranks, 8 rounds", StagingModel{2, 8}, {1'000'000, true});
  expect_holds("3 ranks, 8 rounds", StagingModel{3, 8}, {1'000'000, true});
  expect_holds("3 ranks, 8 rounds, of rank 0", StagingModel{3, 8, true}, {1'000'000, true});
}

// Whoever has filled round k has left round k - 1, so who waits for all to fill waits for all to have read, too.
TEST(StagingModel, needs_no_wait_for_drained_while_everybody_waits_for_all_to_fill) {
  expect_holds("3 ranks, 8 rounds", StagingModel{3, 8, false, Without::wait_until_drained}, {1'000'000, true});
}

constexpr Verdict kBroken = Verdict::broken, kHangs = Verdict::deadlock;
const Control<StagingModel> kControls[] = {
    {"wait_until_drained", {3, 3, true, Without::wait_until_drained}, kBroken, "while its owner fills it"},
    {"wait_for_the_round_before",
     {3, 3, true, Without::wait_for_the_round_before},
     kBroken,
     "while its owner fills it"},
    {"drained_of_all", {3, 3, true, Without::drained_of_all}, kBroken, "while its owner fills it"},
    {"wait_until_filled", {2, 1, false, Without::wait_until_filled}, kBroken, "before it is filled"},
    {"filled_of_all", {2, 1, false, Without::filled_of_all}, kBroken, "before it is filled"},
    {"second_half", {2, 2, false, Without::second_half}, kBroken, "while its owner fills it"},
    {"fill_before_filled", {2, 1, false, Without::fill_before_filled}, kBroken, "while its owner fills it"},
    {"read_before_drained", {2, 3, true, Without::read_before_drained}, kBroken, "while its owner fills it"},
    {"count_of_empty_share", {2, 1, false, Without::count_of_empty_share}, kHangs, "a rank hangs"},
};

class RemovedFromStaging : public testing::TestWithParam<Control<StagingModel>> {};
TEST_P(RemovedFromStaging, is_found) { expect_needed(GetParam()); }
INSTANTIATE_TEST_SUITE_P(, RemovedFromStaging, testing::ValuesIn(kControls), kNameOfControl);

}  // namespace
}  // namespace zerocomm::test
