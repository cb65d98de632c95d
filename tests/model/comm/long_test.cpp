// The larger cases of the models of a communicator.
#include "model/case.hpp"
#include "model/comm/bell.hpp"
#include "model/comm/first_error.hpp"
#include "model/comm/requests.hpp"
#include "model/comm/sequence_slots.hpp"

namespace zerocomm::test {
namespace {

using Call = SequenceSlots::Call;

TEST(BellModelLong, loses_no_wake) {
  expect_holds("3 ranks, 2 rounds", BellModel{3, 2});
  expect_holds("3 ranks, one has 2 threads", BellModel{3, 1, 1});
}

TEST(SequenceSlotsLong, hold_when_deadlines_pass_and_a_rank_is_stopped) {
  expect_holds("3 ranks, 2 calls, 2 deadlines, 1 stop", SequenceSlots{3, {Call::data, Call::data}, 2, 0, 1});
  expect_holds("3 ranks, 3 calls, 2 deadlines", SequenceSlots{3, {Call::data, Call::odd_data, Call::data}, 2});
}

TEST(SequenceSlotsLong, hold_when_deadlines_pass_and_ranks_die) {
  expect_holds("3 ranks, 3 calls, 2 deadlines, 2 deaths",
               SequenceSlots{3, {Call::data, Call::barrier, Call::data}, 2, 2});
}

TEST(FirstErrorModelLong, holds_for_three_ranks_of_which_two_die) {
  expect_holds("3 ranks, 2 deaths, 1 deadline", FirstError{3, {1, 1, 1}, 2, 1, 0, true});
  expect_holds("3 ranks, 2 calls, 2 deaths", FirstError{3, {2, 2, 2}, 2});
  expect_holds("3 ranks, 1 death, 1 abort", FirstError{3, {1, 1, 1}, 1, 0, 1, true});
}

TEST(RequestTableLong, holds_when_requests_are_canceled_anywhere) {
  expect_holds("2 ranks, 2 keys in two orders, 2 slots, both cancel", RequestTable{2, 2, 2, 1, {3, 3}});
  expect_holds("3 ranks, 2 keys, 1 slot, one cancels", RequestTable{3, 2, 1, 0, {1, 0, 0}});
}

}  // namespace
}  // namespace zerocomm::test
