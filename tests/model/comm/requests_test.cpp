// Requests: in all interleavings posts are found whole, all ranks come to one verdict, and every slot comes back.
#include "model/comm/requests.hpp"

#include "model/case.hpp"

namespace zerocomm::test {
namespace {

using Without = RequestTable::Without;

TEST(RequestTable, holds_for_two_and_three_ranks) {
  expect_holds("2 ranks, 2 keys, 1 slot", RequestTable{2, 2, 1});
  expect_holds("2 ranks, 2 keys in two orders, 2 slots", RequestTable{2, 2, 2, 1});
  expect_holds("3 ranks, 1 key", RequestTable{3, 1, 1});
}

TEST(RequestTable, holds_when_requests_are_canceled_anywhere) {
  expect_holds("2 ranks, both cancel", RequestTable{2, 1, 1, 0, {1, 1}});
  expect_holds("2 ranks, 2 keys, 1 slot, one cancels", RequestTable{2, 2, 1, 0, {1, 0}});
  expect_holds("3 ranks, all cancel", RequestTable{3, 1, 1, 0, {1, 1, 1}});
}

constexpr Verdict kBroken = Verdict::broken, kHangs = Verdict::deadlock;
const Control<RequestTable> kControls[] = {
    {"post_before_hash",
     {2, 1, 1, 0, {}, Without::post_before_hash},
     kBroken,
     "reads a post while its owner writes it"},
    {"post_before_key", {2, 2, 1, 0, {}, Without::post_before_key}, kBroken, "reads a post while its owner writes it"},
    {"comparison_of_keys", {2, 2, 2, 0, {}, Without::comparison_of_keys}, kBroken, "reads the post of another request"},
    {"take", {2, 1, 1, 0, {1, 0}, Without::take}, kBroken, "different verdicts"},
    {"take_of_all", {2, 1, 1, 0, {1, 0}, Without::take_of_all}, kBroken, "different verdicts"},
    {"exchange_of_cancel", {2, 1, 1, 0, {1, 0}, Without::exchange_of_cancel}, kBroken, "different verdicts"},
    {"seen", {2, 2, 1, 0, {}, Without::seen}, kHangs, "a rank hangs"},
    {"seen_of_all", {3, 2, 1, 0, {}, Without::seen_of_all}, kHangs, "a rank hangs"},
    {"canceled_stays", {2, 1, 1, 0, {1, 0}, Without::canceled_stays}, kHangs, "a rank hangs"},
    {"wait_for_finished", {2, 1, 1, 0, {}, Without::wait_for_finished}, kBroken, "after its owner's request was over"},
};

class RemovedFromRequestTable : public testing::TestWithParam<Control<RequestTable>> {};
TEST_P(RemovedFromRequestTable, is_found) { expect_needed(GetParam()); }
INSTANTIATE_TEST_SUITE_P(, RemovedFromRequestTable, testing::ValuesIn(kControls), kNameOfControl);

}  // namespace
}  // namespace zerocomm::test
