// Ranks are killed at random: the others end, and nothing is left on the host.
#include "death/random_kills.hpp"

namespace zerocomm::test {
namespace {

TEST(RandomKills, of_a_third_end_every_rank_and_leave_nothing) { kill_often(kill_a_third, 1, kSanitized ? 6 : 40); }
TEST(RandomKills, of_all_ranks_leave_nothing) { kill_often(kill_all, 1, kSanitized ? 4 : 20); }

// The checks above find what is there.
TEST(RandomKills, would_be_seen_in_what_they_left) {
  const bool alone = own_sockets_and_shm();
  const HostState before = HostState::now(alone);
  std::set<std::uint64_t> memory;
  {
    const zc_unique_id id = make_id();
    zc_comm_config config = process_config(id, 1, 0);
    zc_comm* comm = nullptr;
    ASSERT_EQ(zc_comm_create(&config, &comm), ZC_OK) << zc_last_error();
    const HostState during = HostState::now(alone);
    EXPECT_NE(during.descriptors, before.descriptors);
    EXPECT_NE(during.mapped, before.mapped);
    EXPECT_EQ(during.mapped, open_memory());
    memory = during.mapped;
    EXPECT_NE(users_of(memory), "");
    EXPECT_EQ(zc_comm_destroy(comm), ZC_OK);
  }
  expect_equal(before, HostState::now(alone));
  EXPECT_EQ(users_of(memory), "");
  if (!alone) return;
  // Rank 0 listens while it waits for the other.
  const zc_unique_id id = make_id();
  Children waiting(1, [&](std::int32_t) {
    zc_comm_config config = process_config(id, 2, 0);
    zc_comm* comm = nullptr;
    RANK_OK(zc_comm_create(&config, &comm));
  });
  EXPECT_TRUE(wait_until([&] { return !HostState::now(alone).sockets.empty(); }));
  waiting.send_signal(0, SIGKILL);
  EXPECT_TRUE(waiting.wait()[0].killed_by(SIGKILL));
  EXPECT_TRUE(HostState::now(alone).sockets.empty());
}

}  // namespace
}  // namespace zerocomm::test
