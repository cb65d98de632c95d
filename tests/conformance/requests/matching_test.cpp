// Requests meet by key, whatever the order; a full table, canceled requests and mismatches hurt nobody else.
#include "conformance/requests/in_flight.hpp"
#include "support/exact_data.hpp"

#include <algorithm>
#include <numeric>

namespace zerocomm::test {
namespace {

// The order in which a rank makes its requests.
std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[mix(seed, i) % i]);
  return order;
}

TEST(Requests, of_different_tags_meet_in_any_order) {
  // Two rounds fit into the table: others may not have looked at the end of the round before.
  constexpr std::size_t kTags = 30;
  for (const std::int32_t ranks : {1, 2, 3, 5}) {
    RankThreads(ranks).run([ranks](zc_comm* comm, std::int32_t rank) {
      for (std::uint64_t round = 0; round < 3; ++round) {
        std::vector<Sum> sums(kTags);
        const auto self = static_cast<std::uint64_t>(rank);
        for (const std::size_t tag : shuffled(kTags, 10 * round + self))
          RANK_OK(sums[tag].begin(comm, rank, static_cast<std::int64_t>(tag) - 7, 1 + 37 * tag * tag,
                                  static_cast<std::int64_t>(tag)));
        for (const std::size_t tag : shuffled(kTags, 100 * round + self))
          sums[tag].end(ranks, static_cast<std::int64_t>(tag));
      }
    });
  }
}

TEST(Requests, of_one_tag_meet_in_the_order_in_which_they_were_made) {
  run_ranks(3, [](zc_comm* comm, std::int32_t rank) {
    std::vector<Sum> sums(20);
    for (std::size_t turn = 0; turn < sums.size(); ++turn)
      RANK_OK(sums[turn].begin(comm, rank, 5, 11, static_cast<std::int64_t>(turn)));
    std::vector<zc_request*> all;
    for (std::size_t turn = 0; turn < sums.size(); ++turn) all.push_back(sums[turn].request);
    RANK_OK(zc_request_wait_all(all.data(), all.size()));
    for (std::size_t turn = 0; turn < sums.size(); ++turn) {
      RANK_CHECK(all[turn] == nullptr, "handle %zu is left", turn);
      sums[turn].check(3, static_cast<std::int64_t>(turn));
    }
  });
}

TEST(Requests, go_on_beside_blocking_calls) {
  run_ranks(3, [](zc_comm* comm, std::int32_t rank) {
    Sum first, second;
    if (rank != 1) RANK_OK(first.begin(comm, rank, 1, 100));
    RANK_OK(zc_barrier(comm, nullptr));
    if (rank == 1) RANK_OK(first.begin(comm, rank, 1, 100));
    RANK_OK(second.begin(comm, rank, 2, 5000));
    std::int64_t value = rank;
    RANK_OK(zc_all_reduce(comm, &value, &value, 1, ZC_DTYPE_I64, ZC_OP_MAX, nullptr));
    RANK_CHECK(value == 2, "the blocking call gave %lld", static_cast<long long>(value));
    second.end(3);
    first.end(3);
  });
}

TEST(Requests, that_find_the_table_full_are_refused_until_one_is_over) {
  run_ranks(2,
            [](zc_comm* comm, std::int32_t rank) {
              std::vector<Sum> sums(4);
              for (std::size_t i = 0; i < 4; ++i) RANK_OK(sums[i].begin(comm, rank, 1, 10));
              Sum more;
              if (rank == 0) {
                // Before the other rank has come, so that none can be over.
                zc_request* untouched = nullptr;
                std::int64_t value = 1;
                const zc_coll_options options = with_tag(2, &untouched);
                RANK_STATUS(ZC_AGAIN, zc_all_reduce(comm, &value, &value, 1, ZC_DTYPE_I64, ZC_OP_SUM, &options));
                RANK_CHECK(untouched == nullptr && value == 1, "a refused call left something");
                RANK_ERROR_SAYS("all 4 requests");
                RANK_STATUS(ZC_AGAIN, zc_recv(comm, &value, 1, ZC_DTYPE_I64, 1, nullptr));
              }
              RANK_OK(zc_barrier(comm, nullptr));
              for (Sum& sum : sums) sum.end(2);
              // The other rank may not have looked at the end of the first four yet.
              zc_status status = ZC_AGAIN;
              while ((status = more.begin(comm, rank, 2, 10)) == ZC_AGAIN) std::this_thread::yield();
              RANK_OK(status);
              more.end(2);
            },
            {.requests = 4});
}

