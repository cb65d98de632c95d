#include "schedule/catalogue.hpp"
#include "schedule/schedule_text.hpp"

#include "base/check.hpp"

#include <gtest/gtest.h>

namespace zerocomm::schedule {
namespace {

TEST(DirectSchedule, all_reduce_of_three_ranks_reads_as_intended) {
  EXPECT_EQ(to_text(build(make_key(Collective::all_reduce, "direct", 3))),
            "schedule all_reduce direct ranks=3 root=0 chunks=3 lanes=1 scratch=0\n"
            "rank 0\n"
            "lane 0\n"
            "  send to=1 input[1]\n"
            "  send to=2 input[2]\n"
            "  copy input[0] -> output[0] hold\n"
            "  recv_reduce from=1 output[0] hold\n"
            "  recv_reduce from=2 output[0]\n"
            "  send to=1 output[0]\n"
            "  send to=2 output[0]\n"
            "  recv from=2 output[2]\n"
            "  recv from=1 output[1]\n"
            "rank 1\n"
            "lane 0\n"
            "  send to=2 input[2]\n"
            "  send to=0 input[0]\n"
            "  recv from=0 output[1] hold\n"
            "  reduce input[1] -> output[1] hold\n"
            "  recv_reduce from=2 output[1]\n"
            "  send to=2 output[1]\n"
            "  send to=0 output[1]\n"
            "  recv from=0 output[0]\n"
            "  recv from=2 output[2]\n"
            "rank 2\n"
            "lane 0\n"
            "  send to=0 input[0]\n"
            "  send to=1 input[1]\n"
            "  recv from=0 output[2] hold\n"
            "  recv_reduce from=1 output[2] hold\n"
            "  reduce input[2] -> output[2]\n"
            "  send to=0 output[2]\n"
            "  send to=1 output[2]\n"
            "  recv from=1 output[1]\n"
            "  recv from=0 output[0]\n");
}

TEST(DirectSchedule, chunks_of_a_block_travel_as_one_message_per_lane) {
  EXPECT_EQ(to_text(build({Collective::all_gather, "direct", 2, 0, 12, 2})),
            "schedule all_gather direct ranks=2 root=0 chunks=12 lanes=2 scratch=0\n"
            "rank 0\n"
            "lane 0\n"
            "  copy input[0..2] -> output[0..2]\n"
            "  send to=1 output[0..2]\n"
            "  recv from=1 output[6..8]\n"
            "lane 1\n"
            "  copy input[3..5] -> output[3..5]\n"
            "  send to=1 output[3..5]\n"
            "  recv from=1 output[9..11]\n"
            "rank 1\n"
            "lane 0\n"
            "  copy input[6..8] -> output[6..8]\n"
            "  send to=0 output[6..8]\n"
            "  recv from=0 output[0..2]\n"
            "lane 1\n"
            "  copy input[9..11] -> output[9..11]\n"
            "  send to=0 output[9..11]\n"
            "  recv from=0 output[3..5]\n");
}

TEST(Catalogue, one_rank_sends_nothing) {
  for (const Algorithm& row : algorithms()) {
    const RankSchedule alone = build_rank(make_key(row.collective, row.name, 1), 0);
    for (const Step& step : alone.lanes[0].steps) EXPECT_EQ(step.op(), Op::copy);
  }
}

TEST(DirectSchedule, all_to_all_sends_a_row_and_receives_a_column) {
  EXPECT_EQ(to_text(build(make_key(Collective::all_to_all, "direct", 2))),
            "schedule all_to_all direct ranks=2 root=0 chunks=4 lanes=1 scratch=0\n"
            "rank 0\n"
            "lane 0\n"
            "  send to=1 input[1]\n"
            "  copy input[0] -> output[0]\n"
            "  recv from=1 output[2]\n"
            "rank 1\n"
            "lane 0\n"
            "  send to=0 input[2]\n"
            "  copy input[3] -> output[3]\n"
            "  recv from=0 output[1]\n");
}

TEST(CirculantSchedule, blocks_that_wrap_travel_as_two_messages) {
  const std::string shown =
      "schedule reduce_scatter circulant ranks=4 root=0 chunks=4 lanes=1 scratch=2\n"
      "rank 0\n"
      "lane 0\n"
      "  send to=2 input[2..3]\n"
      "  copy input[0..1] -> scratch[0..1] hold\n"
      "  recv_reduce from=2 scratch[0..1]\n"
      "  send to=1 scratch[1]\n"
      "  copy scratch[0] -> output[0] hold\n"
      "  recv_reduce from=3 output[0]\n"
      "rank 1\n"
      "lane 0\n"
      "  send to=3 input[3]\n"
      "  send to=3 input[0]\n"
      "  copy input[1..2] -> scratch[0..1] hold\n"
      "  recv_reduce from=3 scratch[0..1]\n"
      "  send to=2 scratch[1]\n"
      "  copy scratch[0] -> output[1] hold\n";
  EXPECT_EQ(to_text(build(make_key(Collective::reduce_scatter, "circulant", 4))).substr(0, shown.length()), shown);
}

TEST(BinomialSchedule, a_subtree_collects_in_scratch) {
  EXPECT_EQ(to_text(build(make_key(Collective::gather_to_root, "binomial", 4, 1))),
            "schedule gather_to_root binomial ranks=4 root=1 chunks=4 lanes=1 scratch=2\n"
            "rank 0\n"
            "lane 0\n"
            "  send to=3 input[0]\n"
            "rank 1\n"
            "lane 0\n"
            "  copy input[1] -> output[1]\n"
            "  recv from=2 output[2]\n"
            "  recv from=3 output[3]\n"
            "  recv from=3 output[0]\n"
            "rank 2\n"
            "lane 0\n"
            "  send to=1 input[2]\n"
            "rank 3\n"
            "lane 0\n"
            "  copy input[3] -> scratch[0]\n"
            "  recv from=0 scratch[1]\n"
            "  send to=1 scratch[0]\n"
            "  send to=1 scratch[1]\n");
}

TEST(DirectSchedule, a_rank_builds_the_same_alone_as_with_all) {
  const Key key = make_key(Collective::reduce_scatter, "direct", 5, 0, 2);
  const Schedule all = build(key);
  for (std::uint32_t rank = 0; rank < 5; ++rank) EXPECT_EQ(build_rank(key, rank), all.ranks[rank]);
}

void expect_refused(const Key& key, zc_status status) {
  try {
    build(key);
    ADD_FAILURE() << "built";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
  }
}

TEST(Catalogue, a_key_without_a_schedule_is_refused) {
  expect_refused({Collective::all_reduce, "binomial", 2, 0, 2, 1}, ZC_UNSUPPORTED);
  expect_refused({Collective::all_gather, "circulant", 2, 0, 4, 2}, ZC_UNSUPPORTED);  // one lane
  expect_refused({Collective::all_to_all, "direct", 2, 0, 2, 1}, ZC_ARGUMENT);        // no row for each rank
  expect_refused({Collective::all_to_all, "direct", 1u << 16, 0, 1, 1}, ZC_ARGUMENT);
  expect_refused({Collective::all_reduce, "direct", 0, 0, 2, 1}, ZC_ARGUMENT);
  expect_refused({Collective::all_reduce, "direct", 2, 1, 2, 1}, ZC_ARGUMENT);  // a root that means nothing
  expect_refused({Collective::broadcast, "direct", 2, 2, 2, 1}, ZC_ARGUMENT);
  expect_refused({Collective::all_gather, "direct", 2, 0, 3, 1}, ZC_ARGUMENT);
  expect_refused({Collective::all_gather, "direct", 2, 0, 2, 2}, ZC_ARGUMENT);
  expect_refused({Collective::all_gather, "direct", 2, 0, 0, 1}, ZC_ARGUMENT);
  expect_refused({Collective::barrier, "direct", 2, 0, 1, 1}, ZC_ARGUMENT);
  expect_refused({Collective::barrier, "direct", 2, 0, 0, 0}, ZC_ARGUMENT);
  expect_refused({Collective::barrier, "direct", 2, 0, 0, 256}, ZC_ARGUMENT);
  EXPECT_THROW(build_rank(make_key(Collective::barrier, "direct", 2), 2), Error);
  EXPECT_THROW(make_key(Collective::all_reduce, "direct", 1u << 31, 0, 2), Error);
}

}  // namespace
}  // namespace zerocomm::schedule
