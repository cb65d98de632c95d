// Many more random legal programs than the ordinary run has time for.
#include "history.hpp"

namespace {

TEST(ManyRandomHistories, diverging_ranks_read_and_reduce_the_right_values) {
  for (std::uint32_t seed = 1000; seed < 5000 && !HasFailure(); ++seed) zerocomm::test::run_history(seed);
}

}  // namespace
