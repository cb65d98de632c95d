// Communicators and windows may go in any order; whoever is last frees. Run under AddressSanitizer to see leaks.
#include "support/rank_threads.hpp"

#include <zerocomm/coll.h>
#include <zerocomm/mem.h>
#include <zerocomm/window.h>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>

namespace zerocomm::test {
namespace {

zc_window_config config_of(std::size_t bytes, void* memory = nullptr) {
  zc_window_config config{};
  config.struct_size = sizeof config;
  config.bytes = bytes;
  config.memory = memory;
  return config;
}

TEST(Lifetime, ranks_may_destroy_at_different_times) {
  RankThreads ranks(4);
  ranks.run([&](zc_comm* comm, std::int32_t rank) {
    for (int turn = 0; turn < 20; ++turn) RANK_OK(zc_barrier(comm, nullptr));
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * (3 - rank)));
    ranks.destroy(rank);
  });
}

TEST(Lifetime, window_outlives_the_communicator_of_every_rank) {
  RankThreads ranks(3);
  std::array<zc_window*, 3> windows{};
  ranks.run([&](zc_comm* comm, std::int32_t rank) {
    const zc_window_config config = config_of(4096);
    zc_window*& window = windows[static_cast<std::size_t>(rank)];
    RANK_OK(zc_window_create(comm, &config, &window));
    void* memory = nullptr;
    std::size_t bytes = 0;
    RANK_OK(zc_window_ptr(window, rank, &memory, &bytes));
    std::memset(memory, rank + 1, bytes);
    RANK_OK(zc_window_signal(window, 1));
    for (std::int32_t other = 0; other < 3; ++other) RANK_OK(zc_window_wait(window, other, 1, nullptr));
  });
  for (std::int32_t rank = 0; rank < 3; ++rank) ranks.destroy(rank);
  EXPECT_EQ(zc_window_destroy(windows[0]), ZC_OK);
  char byte = 0;
  EXPECT_EQ(zc_window_read(windows[2], 0, 4095, &byte, 1, 1, nullptr), ZC_OK) << zc_last_error();
  EXPECT_EQ(byte, 1);
  EXPECT_EQ(zc_window_destroy(windows[1]), ZC_OK);
  EXPECT_EQ(zc_window_destroy(windows[2]), ZC_OK);
}

TEST(Lifetime, memory_that_another_rank_still_reads_is_freed_by_the_last_user) {
  RankThreads ranks(2);
  std::array<zc_window*, 2> windows{};
  ranks.run([&](zc_comm* comm, std::int32_t rank) {
    void* memory = nullptr;
    RANK_OK(zc_mem_alloc(comm, 100, &memory));
    std::memset(memory, rank + 1, 100);
    const zc_window_config config = config_of(96, static_cast<char*>(memory) + 4);
    RANK_OK(zc_window_create(comm, &config, &windows[static_cast<std::size_t>(rank)]));
  });
  EXPECT_EQ(zc_window_destroy(windows[0]), ZC_OK);
  ranks.destroy(0);  // and with it what rank 0 allocated
  char bytes[96] = {};
  EXPECT_EQ(zc_window_read(windows[1], 0, 0, bytes, 96, 0, nullptr), ZC_OK) << zc_last_error();
  EXPECT_EQ(bytes[95], 1);
  EXPECT_EQ(zc_window_destroy(windows[1]), ZC_OK);
}

TEST(Lifetime, destroying_nothing_is_allowed) {
  EXPECT_EQ(zc_comm_destroy(nullptr), ZC_OK);
  EXPECT_EQ(zc_window_destroy(nullptr), ZC_OK);
  EXPECT_EQ(zc_progress_remove(nullptr), ZC_OK);
  EXPECT_EQ(zc_mem_free(nullptr, nullptr), ZC_OK);
}

TEST(Lifetime, creation_refuses_impossible_groups_and_writes_no_handle) {
  std::array<zc_comm*, 4> comms{};
  EXPECT_EQ(zc_comm_create_threads(0, nullptr, comms.data()), ZC_ARGUMENT);
  EXPECT_EQ(zc_comm_create_threads(-1, nullptr, comms.data()), ZC_ARGUMENT);
  EXPECT_EQ(zc_comm_create_threads(1025, nullptr, comms.data()), ZC_ARGUMENT);
  EXPECT_EQ(zc_comm_create_threads(2, nullptr, nullptr), ZC_ARGUMENT);
  zc_comm_config config{};
  config.struct_size = sizeof config;
  config.topology = "a:0-2";
  EXPECT_EQ(zc_comm_create_threads(4, &config, comms.data()), ZC_ARGUMENT);
  EXPECT_NE(std::string(zc_last_error()).find("rank 3 is on no node"), std::string::npos) << zc_last_error();
  for (const zc_comm* comm : comms) EXPECT_EQ(comm, nullptr);
}

#if !defined(__SANITIZE_THREAD__)  // to which a thousand ranks are a minute and a half
TEST(Lifetime, a_thousand_ranks_can_be_made_and_questioned) {
  RankThreads ranks(1024, {.topology = "a:0-511 b:512-1023"});
  std::int32_t rank = -1, size = -1, node = -1;
  EXPECT_EQ(zc_comm_rank(ranks.comm(1000), &rank), ZC_OK);
  EXPECT_EQ(zc_comm_size(ranks.comm(1000), &size), ZC_OK);
  EXPECT_EQ(zc_comm_node(ranks.comm(1000), 512, &node), ZC_OK);
  EXPECT_EQ(rank, 1000);
  EXPECT_EQ(size, 1024);
  EXPECT_EQ(node, 1);
  EXPECT_EQ(zc_comm_node(ranks.comm(0), 1024, &node), ZC_ARGUMENT);
  zc_comm_info info{};
  info.struct_size = sizeof info;
  EXPECT_EQ(zc_comm_get_info(ranks.comm(3), &info), ZC_OK);
  EXPECT_EQ(info.ranks, 1024);
  EXPECT_EQ(info.rank, 3);
  EXPECT_EQ(info.nodes, 2);
  EXPECT_EQ(info.deadline_ns, 60 * kSecondNs);
  EXPECT_EQ(info.reproducible, 1);
  EXPECT_STREQ(info.transport, kTransportName);
}
#endif

}  // namespace
}  // namespace zerocomm::test
