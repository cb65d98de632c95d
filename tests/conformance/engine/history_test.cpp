// 200 random legal programs over 2 to 5 ranks: right values, no deadlock.
#include "history.hpp"

namespace {

using zerocomm::test::run_history;

void run_range(std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) run_history(seed);
}

TEST(RandomHistories, diverging_ranks_read_and_reduce_the_right_values_1) { run_range(1, 50); }
TEST(RandomHistories, diverging_ranks_read_and_reduce_the_right_values_2) { run_range(51, 50); }
TEST(RandomHistories, diverging_ranks_read_and_reduce_the_right_values_3) { run_range(101, 50); }
TEST(RandomHistories, diverging_ranks_read_and_reduce_the_right_values_4) { run_range(151, 50); }

}  // namespace
