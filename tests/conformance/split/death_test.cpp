// A process ends: whoever shares a communicator with it is told there, in the numbers of that communicator.
#include "death/steps.hpp"
#include "split/child.hpp"

namespace zerocomm::test {
namespace {

TEST(SplitDeath, of_a_process_is_known_in_parent_and_child_and_nowhere_else) {
  constexpr std::int32_t kRanks = 4, kVictim = 3;
  const SharedArray<Told> in_parent(kRanks), in_child(kRanks);
  const Shared<std::atomic<std::int32_t>> ready;
  ChildRanks ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
    const Child child(comm, rank % 2, -rank);  // 2 0 and 3 1
    check_members(child, rank, {2 + rank % 2, rank % 2});
    if (++*ready, rank == kVictim)
      for (;;) ::pause();
    // Whether or not the parent was asked first.
    if (rank != 1) in_parent[rank].tell(zc_barrier(comm, nullptr));
    if (rank % 2 == 1) in_child[rank].tell(zc_barrier(child, nullptr));
    if (rank == 1) in_parent[rank].tell(zc_barrier(comm, nullptr));
    if (rank % 2 == 1) check_stays(child, in_child[rank]);
    if (rank % 2 == 0) check_members(child, rank, {2, 0});
    check_stays(comm, in_parent[rank]);
    wait_for_all_told(in_parent, kVictim);
  });
  EXPECT_TRUE(wait_until([&] { return ready->load() == kRanks; }));
  sleep_ns(20 * kMillisecondNs);
  const std::int64_t killed_ns = steady_ns();
  ranks.send_signal(kVictim, SIGKILL);
  std::vector<ChildEnd> ends = ranks.wait();
  EXPECT_TRUE(ends[kVictim].killed_by(SIGKILL)) << ends[kVictim].text;
  ends.erase(ends.begin() + kVictim);
  expect_ok(ends);
  expect_lost(in_parent, ranks, {kVictim});
  EXPECT_EQ(in_child[1].status, ZC_PEER_LOST);
  EXPECT_LT(in_child[1].when_ns - killed_ns, kSlack * 500 * kMillisecondNs);
  const std::string begin = format("rank 0 (pid %d; parent's rank 3) ended without destroying", ranks.pid(kVictim));
  EXPECT_EQ(std::string(in_child[1].text).substr(0, begin.size()), begin) << in_child[1].text;
}

TEST(SplitDeath, of_a_process_is_known_in_a_child_whose_parent_is_gone) {
  const Shared<std::atomic<std::int32_t>> ready;
  const zc_unique_id id = make_id();
  Children ranks(3, [&](std::int32_t rank) {
    const zc_comm_config config = process_config(id, 3, rank);
    zc_comm* parent = nullptr;
    RANK_OK(zc_comm_create(&config, &parent));
    const Child child(parent, 0, 0);
    RANK_OK(zc_comm_destroy(parent));
    ++*ready;
    if (rank == 1)
      for (;;) ::pause();
    RANK_STATUS(ZC_PEER_LOST, zc_barrier(child, nullptr));
    RANK_ERROR_SAYS("parent's rank 1) ended without destroying its communicator");
  });
  EXPECT_TRUE(wait_until([&] { return ready->load() == 3; }));
  ranks.send_signal(1, SIGKILL);
  std::vector<ChildEnd> ends = ranks.wait();
  EXPECT_TRUE(ends[1].killed_by(SIGKILL)) << ends[1].text;
  ends.erase(ends.begin() + 1);
  expect_ok(ends);
}

// Killed at one step of the split. The others get a child or PEER_LOST; who got a child is told there.
std::int32_t split_with_kill(std::int32_t victim, std::int32_t step) {
  const Shared<Walk> walk;
  walk->kill_at = step;
  ChildRanks ranks(3, [&](zc_comm* comm, std::int32_t rank) {
    comm::fault_hook.store(take_step);
    if (rank == victim) current_walk = &*walk;
    zc_comm* child = nullptr;
    const zc_status status = zc_comm_split(comm, 0, 0, nullptr, &child);
    current_walk = nullptr;
    if (rank == victim) {
      kill(getpid(), SIGKILL);
      ::pause();
    }
    RANK_CHECK((status == ZC_OK && child != nullptr) || (status == ZC_PEER_LOST && child == nullptr), "%s",
               zc_status_name(status));
    if (status == ZC_OK) RANK_STATUS(ZC_PEER_LOST, zc_barrier(child, nullptr));
    RANK_OK(zc_comm_destroy(child));
    RANK_STATUS(ZC_PEER_LOST, zc_barrier(comm, nullptr));
    RANK_ERROR_SAYS(format("rank %d (pid", victim));
  });
  const std::vector<ChildEnd> ends = ranks.wait(kSlack * 30 * kSecondNs);
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    const ChildEnd& end = ends[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(rank == victim ? end.killed_by(SIGKILL) : end.ok())
        << "rank " << rank << ", rank " << victim << " killed at step " << step << " ("
        << (step > 0 ? walk->names[step - 1] : "after it") << "): " << end.text;
  }
  return walk->steps;
}

TEST(SplitDeath, at_any_step_of_a_split_is_told_to_all_and_nobody_hangs) {
  for (const std::int32_t victim : {0, 2}) {
    const std::int32_t steps = split_with_kill(victim, 0);
    ASSERT_GT(steps, 20);
    for (std::int32_t step = 1 + victim; step <= steps && !HasFailure(); step += 3) split_with_kill(victim, step);
  }
}

}  // namespace
}  // namespace zerocomm::test
