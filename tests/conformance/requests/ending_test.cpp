// How requests end that do not end well: deadlines, abort, a communicator that is destroyed, options without meaning.
#include "conformance/requests/in_flight.hpp"

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

namespace zerocomm::test {
namespace {

constexpr std::int64_t kShortNs = 50 * kMillisecondNs;

TEST(Ending, a_deadline_names_tag_turn_and_rank) {
  run_ranks(3, [](zc_comm* comm, std::int32_t rank) {
    Sum good, late;
    RANK_OK(good.begin(comm, rank, 12, 10));
    good.end(3);
    RANK_OK(zc_barrier(comm, nullptr));
    if (rank == 2) return;
    RANK_OK(late.begin(comm, rank, 12, 10, 0, rank == 0 ? kShortNs : 0));
    RANK_STATUS(ZC_TIMEOUT, zc_request_wait(&late.request));
    RANK_ERROR_SAYS("rank 0 waited 0.050 s in zc_all_reduce: rank 2 did not come to tag 12, turn 1");
    RANK_CHECK(late.request == nullptr, "a handle is left");
    Sum more;
    RANK_STATUS(ZC_TIMEOUT, more.begin(comm, rank, 12, 10));
  });
}

TEST(Ending, a_deadline_passes_in_tests_too) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    if (rank == 1) return;
    Sum late;
    RANK_OK(late.begin(comm, rank, 1, 10, 0, kShortNs));
    std::int32_t done = 0;
    zc_status status = ZC_OK;
    while ((status = zc_request_test(&late.request, &done)) == ZC_OK && done == 0) std::this_thread::yield();
    RANK_STATUS(ZC_TIMEOUT, status);
    RANK_ERROR_SAYS("rank 1 did not come to tag 1, turn 0");
    RANK_CHECK(done == 1 && late.request == nullptr, "done %d", done);
  });
}

TEST(Ending, a_deadline_of_a_pair_names_both_and_does_not_ask_others) {
  run_ranks(3, [](zc_comm* comm, std::int32_t rank) {
    if (rank != 1) return;
    std::int64_t value = 0;
    const zc_coll_options options = with_tag(5, nullptr, kShortNs);
    RANK_STATUS(ZC_TIMEOUT, zc_send(comm, &value, 1, ZC_DTYPE_I64, 0, &options));
    RANK_ERROR_SAYS("rank 1 waited 0.050 s in zc_send: rank 0 did not come to tag 5, turn 0 from rank 1 to 0");
  });
}

// A request may be older than its deadline, if all that is needed has come by the time somebody looks: of a barrier,
// the posts of all ranks.
TEST(Ending, a_deadline_that_passed_while_nobody_waited_hurts_nobody) {
  run_ranks(2, [](zc_comm* comm, std::int32_t) {
    zc_request* request = nullptr;
    const zc_coll_options options = with_tag(1, &request, kShortNs);
    RANK_OK(zc_barrier(comm, &options));
    std::this_thread::sleep_for(std::chrono::milliseconds(80));
    RANK_OK(zc_barrier(comm, nullptr));
    RANK_OK(zc_request_wait(&request));
  });
}

TEST(Ending, abort_ends_all_requests_everywhere) {
  std::atomic<int> begun{0};
  run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
    std::vector<Sum> sums(5);
    for (std::size_t i = 0; i < sums.size(); ++i)
      if (rank != 2) RANK_OK(sums[i].begin(comm, rank, static_cast<std::int64_t>(i), 10));
    if (rank == 2) {
      while (begun.load() < 2 && zc_comm_status(comm) == ZC_OK) std::this_thread::yield();
      RANK_OK(zc_comm_abort(comm));
      return;
    }
    ++begun;
    for (Sum& sum : sums) {
      RANK_STATUS(ZC_ABORTED, zc_request_wait(&sum.request));
      RANK_ERROR_SAYS(rank_name(2) + " called zc_comm_abort");
    }
  });
}

TEST(Ending, a_rank_that_leaves_is_lost_to_those_who_need_it) {
  RankThreads group(3);
  std::vector<Sum> sums(3);
  group.run([&](zc_comm* comm, std::int32_t rank) {
    if (rank != 2) RANK_OK(sums[static_cast<std::size_t>(rank)].begin(comm, rank, 4, 10));
  });
  group.destroy(2);
  group.run([&](zc_comm* comm, std::int32_t rank) {
    if (comm == nullptr) return;
    RANK_STATUS(ZC_PEER_LOST, zc_request_wait(&sums[static_cast<std::size_t>(rank)].request));
    RANK_ERROR_SAYS("rank 2 has destroyed its communicator");
    RANK_ERROR_SAYS("tag 4, turn 0");
  });
}

