// System calls that containers refuse: what can be done without them works, and what was chosen is said.
#include "host/box.hpp"

#include <sys/resource.h>

#include <cstdlib>

namespace zerocomm::test {
namespace {

constexpr std::int32_t kRanks = 4;

// Every rank works under the filter. Returns what each says of its copies.
std::vector<std::string> work_without(const std::vector<long>& calls, int error) {
  struct Text {
    char text[256] = {};
  };
  const SharedArray<Text> copies(kRanks);
  ChildRanks ranks(
      kRanks,
      [&](zc_comm* comm, std::int32_t rank) {
        std::snprintf(copies[rank].text, sizeof copies[rank].text, "%s", private_copy_of(comm).c_str());
        use_everything(comm, rank);
      },
      {}, [&](std::int32_t) { refuse(calls, error); });
  expect_ok(ranks.wait(kSlack * 60 * kSecondNs));
  std::vector<std::string> texts;
  for (const Text& each : copies) texts.emplace_back(each.text);
  return texts;
}

TEST(Refused, reading_of_other_processes_leaves_the_staging) {
  for (const int error : {EPERM, ENOSYS}) {
    const std::string wanted = format("staging: rank 0 cannot read the memory of rank 0: %s", std::strerror(error));
    for (const std::string& each : work_without({SYS_process_vm_readv}, error)) EXPECT_EQ(each, wanted);
  }
}

TEST(Refused, new_waits_and_handles_of_processes_are_not_missed) {
  for (const int error : {EPERM, ENOSYS})
    for (const auto& calls : std::vector<std::vector<long>>{{SYS_futex_waitv}, {SYS_pidfd_open}})
      for (const std::string& each : work_without(calls, error)) EXPECT_EQ(each, "process_vm_readv");
}

TEST(Refused, all_of_them_at_once_are_done_without) {
  for (const int error : {EPERM, ENOSYS})
    for (const std::string& each : work_without({SYS_process_vm_readv, SYS_pidfd_open, SYS_futex_waitv}, error))
      EXPECT_EQ(each.find("staging: rank 0 cannot read"), 0u) << each;
}

// Refused on one rank alone, all ranks do without.
TEST(Refused, reading_on_one_rank_is_refused_to_all) {
  ChildRanks ranks(
      kRanks,
      [&](zc_comm* comm, std::int32_t rank) {
        const std::string copy = private_copy_of(comm);
        RANK_CHECK(copy == "staging: rank 2 cannot read the memory of rank 0: Operation not permitted", "%s",
                   copy.c_str());
        use_everything(comm, rank);
      },
      {},
      [](std::int32_t rank) {
        if (rank == 2) refuse({SYS_process_vm_readv}, EPERM);
      });
  expect_ok(ranks.wait(kSlack * 60 * kSecondNs));
}

TEST(Refused, reading_that_was_asked_for_is_an_error_that_says_why) {
  const SharedArray<int> done(kRanks);
  const zc_unique_id id = make_id();
  Children ranks(kRanks, [&](std::int32_t rank) {
    setenv("ZC_COPY", "read", 1);
    refuse({SYS_process_vm_readv}, EPERM);
    const zc_comm_config config = process_config(id, kRanks, rank);
    zc_comm* comm = nullptr;
    RANK_STATUS(ZC_UNSUPPORTED, zc_comm_create(&config, &comm));
    RANK_ERROR_SAYS("cannot read the memory of rank 0: Operation not permitted");
    RANK_ERROR_SAYS("ZC_COPY");
    done[rank] = 1;
  });
  expect_ok(ranks.wait(kSlack * 60 * kSecondNs));
  for (const int each : done) EXPECT_EQ(each, 1);
}

// Processes of one user that may not look into each other, as under Yama or without the right to be dumped.
TEST(Refused, reading_between_processes_that_are_closed_to_each_other) {
  if (geteuid() != 0) GTEST_SKIP() << "becoming another user takes root";
  constexpr uid_t kNobody = 65'534;
  ChildRanks ranks(
      kRanks,
      [&](zc_comm* comm, std::int32_t rank) {
        const std::string copy = private_copy_of(comm);
        RANK_CHECK(copy == "staging: rank 0 cannot read the memory of rank 1: Operation not permitted", "%s",
                   copy.c_str());
        use_everything(comm, rank);
      },
      {},
      [](std::int32_t) {
        RANK_CHECK(setgid(kNobody) == 0 && setuid(kNobody) == 0, "%s", std::strerror(errno));
        prctl(PR_SET_DUMPABLE, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);  // becoming another user has cleared it
      });
  expect_ok(ranks.wait(kSlack * 60 * kSecondNs));
}

std::int64_t process_cpu_ns() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * kSecondNs +
         (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1'000;
}

// Where a keeper can only look from time to time, a rank that is killed is known soon all the same, and looking costs
// little.
TEST(Refused, waiting_for_several_words_does_not_hide_a_death) {
  for (const int error : {EPERM, ENOSYS}) {
    const Shared<std::atomic<std::int32_t>> ready;
    const SharedArray<std::int64_t> known_ns(kRanks), used_ns(kRanks);
    ChildRanks ranks(
        kRanks,
        [&](zc_comm* comm, std::int32_t rank) {
          ++*ready;
          if (rank == 3)
            for (;;) ::pause();
          const std::int64_t before_ns = process_cpu_ns();
          RANK_STATUS(ZC_PEER_LOST, zc_barrier(comm, nullptr));
          known_ns[rank] = steady_ns();
          used_ns[rank] = process_cpu_ns() - before_ns;
          RANK_ERROR_SAYS("rank 3 (pid ");
        },
        {}, [&](std::int32_t) { refuse({SYS_futex_waitv}, error); });
    EXPECT_TRUE(wait_until([&] { return ready->load() == kRanks; }));
    sleep_ns(kSecondNs);
    const std::int64_t killed_ns = steady_ns();
    ranks.send_signal(3, SIGKILL);
    std::vector<ChildEnd> ends = ranks.wait(kSlack * 20 * kSecondNs);
    ends.pop_back();
    expect_ok(ends);
    for (const std::int32_t rank : {0, 1, 2}) {
      EXPECT_LT(known_ns[rank] - killed_ns, kSlack * 200 * kMillisecondNs);
      EXPECT_LT(used_ns[rank], kSlack * 30 * kMillisecondNs);
    }
  }
}

// Without shared memory or threads there is no communicator: every rank gets the same error, at once.
void expect_no_communicator(const std::vector<long>& calls, int error, std::int32_t refused_rank, const char* text) {
  const zc_unique_id id = make_id();
  Children ranks(kRanks, [&](std::int32_t rank) {
    if (rank == refused_rank) refuse(calls, error);
    zc_comm_config config = process_config(id, kRanks, rank);
    config.init_deadline_ns = kSlack * 10 * kSecondNs;
    const std::int64_t begin_ns = steady_ns();
    zc_comm* comm = nullptr;
    RANK_STATUS(ZC_SYSTEM, zc_comm_create(&config, &comm));
    RANK_ERROR_SAYS(text);
    RANK_ERROR_SAYS(std::strerror(error));
    RANK_CHECK(steady_ns() - begin_ns < kSlack * 5 * kSecondNs, "it took long");
  });
  expect_ok(ranks.wait(kSlack * 60 * kSecondNs));
}

TEST(Refused, memory_without_a_name_is_an_error_for_all) {
  for (const int error : {EPERM, ENOSYS}) expect_no_communicator({SYS_memfd_create}, error, 0, "memfd_create");
}

// Nobody would learn of the end of such a rank.
TEST(Refused, robust_futexes_are_an_error_for_all) {
  for (const std::int32_t rank : {0, 3})
    expect_no_communicator({SYS_set_robust_list}, EPERM, rank, "robust futexes are refused");
}

#if !defined(__SANITIZE_THREAD__)
TEST(Refused, threads_are_an_error_for_all) {
  for (const std::int32_t rank : {0, 2})
    expect_no_communicator({SYS_clone, SYS_clone3}, EAGAIN, rank, "starting the keeper thread");
}
#endif

}  // namespace
}  // namespace zerocomm::test
