// The first error: once it stands every survivor returns it, whoever dies at whatever step.
#include "model/comm/first_error.hpp"

#include "model/case.hpp"

namespace zerocomm::test {
namespace {

using Without = FirstError::Without;

TEST(FirstErrorModel, holds_for_two_ranks) {
  expect_holds("2 ranks, 2 calls", FirstError{2, {2, 2}}, {1'000'000, true});
  expect_holds("2 ranks, 2 calls, 1 death", FirstError{2, {2, 2}, 1}, {1'000'000, true});
  expect_holds("2 ranks, 2 calls, 1 death, 1 deadline, 1 abort", FirstError{2, {2, 2}, 1, 1, 1}, {4'000'000, true});
  expect_holds("2 ranks, 2 calls and 1", FirstError{2, {2, 1}, 1, 1}, {1'000'000, true});
}

TEST(FirstErrorModel, holds_for_three_ranks_of_which_two_die) {
  expect_holds("3 ranks, 1 call", FirstError{3, {1, 1, 1}}, {1'000'000, true});
  expect_holds("3 ranks, 1 call, 1 death", FirstError{3, {1, 1, 1}, 1});
  expect_holds("3 ranks, 1 call, 2 deaths", FirstError{3, {1, 1, 1}, 2});
  if (!kSmallCases) expect_holds("3 ranks, 2, 2 and 1 calls, 2 deaths", FirstError{3, {2, 2, 1}, 2});
}

TEST(FirstErrorModel, holds_while_a_rank_stays_away) {
  expect_holds("3 ranks, 1 death", FirstError{3, {1, 1, 1}, 1, 0, 0, true});
  expect_holds("3 ranks, 1 deadline", FirstError{3, {1, 1, 1}, 0, 1, 0, true});
  if (!kSmallCases) expect_holds("3 ranks, 1 abort", FirstError{3, {1, 1, 1}, 0, 0, 1, true});
}

constexpr Verdict kBroken = Verdict::broken, kHangs = Verdict::deadlock;
const Control<FirstError> kControls[] = {
    {"one_word", {2, {1, 1}, 1, 1, 0, false, Without::one_word}, kHangs, "a survivor hangs"},
    {"record_before_word", {2, {1, 1}, 1, 0, 0, false, Without::record_before_word}, kBroken, "before it is whole"},
    {"own_lock", {2, {1, 1}, 1, 1, 0, false, Without::own_lock}, kBroken, "before it is whole"},
    {"look_before_writing", {2, {1, 1}, 1, 1, 0, false, Without::look_before_writing}, kBroken, "before it is whole"},
    {"ring_when_not_first", {3, {1, 1, 1}, 1, 1, 0, true, Without::ring_when_not_first}, kHangs, "a survivor hangs"},
    {"ring", {2, {1, 1}, 1, 0, 0, false, Without::ring}, kHangs, "a survivor hangs"},
    {"look_at_error", {2, {1, 1}, 1, 0, 0, false, Without::look_at_error}, kHangs, "a survivor hangs"},
    {"second_look_at_post",
     {2, {1, 1}, 0, 0, 0, false, Without::second_look_at_post},
     kBroken,
     "of a rank that has come"},
    {"watch_beyond_who_left",
     {3, {2, 2, 1}, 1, 0, 0, false, Without::watch_beyond_who_left},
     kHangs,
     "a survivor hangs"},
    {"keeper", {2, {1, 1}, 1, 0, 0, false, Without::keeper}, kHangs, "a survivor hangs"},
};

class RemovedFromFirstError : public testing::TestWithParam<Control<FirstError>> {};
TEST_P(RemovedFromFirstError, is_found) { expect_needed(GetParam()); }
INSTANTIATE_TEST_SUITE_P(, RemovedFromFirstError, testing::ValuesIn(kControls), kNameOfControl);

}  // namespace
}  // namespace zerocomm::test
