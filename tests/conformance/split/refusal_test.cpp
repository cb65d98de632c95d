// Splits that cannot be: all ranks of the parent are told the same, no child is left, and the parent goes on.
#include "comm/fault.hpp"
#include "split/child.hpp"
#include "support/rank_threads.hpp"

#include <zerocomm/window.h>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace zerocomm::test {
namespace {

constexpr std::int32_t kRanks = 4;

zc_comm_config empty_config() {
  zc_comm_config config{};
  config.struct_size = sizeof config;
  return config;
}

// Rank 2 asks for something wrong, the others for something right.
void expect_refused(zc_status wanted, const std::string& text,
                    const std::function<void(std::int32_t* color, zc_comm_config* config)>& spoil) {
  run_ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
    for (int turn = 0; turn < 2; ++turn) {
      zc_comm_config config = empty_config();
      std::int32_t color = rank % 2;
      if (rank == 2) spoil(&color, &config);
      zc_comm* child = comm;
      RANK_STATUS(wanted, zc_comm_split(comm, color, 0, &config, &child));
      RANK_ERROR_SAYS(text);
      RANK_CHECK(child == nullptr, "a handle was written");
      const Child good(comm, rank % 2, 0);
      check_members(good, rank, {rank % 2, rank % 2 + 2});
      check_members(comm, rank, {0, 1, 2, 3});
    }
  });
}

TEST(SplitRefusal, of_an_argument_of_one_rank_is_told_to_all) {
  expect_refused(ZC_ARGUMENT, "zc_comm_split failed on rank 2: colour -2",
                 [](std::int32_t* color, zc_comm_config*) { *color = -2; });
  expect_refused(ZC_ARGUMENT, "failed on rank 2: deadline_ns is -7",
                 [](std::int32_t*, zc_comm_config* config) { config->deadline_ns = -7; });
  expect_refused(ZC_ARGUMENT, "failed on rank 2: ranks, rank, id and init_deadline_ns are for zc_comm_create",
                 [](std::int32_t*, zc_comm_config* config) { config->init_deadline_ns = 1; });
  expect_refused(ZC_ARGUMENT, "failed on rank 2: zc_comm_config.struct_size",
                 [](std::int32_t*, zc_comm_config* config) { config->struct_size = 0; });
  expect_refused(ZC_ARGUMENT, "failed on rank 2: topology: rank 0 is on no node",
                 [](std::int32_t* color, zc_comm_config* config) {
                   *color = 9;  // alone there
                   config->topology = " ";
                 });
  expect_refused(ZC_MISMATCH, "of colour 0 rank 0 has reproducible on and rank 2 has it off",
                 [](std::int32_t*, zc_comm_config* config) { config->reproducible = ZC_OFF; });
  expect_refused(ZC_MISMATCH, "ranks 0 and 2 of colour 0 give different topologies",
                 [](std::int32_t*, zc_comm_config* config) { config->topology = "a:0 b:1"; });
}

TEST(SplitRefusal, of_a_missing_place_for_the_handle_is_told_to_all) {
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    zc_comm* child = nullptr;
    RANK_STATUS(ZC_ARGUMENT, zc_comm_split(comm, 0, 0, nullptr, rank == 1 ? nullptr : &child));
    RANK_ERROR_SAYS("zc_comm_split failed on rank 1: child is NULL");
    check_members(comm, rank, {0, 1});
  });
  zc_comm* child = nullptr;
  EXPECT_EQ(zc_comm_split(nullptr, 0, 0, nullptr, &child), ZC_ARGUMENT);
}

TEST(SplitRefusal, of_a_split_beside_another_call_is_a_mismatch) {
  run_ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
    zc_comm* child = nullptr;
    if (rank == 1)
      RANK_STATUS(ZC_MISMATCH, zc_barrier(comm, nullptr));
    else
      RANK_STATUS(ZC_MISMATCH, zc_comm_split(comm, 0, 0, nullptr, &child));
    RANK_ERROR_SAYS("rank 0 calls zc_comm_split()");
    RANK_ERROR_SAYS("rank 1 calls zc_barrier()");
    RANK_CHECK(child == nullptr, "a handle was written");
    check_members(Child(comm, 0, 0), rank, {0, 1, 2, 3});
    check_members(comm, rank, {0, 1, 2, 3});
  });
}

