// Staging: in all interleavings a slot is read whole, once it is filled and before it is filled again.
#include "model/comm/staging.hpp"

#include "model/case.hpp"

namespace zerocomm::test {
namespace {

using Without = StagingModel::Without;

TEST(StagingModel, holds_for_two_and_three_ranks) {
  expect_holds("2 ranks, 3 calls of 6 rounds", StagingModel{2, 3, 6}, {1'000'000, true});
  expect_holds("3 ranks, 4 calls of 1 round", StagingModel{3, 4, 1}, {1'000'000, true});
  expect_holds("3 ranks, 1 call of 6 rounds", StagingModel{3, 1, 6}, {1'000'000, true});
  expect_holds("2 ranks, 3 calls of 6 rounds, collected", StagingModel{2, 3, 6, true}, {1'000'000, true});
  expect_holds("3 ranks, 1 call of 4 rounds, collected", StagingModel{3, 1, 4, true}, {1'000'000, true});
}

constexpr Verdict kBroken = Verdict::broken, kHangs = Verdict::deadlock;
const Control<StagingModel> kControls[] = {
    {"wait_for_posts", {2, 2, 1, false, Without::wait_for_posts}, kBroken, "while its owner fills it"},
    {"second_slot", {2, 2, 1, false, Without::second_slot}, kHangs, "a rank hangs"},
    {"set_back", {2, 3, 1, false, Without::set_back}, kBroken, "reads a slot"},
    {"set_back_before_post", {2, 3, 1, false, Without::set_back_before_post}, kBroken, "reads a slot"},
    {"wait_until_filled", {2, 1, 1, false, Without::wait_until_filled}, kBroken, "before it is filled"},
    {"filled_of_all", {2, 1, 1, false, Without::filled_of_all}, kBroken, "before it is filled"},
    {"fourth_slot", {2, 1, 6, false, Without::last_slot}, kBroken, "while its owner fills it"},
    {"third_slot", {2, 1, 6, true, Without::last_slot}, kBroken, "while its owner fills it"},
    {"fill_before_filled", {2, 1, 1, false, Without::fill_before_filled}, kBroken, "while its owner fills it"},
    {"wait_until_taken", {2, 1, 1, true, Without::wait_until_taken}, kBroken, "before it is filled"},
    {"count_of_empty_share", {2, 1, 1, false, Without::count_of_empty_share}, kHangs, "a rank hangs"},
};

class RemovedFromStaging : public testing::TestWithParam<Control<StagingModel>> {};
TEST_P(RemovedFromStaging, is_found) { expect_needed(GetParam()); }
INSTANTIATE_TEST_SUITE_P(, RemovedFromStaging, testing::ValuesIn(kControls), kNameOfControl);

}  // namespace
}  // namespace zerocomm::test
