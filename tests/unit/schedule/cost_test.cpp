#include "schedule/cost.hpp"

#include "base/check.hpp"
#include "schedule/catalogue.hpp"
#include "schedule/schedule_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <utility>

namespace zerocomm::schedule {
namespace {

TEST(Cost, all_reduce_of_eight_ranks_takes_two_latencies_and_fourteen_chunks) {
  const Cost cost = cost_of(build(make_key(Collective::all_reduce, "direct", 8)), Partition::unit(8));
  EXPECT_EQ(cost.critical_path, (PathLength{2, 14}));
  for (const Traffic& rank : cost.ranks) EXPECT_EQ(rank, (Traffic{14, 14, 14, 14}));
}

TEST(Cost, that_64_bits_cannot_count_is_refused) {
  const Schedule ring = build(make_key(Collective::all_reduce, "ring", 3));
  for (const auto& [count, links] :
       {std::pair{SIZE_MAX - 4, LinkModel{}}, std::pair{std::size_t{9}, LinkModel{1000, UINT64_MAX / 9}},
        std::pair{std::size_t{9}, LinkModel{UINT64_MAX / 4, 1}}}) {
    try {
      cost_of(ring, Partition::even(count, 3), links);
      ADD_FAILURE() << "nothing was thrown for " << count;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ZC_OVERFLOW) << error.what();
    }
  }
}

// 1,048,576 elements on 8 ranks: 7/8 of them cross per rank, 1,835,008 bytes at 2 bytes each.
TEST(Cost, a_gather_moves_the_elements_that_the_formula_says) {
  const Cost cost = cost_of(build(make_key(Collective::all_gather, "direct", 8)), Partition::even(1048576, 8));
  for (const Traffic& rank : cost.ranks) {
    EXPECT_EQ(rank.elements_received * 2, 1835008u);
    EXPECT_EQ(rank.elements_sent * 2, 1835008u);
  }
}

TEST(Cost, uneven_blocks_are_counted_in_elements) {
  const std::array<std::size_t, 3> counts = {5, 0, 2};
  const Cost cost = cost_of(build(make_key(Collective::all_gather, "direct", 3)), Partition::of_counts(counts));
  EXPECT_EQ(cost.ranks[0], (Traffic{2, 10, 2, 2}));
  EXPECT_EQ(cost.ranks[1], (Traffic{2, 0, 2, 7}));
  EXPECT_EQ(cost.critical_path, (PathLength{1, 10}));
}

TEST(Cost, the_ratio_of_latency_to_bandwidth_decides_which_path_is_longest) {
  // Rank 2 hears from rank 0 through rank 1 with little data, or directly with much.
  const Schedule schedule = from_text(R"(schedule broadcast hand ranks=3 root=0 chunks=9 lanes=1 scratch=0
rank 0
lane 0
  send to=1 input[0]
  send to=2 input[0..8]
rank 1
lane 0
  recv from=0 output[0]
  send to=2 output[0]
rank 2
lane 0
  recv from=1 output[0]
  recv from=0 output[0..8]
)");
  EXPECT_EQ(cost_of(schedule, Partition::unit(9), {1, 100}).critical_path, (PathLength{1, 10}));
  EXPECT_EQ(cost_of(schedule, Partition::unit(9), {100, 1}).critical_path, (PathLength{2, 2}));
}

TEST(Cost, waits_and_scratch_are_on_the_clock) {
  // Lane 1 sends what lane 0 received; the second use of scratch waits until the first was taken.
  const Schedule schedule = from_text(R"(schedule broadcast hand ranks=2 root=0 chunks=2 lanes=2 scratch=1
rank 0
lane 0
  copy input[1] -> scratch[0]
  send to=1 scratch[0]
  copy input[0] -> scratch[0]
  send to=1 scratch[0]
lane 1
rank 1
lane 0
  recv from=0 output[1]
  recv from=0 output[0]
lane 1
  send to=0 none wait=0:1
)");
  Schedule matched = schedule;
  matched.ranks[0].lanes[1].steps.push_back(from_text(R"(schedule barrier x ranks=1 root=0 chunks=0 lanes=1 scratch=0
rank 0
lane 0
  recv from=1 none
)")
                                                .ranks[0]
                                                .lanes[0]
                                                .steps[0]);
  const std::array<std::size_t, 2> counts = {10, 3};
  EXPECT_EQ(cost_of(matched, Partition::of_counts(counts)).critical_path, (PathLength{3, 13}));
}

TEST(Cost, a_schedule_that_cannot_run_is_refused) {
  EXPECT_THROW(cost_of(build(make_key(Collective::all_reduce, "direct", 4)), Partition::unit(5)), Error);
  EXPECT_THROW(cost_of(from_text("schedule barrier x ranks=2 root=0 chunks=0 lanes=1 scratch=0\nrank 0\nlane 0\n"
                                 "  recv from=1 none\n  send to=1 none\nrank 1\nlane 0\n  recv from=0 none\n"
                                 "  send to=0 none\n"),
                       Partition::unit(0)),
               Error);
  EXPECT_THROW(cost_of(from_text("schedule barrier x ranks=2 root=0 chunks=0 lanes=1 scratch=0\nrank 0\nlane 0\n"
                                 "  send to=1 none\nrank 1\nlane 0\n"),
                       Partition::unit(0)),
               Error);
}

TEST(Cost, a_path_reads_well) {
  EXPECT_EQ(path_text({}), "0");
  EXPECT_EQ(path_text({2, 0}), "2a");
  EXPECT_EQ(path_text({0, 3}), "3b");
  EXPECT_EQ(path_text({2, 14}), "2a + 14b");
}

// A change of any cost shows up as a diff of this file.
TEST(Cost, costs_of_the_catalogue_are_the_golden_ones) {
  std::ostringstream lines;
  lines
      << "collective,algorithm,ranks,messages_all_ranks,chunks_sent_most,chunks_received_most,scratch,critical_path\n";
  for (const Algorithm& row : algorithms())
    for (const std::uint32_t p : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 16u, 33u}) {
      // Blocks of one chunk each; as many chunks as ranks where there are no blocks.
      Key key = make_key(row.collective, row.name, p);
      if (row.collective == Collective::broadcast || row.collective == Collective::reduce) key.chunks = p;
      const Cost cost = cost_of(build(key), Partition::unit(key.chunks));
      std::uint64_t messages = 0, sent = 0, received = 0;
      for (const Traffic& rank : cost.ranks) {
        messages += rank.messages_sent;
        sent = std::max(sent, rank.elements_sent);
        received = std::max(received, rank.elements_received);
      }
      lines << collective_name(row.collective) << ',' << row.name << ',' << p << ',' << messages << ',' << sent << ','
            << received << ',' << scratch_chunks(key) << ',' << path_text(cost.critical_path) << '\n';
    }
  std::ifstream file(ZC_PROJECT_DIR "/tests/unit/schedule/golden/costs.csv");
  std::ostringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(lines.str(), golden.str()) << lines.str();
}

}  // namespace
}  // namespace zerocomm::schedule
