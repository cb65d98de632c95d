// Requests whose ranks look in an order that the test chooses: one thread makes the turns of all of them.
#include "conformance/requests/in_flight.hpp"

#include <array>
#include <chrono>
#include <string>
#include <thread>

namespace zerocomm::test {
namespace {

constexpr std::int64_t kShortNs = 50 * kMillisecondNs;

bool says(const std::string& text) { return std::string(zc_last_error()).find(text) != std::string::npos; }

// One look of one rank: OK and not over.
void expect_waiting(zc_request** request) {
  std::int32_t done = 0;
  EXPECT_EQ(zc_request_test(request, &done), ZC_OK) << zc_last_error();
  EXPECT_EQ(done, 0);
}
void expect_over(zc_request** request, zc_status wanted = ZC_OK) {
  std::int32_t done = 0;
  EXPECT_EQ(zc_request_test(request, &done), wanted) << zc_last_error();
  EXPECT_EQ(done, 1);
}

// A few looks of all of them end all.
template <std::size_t Count>
void expect_all_over(std::array<zc_request*, Count> requests) {
  for (int turn = 0; turn < 8; ++turn)
    for (zc_request*& request : requests) {
      std::int32_t done = 0;
      EXPECT_EQ(zc_request_test(&request, &done), ZC_OK) << zc_last_error();
    }
  for (const zc_request* request : requests) EXPECT_EQ(request, nullptr);
}

// Nobody has looked at the requests when their deadline has passed.
class LateLook : public testing::Test {
 protected:
  void begin(std::int32_t ranks_that_come) {
    group_.run([&](zc_comm* comm, std::int32_t rank) {
      if (rank < ranks_that_come) RANK_OK(sums_[static_cast<std::size_t>(rank)].begin(comm, rank, 1, 10, 0, kShortNs));
    });
    std::this_thread::sleep_for(std::chrono::nanoseconds(kShortNs * 3 / 2));
  }
  RankThreads group_{2};
  std::array<Sum, 2> sums_;
};

TEST_F(LateLook, of_a_wait_finds_what_has_come) {
  begin(2);
  EXPECT_EQ(zc_request_wait(&sums_[0].request), ZC_OK) << zc_last_error();
  EXPECT_EQ(zc_request_wait(&sums_[1].request), ZC_OK) << zc_last_error();
  for (const Sum& sum : sums_) sum.check(2);
}

TEST_F(LateLook, of_a_test_finds_what_has_come) {
  begin(2);
  expect_all_over(std::array{sums_[0].request, sums_[1].request});
  for (const Sum& sum : sums_) sum.check(2);
}

TEST_F(LateLook, of_a_wait_gives_up_at_once_what_has_not_come) {
  begin(1);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(zc_request_wait(&sums_[0].request), ZC_TIMEOUT);
  EXPECT_TRUE(says("rank 0 waited 0.050 s in zc_all_reduce: rank 1 did not come to tag 1, turn 0")) << zc_last_error();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
}

// A rank whose part in a schedule is over may leave, whoever still waits for others.
TEST(Leaving, a_rank_that_a_schedule_needs_no_more_is_not_lost) {
  RankThreads group(4);
  std::array<zc_request*, 4> requests{};
  group.run([&](zc_comm* comm, std::int32_t rank) {
    zc_coll_options options = with_tag(1, &requests[static_cast<std::size_t>(rank)]);
    options.algorithm = "dissemination";
    RANK_OK(zc_barrier(comm, &options));
  });
  // Rank r waits for r - 1, then for r - 2. Rank 0 has heard of all when rank 3 has not heard of rank 2 yet.
  for (const std::size_t rank : {3U, 0U, 1U, 2U}) expect_waiting(&requests[rank]);
  expect_over(&requests[0]);
  group.destroy(0);
  expect_waiting(&requests[1]);  // for rank 3
  expect_all_over(requests);
}

TEST(Leaving, in_the_middle_of_a_schedule_takes_the_buffers_along) {
  constexpr std::int64_t kUntouched = -7;
  RankThreads group(3);
  std::array<zc_request*, 3> requests{};
  std::array<std::array<std::int64_t, 3>, 3> data{};
  for (auto& of_rank : data) of_rank.fill(kUntouched);
  group.run([&](zc_comm* comm, std::int32_t rank) {
    auto& own = data[static_cast<std::size_t>(rank)];
    own[static_cast<std::size_t>(rank)] = rank;
    zc_coll_options options = with_tag(4, &requests[static_cast<std::size_t>(rank)]);
    options.algorithm = "ring";
    RANK_OK(zc_all_gather(comm, &own[static_cast<std::size_t>(rank)], own.data(), 1, ZC_DTYPE_I64, &options));
  });
  expect_waiting(&requests[1]);  // its own block can be read from here on
  group.destroy(1);
  data[1].fill(99);  // whatever
  expect_over(&requests[2], ZC_PEER_LOST);
  EXPECT_TRUE(says("rank 1 has destroyed its communicator")) << zc_last_error();
  EXPECT_EQ(data[2][1], kUntouched);
  expect_over(&requests[0], ZC_PEER_LOST);
  expect_over(&requests[1], ZC_STATE);
}

// What has been canceled is canceled for all, also when one of them does not come because it has left.
TEST(Leaving, instead_of_coming_to_what_is_canceled_hurts_nobody) {
  RankThreads group(3);
  std::array<Sum, 3> sums;
  group.run([&](zc_comm* comm, std::int32_t rank) {
    if (rank != 0) RANK_OK(sums[static_cast<std::size_t>(rank)].begin(comm, rank, 5, 10));
  });
  EXPECT_EQ(zc_request_cancel(&sums[1].request), ZC_OK) << zc_last_error();
  group.destroy(0);
  expect_over(&sums[2].request, ZC_CANCELED);
  EXPECT_EQ(zc_comm_status(group.comm(2)), ZC_OK);
}

// What one rank of a pair has canceled before the other came. The slots are free again once that one has left, whether
// it came meanwhile or not.
class LeftSlots : public testing::TestWithParam<bool> {};
TEST_P(LeftSlots, come_back_from_a_rank_that_left) {
  constexpr std::size_t kSlots = 2;
  RankThreads group(3, {.requests = kSlots});
  std::array<zc_request*, kSlots> received{}, sent{};
  std::int32_t value = 0;
  for (std::size_t i = 0; i < kSlots; ++i) {
    const auto tag = static_cast<std::int64_t>(i);
    const zc_coll_options receiving = with_tag(tag, &received[i]), sending = with_tag(tag, &sent[i]);
    ASSERT_EQ(zc_recv(group.comm(0), &value, 1, ZC_DTYPE_I32, 1, &receiving), ZC_OK) << zc_last_error();
    ASSERT_EQ(zc_request_cancel(&received[i]), ZC_OK) << zc_last_error();
    if (!GetParam()) continue;
    ASSERT_EQ(zc_send(group.comm(1), &value, 1, ZC_DTYPE_I32, 0, &sending), ZC_OK) << zc_last_error();
  }
  const zc_coll_options another = with_tag(7, &received[0]);
  EXPECT_EQ(zc_recv(group.comm(0), &value, 1, ZC_DTYPE_I32, 2, &another), ZC_AGAIN);
  group.destroy(1);
  if (GetParam())
    for (zc_request*& request : sent) expect_over(&request, ZC_STATE);
  group.run([](zc_comm* comm, std::int32_t rank) {
    std::int32_t told = rank == 2 ? 11 : -1;
    if (rank == 0) RANK_OK(zc_recv(comm, &told, 1, ZC_DTYPE_I32, 2, nullptr));
    if (rank == 2) RANK_OK(zc_send(comm, &told, 1, ZC_DTYPE_I32, 0, nullptr));
    if (rank != 1) RANK_CHECK(told == 11, "rank 2 sent %d", told);
  });
}
INSTANTIATE_TEST_SUITE_P(Leaving, LeftSlots, testing::Bool(),
                         [](const auto& param) { return param.param ? "after_coming" : "without_coming"; });

// The same with a third rank, which comes when the second has left.
TEST(Leaving, after_coming_to_what_is_canceled_leaves_its_slot_to_be_used_again) {
  RankThreads group(3, {.requests = 1});
  std::array<Sum, 3> sums;
  const auto begin = [&](std::int32_t rank) {
    ASSERT_EQ(sums[static_cast<std::size_t>(rank)].begin(group.comm(rank), rank, 5, 10), ZC_OK) << zc_last_error();
  };
  begin(0);
  EXPECT_EQ(zc_request_cancel(&sums[0].request), ZC_OK) << zc_last_error();
  begin(1);
  group.destroy(1);
  expect_over(&sums[1].request, ZC_STATE);
  begin(2);
  expect_over(&sums[2].request, ZC_CANCELED);
  group.run([](zc_comm* comm, std::int32_t rank) {
    std::int32_t told = rank == 2 ? 11 : -1;
    if (rank == 0) RANK_OK(zc_recv(comm, &told, 1, ZC_DTYPE_I32, 2, nullptr));
    if (rank == 2) RANK_OK(zc_send(comm, &told, 1, ZC_DTYPE_I32, 0, nullptr));
    if (rank != 1) RANK_CHECK(told == 11, "rank 2 sent %d", told);
  });
}

// The wait for a slot and the wait for the other rank share the deadline of the call.
TEST(Deadline, of_a_send_counts_from_the_call) {
  constexpr std::int64_t kAllNs = 2000 * kMillisecondNs, kFullNs = 1500 * kMillisecondNs;
  RankThreads group(2, {.requests = 1});
  zc_request* request = nullptr;
  std::int32_t value = 0;
  const zc_coll_options first = with_tag(1, &request);
  ASSERT_EQ(zc_recv(group.comm(0), &value, 1, ZC_DTYPE_I32, 1, &first), ZC_OK) << zc_last_error();
  ASSERT_EQ(zc_request_cancel(&request), ZC_OK) << zc_last_error();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::nanoseconds(kFullNs));
    const zc_coll_options options = with_tag(1);
    std::int32_t unused = 0;
    EXPECT_EQ(zc_send(group.comm(1), &unused, 1, ZC_DTYPE_I32, 0, &options), ZC_CANCELED) << zc_last_error();
  });
  const auto before = std::chrono::steady_clock::now();
  const zc_coll_options second = with_tag(5, nullptr, kAllNs);
  EXPECT_EQ(zc_send(group.comm(0), &value, 1, ZC_DTYPE_I32, 1, &second), ZC_TIMEOUT);
  EXPECT_TRUE(says("rank 0 waited 2.000 s in zc_send: rank 1 did not come to tag 5")) << zc_last_error();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::nanoseconds(kAllNs + kFullNs));
  other.join();
}

