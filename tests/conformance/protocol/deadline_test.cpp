// A rank that does not come: everybody learns who, in time, and the communicator is dead for all.
#include "support/rank_threads.hpp"

#include <zerocomm/coll.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

namespace zerocomm::test {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

TEST(Deadline, names_the_rank_that_did_not_come_on_all_ranks_and_on_the_late_one) {
  RankThreads ranks(8, {.deadline_ns = 2 * kSecondNs});
  std::atomic<int> returned{0};
  ranks.run([&](zc_comm* comm, std::int32_t rank) {
    float send[3] = {1, 2, 3}, recv[3] = {};
    RANK_OK(zc_all_reduce(comm, send, recv, 3, ZC_DTYPE_F32, ZC_OP_MAX, nullptr));
    if (rank == 7)
      while (returned.load() < 7) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto start = Clock::now();
    RANK_STATUS(ZC_TIMEOUT, zc_all_reduce(comm, send, recv, 2, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
    RANK_CHECK(seconds_since(start) < 3, "after %.3f s", seconds_since(start));
    ++returned;
    RANK_ERROR_SAYS("rank 7 did not come to call 1, zc_all_reduce(count 2, f32, sum)");
    RANK_ERROR_SAYS("last call of " + rank_name(7) + ": zc_all_reduce(count 3, f32, max)");
    // The first error stands for all ranks and all later calls.
    const std::string first = zc_last_error();
    RANK_STATUS(ZC_TIMEOUT, zc_barrier(comm, nullptr));
    RANK_STATUS(ZC_TIMEOUT, zc_comm_status(comm));
    RANK_CHECK(first == zc_last_error(), "another text: %s", zc_last_error());
    RANK_OK(zc_comm_abort(comm));
    RANK_STATUS(ZC_TIMEOUT, zc_comm_status(comm));
  });
  const auto start = Clock::now();
  for (std::int32_t rank = 0; rank < 8; ++rank) ranks.destroy(rank);
  EXPECT_LT(seconds_since(start), 1);
}

TEST(Deadline, text_has_room_for_the_last_call_however_many_are_absent) {
  RankThreads ranks(200, {.deadline_ns = 50 * kMillisecondNs});
  ASSERT_EQ(zc_barrier(ranks.comm(0), nullptr), ZC_TIMEOUT);
  EXPECT_NE(std::string(zc_last_error()).find("rank 1, rank 2, "), std::string::npos) << zc_last_error();
  EXPECT_NE(std::string(zc_last_error())
                .find("and 183 more did not come to call 0, zc_barrier(); last call of " + rank_name(1) + ": none"),
            std::string::npos)
      << zc_last_error();
}

TEST(Deadline, of_one_call_beats_that_of_the_communicator) {
  RankThreads ranks(2);
  zc_coll_options options{};
  options.struct_size = sizeof options;
  options.deadline_ns = 100 * kMillisecondNs;
  const auto start = Clock::now();
  EXPECT_EQ(zc_barrier(ranks.comm(0), &options), ZC_TIMEOUT);
  EXPECT_GE(seconds_since(start), 0.1);
  EXPECT_LT(seconds_since(start), 5);
}

TEST(Deadline, that_is_a_poll_times_out_at_once_since_the_others_count_on_this_rank) {
  RankThreads ranks(2, {.deadline_ns = ZC_POLL});
  EXPECT_EQ(zc_barrier(ranks.comm(0), nullptr), ZC_TIMEOUT);
  EXPECT_EQ(zc_barrier(ranks.comm(1), nullptr), ZC_TIMEOUT);
}

TEST(Deadline, need_not_pass_for_a_rank_that_has_destroyed_its_communicator) {
  RankThreads ranks(3);
  std::thread sleeper([&] { EXPECT_EQ(zc_barrier(ranks.comm(0), nullptr), ZC_PEER_LOST); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto start = Clock::now();
  ranks.destroy(1);
  sleeper.join();
  EXPECT_EQ(zc_barrier(ranks.comm(2), nullptr), ZC_PEER_LOST);
  EXPECT_LT(seconds_since(start), 5);
  EXPECT_NE(std::string(zc_last_error()).find("rank 1 has destroyed its communicator and does not come to call 0"),
            std::string::npos)
      << zc_last_error();
}

TEST(Deadline, that_is_negative_and_no_poll_is_an_argument_error) {
  RankThreads ranks(1);
  zc_coll_options options{};
  options.struct_size = sizeof options;
  options.deadline_ns = -5;
  EXPECT_EQ(zc_barrier(ranks.comm(0), &options), ZC_ARGUMENT);
  zc_wait_options wait{};
  wait.struct_size = sizeof wait;
  wait.deadline_ns = -5;
  EXPECT_EQ(zc_comm_wait(
                ranks.comm(0), [](void*) { return 0; }, nullptr, &wait),
            ZC_ARGUMENT);
}

TEST(Deadline, of_a_rank_alone_never_passes) {
  RankThreads ranks(1, {.deadline_ns = ZC_POLL});
  EXPECT_EQ(zc_barrier(ranks.comm(0), nullptr), ZC_OK);
}

}  // namespace
}  // namespace zerocomm::test
