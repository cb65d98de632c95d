// Abort, and calls that come at the wrong time.
#include "support/rank_threads.hpp"

#include <zerocomm/coll.h>
#include <zerocomm/window.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

namespace zerocomm::test {
namespace {

using Clock = std::chrono::steady_clock;

void sleep_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

TEST(Abort, ends_every_wait_of_every_rank_within_100_ms) {
  RankThreads ranks(4);
  std::atomic<std::int64_t> aborted_at{0};
  std::atomic<int> waiting{0};
  std::thread aborter([&] {
    while (waiting.load() < 4) sleep_ms(1);
    sleep_ms(50);  // the ranks are asleep
    aborted_at = Clock::now().time_since_epoch().count();
    zc_comm_abort(ranks.comm(0));
  });
  ranks.run([&](zc_comm* comm, std::int32_t rank) {
    zc_window_config config{};
    config.struct_size = sizeof config;
    zc_window* window = nullptr;
    RANK_OK(zc_window_create(comm, &config, &window));
    ++waiting;
    zc_status status = ZC_OK;
    if (rank == 0) status = zc_window_wait(window, 1, 5, nullptr);
    if (rank == 1)
      status = zc_comm_wait(
          comm, [](void*) { return 0; }, nullptr, nullptr);
    if (rank >= 2) status = zc_barrier(comm, nullptr);
    const auto late = Clock::now().time_since_epoch() - Clock::duration(aborted_at.load());
    RANK_CHECK(status == ZC_ABORTED, "%s", zc_status_name(status));
    RANK_ERROR_SAYS(rank_name(0) + " called zc_comm_abort");
    RANK_CHECK(late < std::chrono::milliseconds(100), "%lld ns late", static_cast<long long>(late.count()));
    RANK_STATUS(ZC_ABORTED, zc_barrier(comm, nullptr));
    zc_window_destroy(window);
  });
  aborter.join();
}

TEST(Abort, of_two_communicators_one_after_the_other_returns) {
  RankThreads a(2), b(2);
  std::thread in_a([&] { EXPECT_EQ(zc_barrier(a.comm(0), nullptr), ZC_ABORTED); });
  std::thread in_b([&] { EXPECT_EQ(zc_barrier(b.comm(0), nullptr), ZC_ABORTED); });
  sleep_ms(20);
  EXPECT_EQ(zc_comm_abort(a.comm(1)), ZC_OK);
  EXPECT_EQ(zc_comm_abort(b.comm(1)), ZC_OK);
  in_a.join();
  in_b.join();
}

TEST(State, second_thread_of_a_rank_in_a_collective_is_refused_and_harms_nothing) {
  RankThreads ranks(2);
  std::thread first([&] {
    zc_window_config config{};
    config.struct_size = sizeof config;
    config.bytes = 64;
    zc_window* window = nullptr;
    EXPECT_EQ(zc_window_create(ranks.comm(0), &config, &window), ZC_OK) << zc_last_error();
    void* memory = nullptr;
    std::size_t bytes = 0;
    EXPECT_EQ(zc_window_ptr(window, 0, &memory, &bytes), ZC_OK);
    EXPECT_EQ(bytes, 64u) << "the memory of another call was taken";
    zc_window_destroy(window);
  });
  sleep_ms(50);  // it waits for rank 1
  EXPECT_EQ(zc_barrier(ranks.comm(0), nullptr), ZC_STATE);
  EXPECT_NE(std::string(zc_last_error()).find("another collective"), std::string::npos) << zc_last_error();
  zc_window_config config{};
  config.struct_size = sizeof config;
  config.bytes = 32;
  zc_window* window = nullptr;
  EXPECT_EQ(zc_window_create(ranks.comm(0), &config, &window), ZC_STATE);
  EXPECT_EQ(zc_window_create(ranks.comm(1), &config, &window), ZC_OK) << zc_last_error();
  first.join();
  void* memory = nullptr;
  std::size_t bytes = 0;
  EXPECT_EQ(zc_window_ptr(window, 0, &memory, &bytes), ZC_OK);
  EXPECT_EQ(bytes, 64u);
  zc_window_destroy(window);
}

// Rank 1 learns that all have come only after rank 0 has been told of the abort and has its memory back.
TEST(Abort, keeps_a_late_rank_away_from_memory_of_those_who_have_returned) {
  RankThreads ranks(2);
  struct Gate {
    std::atomic<std::thread::id> held{};
    std::atomic<bool> entered{false}, open{false};
  } gate;
  zc_progress* handle = nullptr;
  ASSERT_EQ(zc_progress_add(
                ranks.comm(0),
                [](void* opaque) {
                  auto* held = static_cast<Gate*>(opaque);
                  if (std::this_thread::get_id() != held->held.load()) return;
                  held->entered = true;
                  while (!held->open.load()) sleep_ms(1);
                },
                &gate, &handle),
            ZC_OK);
  ranks.run([&](zc_comm* comm, std::int32_t rank) {
    float send[2] = {1, 2}, recv[2] = {};
    if (rank == 1) gate.held = std::this_thread::get_id();
    while (rank == 0 && !gate.entered.load()) sleep_ms(1);  // rank 1 has come, and looks away
    std::thread aborter([&] {
      if (rank == 1) return;
      sleep_ms(50);
      zc_comm_abort(comm);
    });
    const zc_status status = zc_all_reduce(comm, send, recv, 2, ZC_DTYPE_F32, ZC_OP_SUM, nullptr);
    aborter.join();
    RANK_CHECK(status == ZC_ABORTED, "%s", zc_status_name(status));
    if (rank == 1) return;
    recv[0] = recv[1] = -7;
    gate.open = true;
    sleep_ms(50);
    RANK_CHECK(recv[0] == -7 && recv[1] == -7, "rank 1 wrote %g %g", static_cast<double>(recv[0]),
               static_cast<double>(recv[1]));
  });
  EXPECT_EQ(zc_progress_remove(handle), ZC_OK);
}

// Ranks whose buffers are being read stay in their call until nobody reads them, whatever happens meanwhile.
TEST(Abort, in_the_middle_of_collectives_lets_nobody_read_freed_memory) {
  for (int turn = 0; turn < 30; ++turn) {
    RankThreads ranks(4);
    std::thread aborter([&] {
      sleep_ms(turn % 5);
      zc_comm_abort(ranks.comm(turn % 4));
    });
    ranks.run([&](zc_comm* comm, std::int32_t) {
      for (zc_status status = ZC_OK; status == ZC_OK;) {
        std::vector<float> send(20000, 1.0f), recv(20000);
        status = zc_all_reduce(comm, send.data(), recv.data(), send.size(), ZC_DTYPE_F32, ZC_OP_SUM, nullptr);
        RANK_CHECK(status == ZC_ABORTED || (status == ZC_OK && recv[19999] == 4.0f), "%s", zc_status_name(status));
      }
    });
    aborter.join();
  }
}

}  // namespace
}  // namespace zerocomm::test