TEST(Requests, use_few_slots_a_thousand_times) {
  run_ranks(3,
            [](zc_comm* comm, std::int32_t rank) {
              for (int round = 0; round < 1000; ++round) {
                Sum sum;
                zc_status status = ZC_AGAIN;
                while ((status = sum.begin(comm, rank, round % 7, 1 + static_cast<std::size_t>(round % 3), round)) ==
                       ZC_AGAIN)
                  std::this_thread::yield();
                RANK_OK(status);
                sum.end(3, round);
              }
            },
            {.requests = 2});
}

TEST(Requests, that_are_canceled_in_time_are_canceled_on_all_ranks_and_for_late_ones) {
  run_ranks(3, [](zc_comm* comm, std::int32_t rank) {
    Sum canceled, next;
    if (rank == 0) {
      RANK_OK(canceled.begin(comm, rank, 3, 10));
      RANK_OK(zc_request_cancel(&canceled.request));
      RANK_CHECK(canceled.request == nullptr, "a handle is left");
    }
    if (rank == 1) RANK_OK(canceled.begin(comm, rank, 3, 10));
    RANK_OK(zc_barrier(comm, nullptr));
    // Rank 1 need not wait for rank 2; the turn after it is another request.
    if (rank == 1) {
      RANK_STATUS(ZC_CANCELED, zc_request_wait(&canceled.request));
      RANK_ERROR_SAYS("rank 0 has canceled tag 3, turn 0");
    }
    RANK_OK(zc_barrier(comm, nullptr));
    if (rank == 2) {
      RANK_OK(canceled.begin(comm, rank, 3, 10));
      RANK_STATUS(ZC_CANCELED, zc_request_wait(&canceled.request));
      RANK_ERROR_SAYS("rank 0 has canceled tag 3, turn 0");
    }
    if (rank != 0)
      for (std::size_t i = 0; i < 10; ++i)
        RANK_CHECK(canceled.data[i] == rank + static_cast<std::int64_t>(i), "a canceled request wrote");
    RANK_OK(next.begin(comm, rank, 3, 10, 5));
    next.end(3, 5);
    check_alive(comm, rank, 3);
  });
}

TEST(Requests, cannot_be_canceled_once_all_ranks_have_come) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    Sum sum;
    RANK_OK(sum.begin(comm, rank, 3, 10));
    RANK_OK(zc_barrier(comm, nullptr));
    zc_request* const before = sum.request;
    RANK_STATUS(ZC_STATE, zc_request_cancel(&sum.request));
    RANK_ERROR_SAYS("tag 3, turn 0");
    RANK_CHECK(sum.request == before, "the handle changed");
    sum.end(2);
    zc_request* none = nullptr;
    RANK_STATUS(ZC_ARGUMENT, zc_request_cancel(&none));
    RANK_OK(zc_request_wait(&none));
    RANK_CHECK(is_over(&none), "no request is over");
  });
}

// Both ranks try to take the same request back while the other one comes.
TEST(Requests, have_one_verdict_when_a_cancel_races_with_the_last_rank) {
  int canceled = 0;
  RankThreads group(2);
  std::vector<zc_status> verdicts(2);
  for (int round = 0; round < 300; ++round) {
    group.run([&](zc_comm* comm, std::int32_t rank) {
      Sum sum;
      zc_status status = ZC_AGAIN;
      while ((status = sum.begin(comm, rank, 8, 4, round)) == ZC_AGAIN) std::this_thread::yield();
      RANK_OK(status);
      status = (round + rank) % 3 == 0 ? zc_request_cancel(&sum.request) : ZC_STATE;
      status = status == ZC_OK ? ZC_CANCELED : zc_request_wait(&sum.request);
      RANK_CHECK(status == ZC_OK || status == ZC_CANCELED, "%s", zc_last_error());
      if (status == ZC_OK) sum.check(2, round);
      verdicts[static_cast<std::size_t>(rank)] = status;
    });
    ASSERT_EQ(verdicts[0], verdicts[1]) << "round " << round;
    canceled += verdicts[0] == ZC_CANCELED;
  }
  std::printf("%d of 300 canceled\n", canceled);
  EXPECT_GT(canceled, 0);
}