TEST(Ending, a_rank_that_leaves_in_the_middle_takes_its_buffers_along) {
  RankThreads group(2);
  std::vector<Sum> sums(2);
  constexpr std::size_t kCount = std::size_t{1} << 20;
  std::atomic<int> begun{0};
  group.run([&](zc_comm* comm, std::int32_t rank) {
    Sum& sum = sums[static_cast<std::size_t>(rank)];
    RANK_OK(sum.begin(comm, rank, 4, kCount));
    ++begun;
    while (begun.load() < 2 && zc_comm_status(comm) == ZC_OK) std::this_thread::yield();  // no call that works on it
    RANK_CHECK(!is_over(&sum.request), "8 MiB in one slice");
  });
  group.destroy(1);
  sums[1].data = {};  // nobody reads it any more
  RankThreads::Body rest = [&](zc_comm* comm, std::int32_t rank) {
    if (rank == 1) {
      RANK_STATUS(ZC_STATE, zc_request_wait(&sums[1].request));
      RANK_ERROR_SAYS("the communicator was destroyed with tag 4, turn 0");
      return;
    }
    RANK_STATUS(ZC_PEER_LOST, zc_request_wait(&sums[0].request));
    RANK_ERROR_SAYS("rank 1 has destroyed its communicator");
    static_cast<void>(comm);
  };
  group.run(rest);
}

TEST(Ending, the_rank_that_leaves_first_does_not_disturb_what_is_over) {
  RankThreads group(2);
  std::vector<Sum> sums(2);
  // Rank 0 needs nothing more of rank 1 when its end comes, but has not looked.
  group.run([&](zc_comm* comm, std::int32_t rank) {
    zc_request* request = nullptr;
    const zc_coll_options options = with_tag(1, &request);
    RANK_OK(zc_barrier(comm, &options));
    if (rank == 1) RANK_OK(zc_request_wait(&request));
    if (rank == 0) sums[0].request = request;
  });
  group.destroy(1);
  group.run([&](zc_comm*, std::int32_t rank) {
    if (rank == 0) RANK_OK(zc_request_wait(&sums[0].request));
  });
}

// Bytes of shared memory that this process has open.
std::int64_t shared_bytes() {
  std::int64_t sum = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string name = std::filesystem::read_symlink(entry.path(), gone).string();
    struct stat info {};
    if (!gone && name.starts_with("/memfd:") && stat(entry.path().c_str(), &info) == 0) sum += info.st_blocks * 512;
  }
  return sum;
}

// The staging of a child's requests goes with the child.
TEST(Ending, of_many_children_with_requests_gives_all_memory_back) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    std::int64_t before = 0;
    for (int turn = 0; turn < 40; ++turn) {
      zc_comm* child = nullptr;
      RANK_OK(zc_comm_split(comm, 0, rank, nullptr, &child));
      Sum sum;
      RANK_OK(sum.begin(child, rank, 1, 5000));
      sum.end(2);
      RANK_OK(zc_comm_destroy(child));
      RANK_OK(zc_barrier(comm, nullptr));
      if (turn == 2) before = shared_bytes();
      RANK_OK(zc_barrier(comm, nullptr));
    }
    RANK_CHECK(shared_bytes() == before, "%lld bytes more", static_cast<long long>(shared_bytes() - before));
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

TEST(Ending, options_without_meaning_are_refused) {
  run_ranks(1, [](zc_comm* comm, std::int32_t rank) {
    zc_coll_options options = with_tag(3);
    RANK_STATUS(ZC_ARGUMENT, zc_barrier(comm, &options));
    RANK_ERROR_SAYS("tag 3 without a request");
    options = with_tag(0);
    options.algorithm = "ring";
    RANK_STATUS(ZC_UNSUPPORTED, zc_barrier(comm, &options));
    options = with_tag(0);
    options.reproducible = static_cast<zc_switch>(3);
    RANK_STATUS(ZC_ARGUMENT, zc_barrier(comm, &options));
    zc_request* request = reinterpret_cast<zc_request*>(&options);
    options = with_tag(3, &request);
    options.deadline_ns = ZC_POLL;
    RANK_STATUS(ZC_ARGUMENT, zc_barrier(comm, &options));
    std::int32_t done = 0;
    RANK_STATUS(ZC_ARGUMENT, zc_request_test(nullptr, &done));
    RANK_STATUS(ZC_ARGUMENT, zc_request_wait(nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_request_wait_all(nullptr, 1));
    RANK_OK(zc_request_wait_all(nullptr, 0));
    check_alive(comm, rank, 1);
  });
  zc_comm_config config{};
  config.struct_size = sizeof config;
  zc_comm* comm = nullptr;
  for (const std::int32_t requests : {-1, 4097}) {
    config.requests = requests;
    EXPECT_EQ(zc_comm_create_threads(1, &config, &comm), ZC_ARGUMENT);
    EXPECT_NE(std::string(zc_last_error()).find("1 to 4096"), std::string::npos);
  }
}

}  // namespace
}  // namespace zerocomm::test
