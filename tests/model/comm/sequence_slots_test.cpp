// Calls of a communicator: in all interleavings nobody reads what is being written or was given back.
#include "model/comm/sequence_slots.hpp"

#include "model/case.hpp"

namespace zerocomm::test {
namespace {

using Call = SequenceSlots::Call;
using Without = SequenceSlots::Without;
constexpr Call kCalls[] = {Call::data, Call::barrier, Call::odd_data, Call::odd_barrier};

TEST(SequenceSlots, hold_for_all_rows_of_three_calls) {
  for (const int ranks : {2, 3}) {
    std::size_t states = 0;
    for (const Call a : kCalls)
      for (const Call b : kCalls)
        for (const Call c : kCalls) {
          const Finding finding = explore(SequenceSlots{ranks, {a, b, c}}, {100'000, true});
          ASSERT_EQ(finding.verdict, Verdict::holds) << trace_of(finding);
          states += finding.states;
        }
    std::printf("%d ranks, 64 rows of three calls: hold, %zu states\n", ranks, states);
  }
}

TEST(SequenceSlots, hold_for_six_calls_of_three_ranks) {
  expect_holds("3 ranks, 6 calls",
               SequenceSlots{3, {Call::data, Call::barrier, Call::data, Call::odd_data, Call::data, Call::data}},
               {1'000'000, true});
}

TEST(SequenceSlots, hold_when_deadlines_pass_anywhere) {
  expect_holds("2 ranks, 2 deadlines", SequenceSlots{2, {Call::data, Call::barrier, Call::data}, 2}, {100'000, true});
  expect_holds("3 ranks, 2 deadlines", SequenceSlots{3, {Call::data, Call::odd_data, Call::data}, 2});
}

TEST(SequenceSlots, hold_when_ranks_die_anywhere) {
  expect_holds("2 ranks, 1 deadline, 1 death", SequenceSlots{2, {Call::data, Call::barrier, Call::data}, 1, 1},
               {100'000, true});
  expect_holds("3 ranks, 1 deadline, 2 deaths", SequenceSlots{3, {Call::data, Call::data}, 1, 2});
}

TEST(SequenceSlots, hold_when_a_rank_is_stopped_and_given_up) {
  expect_holds("2 ranks, 1 deadline", SequenceSlots{2, {Call::data, Call::data}, 1, 0, 1}, {100'000, true});
  if (!kSmallCases) expect_holds("3 ranks, 1 deadline", SequenceSlots{3, {Call::data}, 1, 0, 1});
}

constexpr Verdict kBroken = Verdict::broken, kHangs = Verdict::deadlock;
const std::vector<Call> kOne{Call::data}, kTwo{Call::barrier, Call::barrier};
const Control<SequenceSlots> kControls[] = {
    {"wait_for_posts",
     {2, kOne, 0, 0, 0, Without::wait_for_posts},
     kBroken,
     "reads a record while its owner writes it"},
    {"second_slot", {2, kTwo, 0, 0, 0, Without::second_slot}, kBroken, "reads a record while its owner writes it"},
    {"record_before_sequence", {2, kOne, 0, 0, 0, Without::record_before_sequence}, kBroken, "reads a record while"},
    {"agreement", {2, {Call::odd_data}, 0, 0, 0, Without::agreement}, kBroken, "in a call that was a mismatch"},
    {"agreement_with_all",
     {3, {Call::odd_barrier}, 0, 0, 0, Without::agreement_with_all},
     kBroken,
     "different verdicts"},
    {"finished_after_move",
     {2, kOne, 0, 0, 0, Without::finished_after_move},
     kBroken,
     "after its owner's call returned"},
    {"finished_of_empty_share", {2, kOne, 0, 0, 0, Without::finished_of_empty_share}, kHangs, "a rank hangs"},
    {"finished_set_back",
     {2, {Call::data, Call::data, Call::data}, 0, 0, 0, Without::finished_set_back},
     kBroken,
     "after its owner's call returned"},
    {"wait_for_readers_out", {2, kOne, 0, 0, 0, Without::wait_for_readers_out}, kBroken, "after its owner's call"},
    {"busy_while_moving", {2, kOne, 1, 0, 0, Without::busy_while_moving}, kBroken, "after its owner's call returned"},
    {"busy_before_check", {2, kOne, 1, 0, 0, Without::busy_before_check}, kBroken, "after its owner's call returned"},
    {"check_of_error", {2, kOne, 1, 0, 0, Without::check_of_error}, kBroken, "after its owner's call returned"},
    {"readers_after_failed_post", {2, kOne, 1, 0, 0, Without::readers_after_failed_post}, kBroken, "after its owner's"},
    {"readers_after_late_check", {3, kOne, 1, 0, 0, Without::readers_after_late_check}, kBroken, "after its owner's"},
    {"readers_after_failed_end", {2, kOne, 1, 0, 0, Without::readers_after_failed_end}, kBroken, "after its owner's"},
    {"death_of_readers", {2, kOne, 0, 1, 0, Without::death_of_readers}, kHangs, "a rank hangs"},
    {"second_check_of_error", {2, kOne, 1, 0, 1, Without::second_check_of_error}, kBroken, "returns OK with what it"},
};

class RemovedFromSequenceSlots : public testing::TestWithParam<Control<SequenceSlots>> {};
TEST_P(RemovedFromSequenceSlots, is_found) { expect_needed(GetParam()); }
INSTANTIATE_TEST_SUITE_P(, RemovedFromSequenceSlots, testing::ValuesIn(kControls), kNameOfControl);

}  // namespace
}  // namespace zerocomm::test
