// Who makes requests go on, and in which order: slices, small ones first, waiting calls, helper threads, many threads.
#include "conformance/requests/in_flight.hpp"
#include "support/child_ranks.hpp"

#include <atomic>
#include <thread>

namespace zerocomm::test {
namespace {

constexpr std::size_t kLarge = std::size_t{4} << 20;  // elements of 8 bytes

// One rank alone makes all turns, so that its order is the order of the slices.
TEST(Progress, a_small_request_is_over_after_a_few_slices_of_a_large_one) {
  run_ranks(1, [](zc_comm* comm, std::int32_t rank) {
    Sum large, small;
    RANK_OK(large.begin(comm, rank, 1, kLarge));
    RANK_CHECK(!is_over(&large.request), "32 MiB in one slice");
    RANK_OK(small.begin(comm, rank, 2, 10));
    int turns = 1;
    while (!is_over(&small.request)) ++turns;
    RANK_CHECK(turns <= 2, "the small one took %d turns", turns);
    RANK_CHECK(!is_over(&large.request), "the large one was over first");
    turns = 0;
    while (!is_over(&large.request)) ++turns;
    RANK_CHECK(turns >= 32, "the large one took %d turns more", turns);
    large.check(1);
  });
}

TEST(Progress, a_small_blocking_call_does_not_wait_for_a_large_request) {
  std::atomic<int> back{0};
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    Sum large;
    RANK_OK(large.begin(comm, rank, 1, kLarge));
    RANK_OK(zc_barrier(comm, nullptr));
    // The barrier took part in it: slices, not all of it.
    RANK_CHECK(!is_over(&large.request), "the barrier came back behind 32 MiB");
    ++back;
    while (back.load() < 2 && zc_comm_status(comm) == ZC_OK) std::this_thread::yield();  // the other may be late
    large.end(2);
  });
}

TEST(Progress, a_request_is_served_by_whoever_waits) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    Sum sum;
    RANK_OK(sum.begin(comm, rank, 1, 100'000));
    // Rank 0 waits for something else until rank 1 has all that it needs of it.
    std::int64_t value = 0;
    if (rank == 0) {
      RANK_OK(zc_recv(comm, &value, 1, ZC_DTYPE_I64, 1, nullptr));
    } else {
      sum.end(2);
      RANK_OK(zc_send(comm, &value, 1, ZC_DTYPE_I64, 0, nullptr));
    }
    if (rank == 0) sum.end(2);
  });
}

TEST(Progress, a_helper_thread_ends_a_request_while_its_rank_computes) {
  std::atomic<bool> over{false};
  run_ranks(2,
            [&](zc_comm* comm, std::int32_t rank) {
              Sum sum;
              RANK_OK(sum.begin(comm, rank, 1, 100'000));
              if (rank == 0) {
                // No call of the library until the other rank is through.
                RANK_CHECK(wait_until([&] { return over.load(); }), "rank 1 waits for a rank that computes");
              } else {
                sum.end(2);
                over.store(true);
              }
              if (rank == 0) sum.end(2);
            },
            {.helper_thread = true});
}

TEST(Progress, requests_of_many_threads_at_once) {
  constexpr std::size_t kThreads = 4, kEach = 25;
  for (const bool helper : {false, true})
    run_ranks(2,
              [](zc_comm* comm, std::int32_t rank) {
                std::vector<std::string> failures(kThreads);
                std::vector<std::thread> threads;
                for (std::size_t t = 0; t < kThreads; ++t)
                  threads.emplace_back([&, t] {
                    try {
                      for (std::size_t i = 0; i < kEach; ++i) {
                        Sum a, b;
                        const auto tag = static_cast<std::int64_t>(t), base = static_cast<std::int64_t>(100 * t + i);
                        RANK_OK(a.begin(comm, rank, tag, i == 7 ? 100'000 : 10 * t + i, base));
                        RANK_OK(b.begin(comm, rank, tag, 5, base + 1));
                        b.end(2, base + 1);
                        while (!is_over(&a.request)) std::this_thread::yield();
                        a.check(2, base);
                      }
                    } catch (const std::exception& failure) {
                      failures[t] = failure.what();
                      zc_comm_abort(comm);
                    }
                  });
                for (std::thread& thread : threads) thread.join();
                for (const std::string& failure : failures) RANK_CHECK(failure.empty(), "%s", failure.c_str());
              },
              {.helper_thread = helper});
}

TEST(Progress, requests_are_in_the_flight_recorder_with_their_tag) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    Sum sum;
    RANK_OK(sum.begin(comm, rank, -5, 10));
    sum.end(2);
    zc_flight_record record{};
    record.struct_size = sizeof record;
    RANK_OK(zc_comm_flight(comm, rank, 0, &record));
    RANK_CHECK(std::string(record.what) == "zc_all_reduce(count 10, i64, sum), tag -5", "\"%s\"", record.what);
    RANK_CHECK(record.value == 0 && record.status == ZC_OK && record.end_ns >= record.begin_ns, "turn %llu, status %d",
               static_cast<unsigned long long>(record.value), static_cast<int>(record.status));
  });
}

TEST(Progress, staging_is_in_the_ledger_from_the_first_request_that_needs_it) {
  run_ranks(2, [](zc_comm* comm, std::int32_t) {
    const auto control_bytes = [&] {
      zc_ledger ledger{};
      ledger.struct_size = sizeof ledger;
      RANK_OK(zc_comm_ledger(comm, &ledger));
      return ledger.control_bytes;
    };
    RANK_OK(zc_barrier(comm, nullptr));
    const std::size_t before = control_bytes();
    std::int64_t data[2] = {};
    zc_request* request = nullptr;
    const zc_coll_options options = with_tag(0, &request);
    for (int round = 0; round < 2; ++round) {
      RANK_OK(zc_all_to_all(comm, data, data, 1, ZC_DTYPE_I64, &options));
      RANK_OK(zc_request_wait(&request));
      RANK_CHECK(control_bytes() == before + 64 * 2 * 16384, "%zu bytes more", control_bytes() - before);
    }
  });
}

}  // namespace
}  // namespace zerocomm::test
