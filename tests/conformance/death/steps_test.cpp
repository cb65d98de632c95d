// A rank is killed at each step of a call: every other rank is told, and what was complete before is right.
#include "death/steps.hpp"

namespace zerocomm::test {
namespace {

constexpr std::size_t kSmall = 1000;
constexpr std::size_t kPrivate = 40'000;  // bytes enough to be read out of the other process
// Under a sanitizer every world takes ten times as long.
constexpr std::int32_t kMostRanks = kSanitized ? 2 : 4;

void kill_everywhere(const StepCall& call) {
  step_counts = {};
  for (std::int32_t ranks = 2; ranks <= kMostRanks; ++ranks) kill_at_every_step(call, ranks);
  std::printf("%d kills: %d calls of survivors done, %d not\n", step_counts.kills, step_counts.done, step_counts.lost);
  EXPECT_GT(step_counts.done, 0);
}

TEST(KillAtEveryStep, of_a_barrier) { kill_everywhere(barrier_step()); }
TEST(KillAtEveryStep, of_making_a_window) { kill_everywhere(window_create_step()); }
TEST(KillAtEveryStep, of_a_staged_reduce_scatter) { kill_everywhere(reduce_scatter_step(Memory::staged, kSmall)); }
TEST(KillAtEveryStep, of_a_direct_reduce_scatter) { kill_everywhere(reduce_scatter_step(Memory::shared, kSmall)); }
TEST(KillAtEveryStep, of_a_staged_all_gather) { kill_everywhere(all_gather_step(Memory::staged, kSmall)); }
TEST(KillAtEveryStep, of_a_direct_all_gather) { kill_everywhere(all_gather_step(Memory::shared, kSmall)); }
TEST(KillAtEveryStep, of_an_all_gather_of_private_memory) {
  if (!can_read_private()) GTEST_SKIP() << "processes cannot read each other's memory here";
  kill_everywhere(all_gather_step(Memory::private_read, kPrivate));
}
TEST(KillAtEveryStep, of_a_staged_all_reduce) { kill_everywhere(all_reduce_step(Memory::staged, kSmall)); }
TEST(KillAtEveryStep, of_a_direct_all_reduce) { kill_everywhere(all_reduce_step(Memory::shared, kSmall)); }
TEST(KillAtEveryStep, of_a_staged_broadcast) { kill_everywhere(broadcast_step(Memory::staged, kSmall)); }
TEST(KillAtEveryStep, of_a_direct_broadcast) { kill_everywhere(broadcast_step(Memory::shared, kSmall)); }
TEST(KillAtEveryStep, of_a_spread_reduce_scatter) {
  kill_everywhere(spread(reduce_scatter_step(Memory::shared, kSmall), "reduce_scatter=spread"));
}
TEST(KillAtEveryStep, of_a_spread_all_gather) {
  kill_everywhere(spread(all_gather_step(Memory::shared, kSmall), "all_gather=spread"));
}
TEST(KillAtEveryStep, of_a_spread_broadcast) {
  kill_everywhere(spread(broadcast_step(Memory::shared, kSmall), "broadcast=spread"));
}

}  // namespace
}  // namespace zerocomm::test
