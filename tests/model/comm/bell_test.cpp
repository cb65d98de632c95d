// Bells: in all interleavings nobody sleeps on while what it waits for has happened and nobody is about to ring.
#include "model/comm/bell.hpp"

#include "model/case.hpp"

namespace zerocomm::test {
namespace {

using Without = BellModel::Without;

TEST(BellModel, loses_no_wake) {
  expect_holds("2 ranks, 3 rounds", BellModel{2, 3}, {1'000'000, true});
  expect_holds("2 ranks, 3 rounds, 2 sleeps end early", BellModel{2, 3, 0, 2}, {1'000'000, true});
  expect_holds("2 ranks, 2 rounds, one has 2 threads", BellModel{2, 2, 1});
  expect_holds("3 ranks", BellModel{3, 1}, {1'000'000, true});
  if (!kSmallCases) expect_holds("2 ranks, both have 2 threads", BellModel{2, 1, 2});
}

constexpr Verdict kHangs = Verdict::deadlock;
const Control<BellModel> kControls[] = {
    {"store_before_ring", {2, 1, 0, 0, Without::store_before_ring}, kHangs, "a wake is lost"},
    {"count_of_rings", {2, 1, 0, 0, Without::count_of_rings}, kHangs, "a wake is lost"},
    {"wake", {2, 1, 0, 0, Without::wake}, kHangs, "a wake is lost"},
    {"wake_of_all", {2, 1, 1, 0, Without::wake_of_all}, kHangs, "a wake is lost"},
    {"count_of_sleepers", {2, 1, 0, 0, Without::count_of_sleepers}, kHangs, "a wake is lost"},
    {"second_look", {2, 1, 0, 0, Without::second_look}, kHangs, "a wake is lost"},
    {"count_before_look", {2, 1, 0, 0, Without::count_before_look}, kHangs, "a wake is lost"},
    {"comparison_before_sleep", {2, 1, 0, 0, Without::comparison_before_sleep}, kHangs, "a wake is lost"},
};

class RemovedFromBell : public testing::TestWithParam<Control<BellModel>> {};
TEST_P(RemovedFromBell, is_found) { expect_needed(GetParam()); }
INSTANTIATE_TEST_SUITE_P(, RemovedFromBell, testing::ValuesIn(kControls), kNameOfControl);

}  // namespace
}  // namespace zerocomm::test
