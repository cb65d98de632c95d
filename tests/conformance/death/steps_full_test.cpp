// Killing at each step of calls of many rounds, and with more ranks.
#include "death/steps.hpp"

namespace zerocomm::test {
namespace {

constexpr std::size_t kThreeRounds = 150'000;  // of 256 KiB

TEST(KillAtEveryStepFull, of_calls_of_several_rounds) {
  for (std::int32_t ranks = 2; ranks <= 4; ++ranks) {
    kill_at_every_step(all_gather_step(Memory::staged, 60'000), ranks);
    kill_at_every_step(reduce_scatter_step(Memory::staged, kThreeRounds / static_cast<std::size_t>(ranks)), ranks);
    kill_at_every_step(all_reduce_step(Memory::staged, kThreeRounds), ranks);
    if (!can_read_private()) continue;
    kill_at_every_step(broadcast_step(Memory::private_read, kThreeRounds), ranks);
    kill_at_every_step(all_gather_step(Memory::private_read, kThreeRounds), ranks);
  }
}

TEST(KillAtEveryStepFull, of_calls_of_many_ranks) {
  for (const std::int32_t ranks : {5, 8})
    for (const Memory memory : {Memory::staged, Memory::shared}) {
      kill_at_every_step(reduce_scatter_step(memory, 1000), ranks);
      kill_at_every_step(all_gather_step(memory, 1000), ranks);
      kill_at_every_step(all_reduce_step(memory, 1001), ranks);
    }
}

}  // namespace
}  // namespace zerocomm::test
