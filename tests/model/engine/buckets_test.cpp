// Gradients: in all interleavings every slice is reduced once, from whole slots of one pass, and every pass ends.
#include "model/engine/buckets.hpp"

#include "model/case.hpp"

namespace zerocomm::test {
namespace {

using Without = BucketsModel::Without;

TEST(BucketsModel, holds_for_two_ranks_in_every_order) {
  expect_holds("2 ranks, 2 buckets, 1 slot, 2 slices, 3 passes", BucketsModel{2, 2, 1, 2, 3}, {1'000'000, true});
  expect_holds("2 ranks, 3 buckets, 1 slot, 2 slices, 2 passes", BucketsModel{2, 3, 1, 2, 2}, {1'000'000, true});
  expect_holds("2 ranks, 3 buckets, 2 slots, 1 slice, 2 passes", BucketsModel{2, 3, 2, 1, 2});
  expect_holds("2 ranks, 3 buckets, 2 slots, 2 slices", BucketsModel{2, 3, 2, 2, 1});
  expect_holds("2 ranks, 4 buckets, 1 slot", BucketsModel{2, 4, 1, 1, 1});
  expect_holds("2 ranks, 4 buckets, 2 slots", BucketsModel{2, 4, 2, 1, 1});
}

TEST(BucketsModel, holds_for_three_ranks_in_every_order) {
  expect_holds("3 ranks, 2 buckets, 1 slot, 1 slice, 2 passes", BucketsModel{3, 2, 1, 1, 2});
  expect_holds("3 ranks, 2 buckets, 1 slot, 3 slices", BucketsModel{3, 2, 1, 3, 1});
  expect_holds("3 ranks, 3 buckets, 1 slot", BucketsModel{3, 3, 1, 1, 1});
  if (kSmallCases) return;
  expect_holds("3 ranks, 2 buckets, 2 slots, 2 slices", BucketsModel{3, 2, 2, 2, 1});
  expect_holds("3 ranks, 3 buckets, 2 slots", BucketsModel{3, 3, 2, 1, 1});
  expect_holds("3 ranks, 4 buckets, 1 slot", BucketsModel{3, 4, 1, 1, 1});
}

TEST(BucketsModel, holds_for_three_ranks_in_three_orders) {
  expect_holds("3 ranks, 3 buckets, 2 slots, 2 passes", BucketsModel{3, 3, 2, 1, 2, {"012", "210", "120"}});
  if (!kSmallCases) expect_holds("3 ranks, 4 buckets, 2 slots", BucketsModel{3, 4, 2, 1, 1, {"0123", "3210", "1302"}});
}

TEST(BucketsModel, holds_when_other_threads_help) {
  expect_holds("2 ranks, 2 buckets, 1 slot, 2 slices, 2 helpers", BucketsModel{2, 2, 1, 2, 1, {}, 2});
  expect_holds("2 ranks, 2 buckets, 2 slots, 2 passes, 1 helper", BucketsModel{2, 2, 2, 1, 2, {}, 1});
  if (!kSmallCases) expect_holds("3 ranks, 2 buckets, 2 slots, 1 helper", BucketsModel{3, 2, 2, 1, 1, {}, 1});
}

constexpr Verdict kBroken = Verdict::broken, kHangs = Verdict::deadlock;
const Control<BucketsModel> kControls[] = {
    {"reserved_slot", {2, 2, 1, 1, 1, {}, 0, Without::reserved_slot}, kHangs, "a pass does not end"},
    {"reserved_slot_of_two", {2, 4, 2, 1, 1, {}, 0, Without::reserved_slot}, kHangs, "a pass does not end"},
    {"slot_until_reduced", {2, 2, 1, 1, 1, {}, 0, Without::slot_until_reduced}, kBroken, "reads a slot"},
    {"copy_before_arrival", {2, 1, 1, 1, 1, {}, 0, Without::copy_before_arrival}, kBroken, "while its owner fills it"},
    {"pass_in_arrival", {2, 1, 1, 1, 2, {}, 0, Without::pass_in_arrival}, kBroken, "reads a slot"},
    {"arrivals_of_all", {2, 1, 1, 1, 1, {}, 0, Without::arrivals_of_all}, kBroken, "reads a slot"},
    {"exchange_of_claims", {2, 1, 1, 1, 1, {}, 0, Without::exchange_of_claims}, kBroken, "reduced twice"},
    {"pass_in_claim", {2, 1, 1, 1, 2, {}, 0, Without::pass_in_claim}, kHangs, "a pass does not end"},
    {"slice_in_hand_finished", {2, 1, 1, 1, 1, {}, 0, Without::slice_in_hand_finished}, kHangs, "a pass does not end"},
    {"one_addition", {2, 1, 1, 2, 1, {}, 0, Without::one_addition}, kHangs, "a pass does not end"},
    {"all_stored_before_completed",
     {2, 1, 1, 2, 1, {}, 0, Without::all_stored_before_completed},
     kBroken,
     "is called reduced and is not"},
    {"count_of_completed", {2, 1, 1, 1, 2, {}, 0, Without::count_of_completed}, kHangs, "a pass does not end"},
    {"end_until_reduced", {2, 1, 1, 1, 1, {}, 0, Without::end_until_reduced}, kBroken, "not complete"},
};

class RemovedFromBuckets : public testing::TestWithParam<Control<BucketsModel>> {};
TEST_P(RemovedFromBuckets, is_found) { expect_needed(GetParam()); }
INSTANTIATE_TEST_SUITE_P(, RemovedFromBuckets, testing::ValuesIn(kControls), kNameOfControl);

}  // namespace
}  // namespace zerocomm::test
