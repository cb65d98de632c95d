// Requests between processes: all kinds of memory, ranks that are killed in the middle, a child made by fork.
#include "conformance/requests/in_flight.hpp"
#include "support/child_ranks.hpp"

#include <gtest/gtest.h>

namespace zerocomm::test {
namespace {

// A large and a small request at once, in private and shared memory, through every way of copying.
TEST(RequestProcesses, interleave_in_private_and_shared_memory) {
  for (const char* copy : {"staging", "auto"})
    expect_ok(ChildRanks(
                  3,
                  [](zc_comm* comm, std::int32_t rank) {
                    constexpr std::size_t kCount = 100'000;
                    void* shared = nullptr;
                    RANK_OK(zc_mem_alloc(comm, 3 * kCount * sizeof(std::int64_t), &shared));
                    std::vector<std::int64_t> own(3 * kCount);
                    for (int round = 0; round < 3; ++round) {
                      auto* const gathered = round == 0 ? static_cast<std::int64_t*>(shared) : own.data();
                      std::vector<std::int64_t> mine(kCount, 10 * round + rank);
                      zc_request* large = nullptr;
                      const zc_coll_options options = with_tag(1, &large);
                      RANK_OK(zc_all_gather(comm, mine.data(), gathered, kCount, ZC_DTYPE_I64, &options));
                      Sum small, other;
                      RANK_OK(small.begin(comm, rank, 2, 1));
                      RANK_OK(other.begin(comm, rank, 3, 20'000));
                      small.end(3);
                      RANK_OK(zc_request_wait(&large));
                      other.end(3);
                      for (std::size_t i = 0; i < 3 * kCount; ++i)
                        RANK_CHECK(gathered[i] == 10 * round + static_cast<std::int64_t>(i / kCount),
                                   "element %zu is %lld", i, static_cast<long long>(gathered[i]));
                    }
                    RANK_OK(zc_mem_free(comm, shared));
                  },
                  {}, [copy](std::int32_t) { setenv("ZC_COPY", copy, 1); })
                  .wait());
}

// Killed after some time in a loop of requests.
TEST(RequestProcesses, that_lose_a_rank_are_told_which) {
  for (int victim = 0; victim < 3; ++victim) {
    const SharedArray<std::int64_t> rounds(3);
    ChildRanks ranks(3, [&](zc_comm* comm, std::int32_t rank) {
      for (;; ++rounds[rank]) {
        std::vector<Sum> sums(6);
        zc_status status = ZC_OK;
        for (std::size_t i = 0; i < sums.size() && status == ZC_OK; ++i) do {
            status = sums[i].begin(comm, rank, static_cast<std::int64_t>(i), i == 3 ? 50'000 : 10);
            if (status == ZC_AGAIN) std::this_thread::yield();
          } while (status == ZC_AGAIN);
        for (Sum& sum : sums)
          if (const zc_status ended = zc_request_wait(&sum.request); ended != ZC_OK) status = ended;
        if (status == ZC_OK) continue;
        RANK_STATUS(ZC_PEER_LOST, status);
        RANK_ERROR_SAYS("ended without destroying its communicator");
        RANK_ERROR_SAYS("rank " + std::to_string(victim) + " (pid");
        return;
      }
    });
    ASSERT_TRUE(wait_until([&] { return rounds[static_cast<std::size_t>(victim)] > 20; }));
    ranks.send_signal(victim, SIGKILL);
    const std::vector<ChildEnd> ends = ranks.wait(kSlack * 20 * kSecondNs);
    for (int rank = 0; rank < 3; ++rank) {
      const ChildEnd& end = ends[static_cast<std::size_t>(rank)];
      EXPECT_TRUE(rank == victim ? end.killed_by(SIGKILL) : end.ok()) << "rank " << rank << ": " << end.text;
    }
  }
}

// Without a helper a request between processes stands still while a rank computes; with one it does not.
TEST(RequestProcesses, need_a_helper_thread_to_go_on_while_a_rank_computes) {
  for (const bool helper : {false, true}) {
    const Shared<int> over;
    expect_ok(ChildRanks(2,
                         [&](zc_comm* comm, std::int32_t rank) {
                           Sum sum;
                           RANK_OK(sum.begin(comm, rank, 1, 1000));
                           if (rank == 0) {
                             const bool ended =
                                 wait_until([&] { return *over != 0; }, helper ? 30 * kSecondNs : 100 * kMillisecondNs);
                             RANK_CHECK(ended == helper, "helper %d: the other rank is over: %d", helper, ended);
                           }
                           sum.end(2);
                           if (rank == 1) *over = 1;
                         },
                         {.helper_thread = helper})
                  .wait());
  }
}

TEST(RequestProcesses, are_not_those_of_a_child_made_by_fork) {
  for (const bool helper : {false, true})
    expect_ok(ChildRanks(2,
                         [](zc_comm* comm, std::int32_t rank) {
                           Sum sum;
                           RANK_OK(sum.begin(comm, rank, 1, 10));
                           const Children child(1, [&](std::int32_t) {
                             std::int32_t done = 0;
                             RANK_STATUS(ZC_FORKED, zc_request_test(&sum.request, &done));
                             RANK_STATUS(ZC_FORKED, zc_request_wait(&sum.request));
                             RANK_STATUS(ZC_FORKED, zc_request_cancel(&sum.request));
                             RANK_CHECK(sum.request != nullptr, "the handle is gone");
                             RANK_STATUS(ZC_FORKED, zc_comm_destroy(comm));
                           });
                           expect_ok(const_cast<Children&>(child).wait());
                           sum.end(2);
                         },
                         {.helper_thread = helper})
                  .wait());
}

TEST(RequestProcesses, that_disagree_about_their_number_make_no_communicator) {
  const zc_unique_id id = make_id();
  expect_ok(Children(2, [&](std::int32_t rank) {
              zc_comm_config config = process_config(id, 2, rank, {.requests = 4 + rank});
              zc_comm* comm = nullptr;
              RANK_STATUS(ZC_MISMATCH, zc_comm_create(&config, &comm));
              RANK_ERROR_SAYS("requests");
            }).wait());
}

}  // namespace
}  // namespace zerocomm::test