TEST(SplitRefusal, of_a_rank_that_does_not_come_is_a_timeout_that_names_it) {
  RankThreads ranks(2, {.deadline_ns = 100 * kMillisecondNs});
  zc_comm* child = nullptr;
  EXPECT_EQ(zc_comm_split(ranks.comm(0), 0, 0, nullptr, &child), ZC_TIMEOUT);
  EXPECT_NE(std::string(zc_last_error()).find("zc_comm_split: rank 1 did not come to call 0, zc_comm_split()"),
            std::string::npos)
      << zc_last_error();
  EXPECT_EQ(zc_comm_split(ranks.comm(1), 0, 0, nullptr, &child), ZC_TIMEOUT);
  EXPECT_EQ(child, nullptr);
}

// A rank ends one of the two, while other ranks wait in both.
TEST(SplitAbort, of_the_child_leaves_the_parent_and_the_other_way_round) {
  for (const bool of_child : {true, false})
    run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
      const Child child(comm, 0, -rank), other(comm, 0, 0);  // rank 2 is the child's first
      zc_comm* const dies = of_child ? static_cast<zc_comm*>(child) : comm;
      if (rank == 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        RANK_OK(zc_comm_abort(dies));
      }
      RANK_STATUS(ZC_ABORTED, zc_barrier(dies, nullptr));
      if (of_child) {
        RANK_ERROR_SAYS("parent's rank 2) called zc_comm_abort");
        RANK_ERROR_SAYS("rank 0 (");
      } else {
        RANK_ERROR_SAYS(rank_name(2) + " called zc_comm_abort");
      }
      check_members(other, rank, {0, 1, 2});
      if (of_child)
        check_members(comm, rank, {0, 1, 2});
      else
        check_members(child, rank, {2, 1, 0});
      // The dead one can be aborted again, and cannot be split.
      zc_comm* none = nullptr;
      RANK_STATUS(ZC_ABORTED, zc_comm_split(dies, 0, 0, nullptr, &none));
    });
}

TEST(SplitAbort, of_parent_and_child_one_after_the_other_ends_what_waits_in_both) {
  RankThreads parents(2);
  zc_comm* children[2] = {};
  parents.run([&](zc_comm* comm, std::int32_t rank) { RANK_OK(zc_comm_split(comm, 0, 0, nullptr, &children[rank])); });
  std::thread in_parent([&] { EXPECT_EQ(zc_barrier(parents.comm(0), nullptr), ZC_ABORTED); });
  std::thread in_child([&] { EXPECT_EQ(zc_barrier(children[0], nullptr), ZC_ABORTED); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(zc_comm_abort(parents.comm(1)), ZC_OK);
  EXPECT_EQ(zc_comm_abort(children[1]), ZC_OK);
  in_parent.join();
  in_child.join();
  for (zc_comm* child : children) EXPECT_EQ(zc_comm_destroy(child), ZC_OK);
}

// A second thread of rank 0 that calls whenever the first has a step of `wanted_step` behind it.
zc_comm* meddled_with = nullptr;
std::string_view wanted_step;
thread_local bool is_rank_0 = false;
std::vector<zc_status> meddlers_got;

void meddle(const char* step) {
  if (!is_rank_0 || step != wanted_step) return;
  std::thread([] { meddlers_got.push_back(zc_barrier(meddled_with, nullptr)); }).join();
}

void expect_held_throughout(std::string_view step, std::size_t least_times, void (*call)(zc_comm*, std::int32_t)) {
  RankThreads group(2);
  meddled_with = group.comm(0);
  wanted_step = step;
  meddlers_got.clear();
  comm::fault_hook.store(meddle);
  group.run([&](zc_comm* comm, std::int32_t rank) {
    is_rank_0 = rank == 0;
    call(comm, rank);
  });
  comm::fault_hook.store(nullptr);
  EXPECT_GE(meddlers_got.size(), least_times);
  for (const zc_status status : meddlers_got) EXPECT_EQ(status, ZC_STATE);
}

TEST(SplitAlone, of_a_communicator_keeps_other_threads_out_between_its_parts) {
  for (const char* const step : {"split announced", "split wishes known", "split core found", "split joined"})
    expect_held_throughout(step, 1, [](zc_comm* comm, std::int32_t rank) {
      const Child child(comm, 0, 0);
      check_members(child, rank, {0, 1});
    });
}

TEST(SplitAlone, is_what_making_a_contiguous_window_is_too) {
  // One collective for the sizes, one for the window.
  expect_held_throughout("posted", 2, [](zc_comm* comm, std::int32_t) {
    zc_window_config config{};
    config.struct_size = sizeof config;
    config.bytes = 64;
    config.contiguous = 1;
    zc_window* window = nullptr;
    RANK_OK(zc_window_create(comm, &config, &window));
    RANK_OK(zc_window_destroy(window));
  });
}

}  // namespace
}  // namespace zerocomm::test
