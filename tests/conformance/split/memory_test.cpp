// Memory of children: what cannot be had is told to all, and all of it is given back.
#include "death/leftovers.hpp"
#include "split/child.hpp"
#include "support/window_of_rank.hpp"

namespace zerocomm::test {
namespace {

// Room for the first communicator, two children of one rank or one of two ranks, and not for more.
void small_extent(std::int32_t /*rank*/) { setenv("ZC_SHM_BYTES", "5000000", 1); }

TEST(SplitMemory, that_cannot_be_had_is_told_to_all_ranks_which_go_on) {
  ChildRanks ranks(
      2,
      [&](zc_comm* comm, std::int32_t rank) {
        for (int turn = 0; turn < 10; ++turn) {
          Child first(comm, 0, -rank);
          check_members(first, rank, {1, 0});
          zc_comm* none = nullptr;
          RANK_STATUS(ZC_NO_MEMORY, zc_comm_split(comm, 0, -rank, nullptr, &none));
          RANK_ERROR_SAYS("zc_comm_split failed on rank 1: ");
          RANK_ERROR_SAYS("ZC_SHM_BYTES");
          RANK_CHECK(none == nullptr, "a handle was written");
          check_members(first, rank, {1, 0});
          check_members(comm, rank, {0, 1});
        }
      },
      {}, small_extent);
  expect_ok(ranks.wait());
}

// One colour has its memory already when the other does not get it.
TEST(SplitMemory, that_one_colour_cannot_have_is_refused_to_both) {
  ChildRanks ranks(
      3,
      [&](zc_comm* comm, std::int32_t rank) {
        zc_comm* none = nullptr;
        for (int turn = 0; turn < 5; ++turn) {
          RANK_STATUS(ZC_NO_MEMORY, zc_comm_split(comm, rank == 2 ? 1 : 0, 0, nullptr, &none));
          RANK_ERROR_SAYS("zc_comm_split failed on rank ");
          const Child one(comm, rank == 2 ? 1 : ZC_NONE, 0);  // what the refused split took is free again
          if (rank == 2) check_members(one, rank, {rank});
          check_members(comm, rank, {0, 1, 2});
        }
      },
      {}, [](std::int32_t) { setenv("ZC_SHM_BYTES", "5000000", 1); });
  expect_ok(ranks.wait());
}

TEST(SplitMemory, is_given_back_after_any_order_of_ends) {
  const HostState before = HostState::now(false);
  const zc_unique_id id = make_id();
  Children ranks(3, [&](std::int32_t rank) {
    const std::vector<std::string> descriptors = names_in("/proc/self/fd");
    for (int order = 0; order < 3; ++order) {
      const zc_comm_config config = process_config(id, 3, rank);
      zc_comm *parent = nullptr, *child = nullptr, *grandchild = nullptr;
      RANK_OK(zc_comm_create(&config, &parent));
      RANK_OK(zc_comm_split(parent, 0, -rank, nullptr, &child));
      RANK_OK(zc_comm_split(child, 0, 0, nullptr, &grandchild));
      RANK_CHECK(mapped_memory().size() == 1 && open_memory().size() == 1, "one piece of memory for all");
      {
        const WindowOfRank window(grandchild, 10000);
        RANK_OK(zc_barrier(grandchild, nullptr));
      }
      zc_comm* const orders[3][3] = {
          {parent, child, grandchild}, {grandchild, child, parent}, {child, grandchild, parent}};
      for (zc_comm* comm : orders[(order + rank) % 3]) RANK_OK(zc_comm_destroy(comm));
      RANK_CHECK(mapped_memory().empty() && open_memory().empty(), "memory is left");
    }
    RANK_CHECK(names_in("/proc/self/fd") == descriptors, "descriptors are left");
  });
  expect_ok(ranks.wait());
  expect_equal(before, HostState::now(false));
}

// Ranks of real processes, private memory and all.
TEST(SplitMemory, of_processes_carries_calls_of_every_size) {
  RankProcesses(4).run([&](zc_comm* comm, std::int32_t rank) {
    const Child child(comm, rank / 2, -rank);
    for (const std::size_t count : {1U, 1000U, 300'000U}) {
      std::vector<float> own(count, static_cast<float>(rank)), all(2 * count);
      RANK_OK(zc_all_gather(child, own.data(), all.data(), count, ZC_DTYPE_F32, nullptr));
      RANK_CHECK(all[0] == static_cast<float>(rank | 1) && all[2 * count - 1] == static_cast<float>(rank & ~1), "%zu",
                 count);
      RANK_OK(zc_all_reduce(child, own.data(), own.data(), count, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
      RANK_CHECK(own[count - 1] == static_cast<float>(rank / 2 * 4 + 1), "%g", static_cast<double>(own[count - 1]));
    }
  });
}

}  // namespace
}  // namespace zerocomm::test