TEST(Deadline, of_a_send_that_finds_no_slot_names_the_call) {
  RankThreads group(2, {.requests = 1});
  zc_request* request = nullptr;
  std::int32_t value = 0;
  const zc_coll_options first = with_tag(1, &request);
  ASSERT_EQ(zc_recv(group.comm(0), &value, 1, ZC_DTYPE_I32, 1, &first), ZC_OK) << zc_last_error();
  ASSERT_EQ(zc_request_cancel(&request), ZC_OK) << zc_last_error();
  const zc_coll_options second = with_tag(5, nullptr, kShortNs);
  EXPECT_EQ(zc_send(group.comm(0), &value, 1, ZC_DTYPE_I32, 1, &second), ZC_TIMEOUT);
  EXPECT_TRUE(
      says("rank 0 waited 0.050 s in zc_send: all 1 requests of this rank are in use, 0 of them in flight, and "
           "none came free for zc_send(count 1, i32, to rank 1), tag 5"))
      << zc_last_error();
}

TEST(Refused, calls_leave_no_request) {
  run_ranks(1, [](zc_comm* comm, std::int32_t) {
    int something = 0;
    auto* const garbage = reinterpret_cast<zc_request*>(&something);
    std::int64_t value = 1;
    zc_request* request = garbage;
    zc_coll_options options = with_tag(3, &request, ZC_POLL);
    RANK_STATUS(ZC_ARGUMENT, zc_all_reduce(comm, &value, &value, 1, ZC_DTYPE_I64, ZC_OP_SUM, &options));
    RANK_CHECK(request == nullptr, "a handle of a call that was refused for its deadline");
    request = garbage;
    options = with_tag(3, &request);
    RANK_STATUS(ZC_ARGUMENT, zc_all_reduce(comm, nullptr, &value, 1, ZC_DTYPE_I64, ZC_OP_SUM, &options));
    RANK_CHECK(request == nullptr, "a handle of a call that was refused for its buffer");
    RANK_OK(zc_request_wait_all(&request, 1));
  });
}

TEST(Refused, is_a_factor_where_none_is_used) {
  run_ranks(1, [](zc_comm* comm, std::int32_t) {
    float value = 1;
    zc_coll_options options = with_tag(0);
    for (const double premul : {2.0, ZC_PREMUL_ZERO}) {
      options.premul = premul;
      RANK_STATUS(ZC_ARGUMENT, zc_all_reduce(comm, &value, &value, 1, ZC_DTYPE_F32, ZC_OP_SUM, &options));
      RANK_ERROR_SAYS("premul");
      RANK_OK(zc_all_reduce(comm, &value, &value, 1, ZC_DTYPE_F32, ZC_OP_PREMUL_SUM, &options));
    }
  });
}

}  // namespace
}  // namespace zerocomm::test