TEST(Requests, of_one_key_that_differ_leave_the_others_alone) {
  run_ranks(3, [](zc_comm* comm, std::int32_t rank) {
    Sum before, differs, after;
    RANK_OK(before.begin(comm, rank, 1, 10));
    RANK_OK(differs.begin(comm, rank, 2, rank == 2 ? 11 : 10));
    RANK_OK(after.begin(comm, rank, 2, 10));
    RANK_STATUS(ZC_MISMATCH, zc_request_wait(&differs.request));
    RANK_ERROR_SAYS("tag 2, turn 0: rank 0 calls zc_all_reduce(count 10");
    RANK_ERROR_SAYS("but rank 2 calls zc_all_reduce(count 11");
    for (std::size_t i = 0; i < differs.data.size(); ++i)
      RANK_CHECK(differs.data[i] == rank + static_cast<std::int64_t>(i), "a mismatch wrote");
    after.end(3);
    before.end(3);
    check_alive(comm, rank, 3);
  });
}

TEST(Requests, of_another_collective_of_the_same_key_are_a_mismatch) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    std::int64_t value = rank;
    zc_request* request = nullptr;
    const zc_coll_options options = with_tag(4, &request);
    RANK_OK(rank == 0 ? zc_barrier(comm, &options) : zc_broadcast(comm, &value, 1, ZC_DTYPE_I64, 0, &options));
    RANK_STATUS(ZC_MISMATCH, zc_request_wait(&request));
    RANK_ERROR_SAYS("rank 0 calls zc_barrier(), but rank 1 calls zc_broadcast(count 1, i64, root 0)");
    check_alive(comm, rank, 2);
  });
}

TEST(Requests, of_a_rank_alone_are_over_at_once) {
  run_ranks(1, [](zc_comm* comm, std::int32_t) {
    const std::vector<std::int64_t> send = {7, 8, 9};
    const std::size_t count = 3, other = 2;
    std::vector<std::int64_t> recv(3, -1);
    zc_request* request = nullptr;
    const zc_coll_options options = with_tag(0, &request);
    RANK_OK(zc_all_to_all_v(comm, send.data(), &count, recv.data(), &count, ZC_DTYPE_I64, &options));
    RANK_OK(zc_request_wait(&request));
    RANK_CHECK(recv == send, "the first element is %lld", static_cast<long long>(recv[0]));
    RANK_OK(zc_all_to_all_v(comm, send.data(), &count, recv.data(), &other, ZC_DTYPE_I64, &options));
    RANK_STATUS(ZC_MISMATCH, zc_request_wait(&request));
    RANK_OK(zc_all_reduce(comm, send.data(), recv.data(), 3, ZC_DTYPE_I64, ZC_OP_SUM, &options));
    RANK_OK(zc_request_wait(&request));
    RANK_CHECK(recv == send, "the first element is %lld", static_cast<long long>(recv[0]));
  });
}

TEST(Requests, copy_their_counts) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    const std::vector<std::int64_t> send = {10 + rank, 20 + rank, 30 + rank};
    std::vector<std::int64_t> recv(4, -1);
    zc_request* request = nullptr;
    const zc_coll_options options = with_tag(0, &request);
    {
      // Rank 0 keeps one and sends two, rank 1 sends one and keeps two.
      std::vector<std::size_t> sent = {1, 2},
                               expected = rank == 0 ? std::vector<std::size_t>{1, 1} : std::vector<std::size_t>{2, 2};
      RANK_OK(zc_all_to_all_v(comm, send.data(), sent.data(), recv.data(), expected.data(), ZC_DTYPE_I64, &options));
      sent = {77, 77};
      expected = {77, 77};
    }
    RANK_OK(zc_request_wait(&request));
    const std::vector<std::int64_t> wanted =
        rank == 0 ? std::vector<std::int64_t>{10, 11, -1, -1} : std::vector<std::int64_t>{20, 30, 21, 31};
    RANK_CHECK(recv == wanted, "the first element is %lld", static_cast<long long>(recv[0]));
  });
}

}  // namespace
}  // namespace zerocomm::test
