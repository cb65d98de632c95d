// All come, and find each other.
#include "processes.hpp"

#include "boot/local_socket.hpp"
#include "boot/rendezvous_client.hpp"

namespace zerocomm::test {
namespace {

void expect_all_join(Processes& processes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    EXPECT_EQ(processes.report(i).status, ZC_OK) << "process " << i << ": " << processes.report(i).text;
}

class JoiningOf : public testing::TestWithParam<std::int32_t> {};

// Rank r comes after order(r) pauses.
template <class Order>
void join_in_order(std::int32_t ranks, Order&& order) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    processes.start([&](Report& report) {
      sleep_ms(10 * order(rank));
      join(report, request_of(job, rank, ranks));
    });
  expect_all_join(processes, static_cast<std::size_t>(ranks));
}

TEST_P(JoiningOf, succeeds_when_all_come_at_once) {
  join_in_order(GetParam(), [](std::int32_t) { return 0; });
}
TEST_P(JoiningOf, succeeds_when_rank_0_comes_first) {
  join_in_order(GetParam(), [](std::int32_t rank) { return rank; });
}
TEST_P(JoiningOf, succeeds_when_rank_0_comes_last) {
  join_in_order(GetParam(), [ranks = GetParam()](std::int32_t rank) { return ranks - rank; });
}
TEST_P(JoiningOf, succeeds_when_rank_0_comes_in_the_middle) {
  join_in_order(GetParam(), [ranks = GetParam()](std::int32_t rank) { return (rank + ranks / 2) % ranks; });
}
INSTANTIATE_TEST_SUITE_P(Ranks, JoiningOf, testing::Values(1, 2, 4, 16), testing::PrintToStringParamName());

TEST(Joining, of_a_rank_alone_needs_no_socket_no_job_and_no_time) {
  Processes processes;
  const Descriptor taken = boot::listen_on(boot::job_socket(""));  // if another program has it, that is as good
  processes.start([&](Report& report) {
    const int before = descriptors();
    join_and(report, request_of("", 0, 1, 0), [&](boot::Rendezvous&) { ZC_ASSERT(descriptors() == before + 1); });
  });
  expect_all_join(processes, 1);
}

TEST(Joining, of_more_ranks_than_one_message_lists) {
  Processes processes(100);
  const std::string job = boot::make_unique_job();
  constexpr std::int32_t kRanks = 67;
  for (std::int32_t rank = 0; rank < kRanks; ++rank)
    processes.start([&](Report& report) { join(report, request_of(job, rank, kRanks, 30 * kSecond)); });
  expect_all_join(processes, kRanks);
}

// "Address in use" at random, where each job looks for a free port and then takes it: here none is needed.
TEST(Joining, of_fifty_jobs_at_once_keeps_them_apart) {
  constexpr std::int32_t kRanks = 2, kJobs = 50;
  Processes processes(kJobs * kRanks);
  std::vector<std::string> jobs;
  for (int i = 0; i < kJobs; ++i) jobs.push_back(boot::make_unique_job());
  for (std::int32_t rank = kRanks - 1; rank >= 0; --rank)
    for (const std::string& job : jobs)
      processes.start([&](Report& report) {
        boot::JoinRequest request = request_of(job, rank, kRanks);
        request.agreed = std::hash<std::string>()(job);  // ranks of two jobs would not agree
        join(report, request);
      });
  expect_all_join(processes, kJobs * kRanks);
}

// A program that makes two communicators has one name for both.
TEST(Joining, may_be_repeated_with_the_same_job_at_once) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  for (std::int32_t rank = 0; rank < 4; ++rank)
    processes.start([&](Report& report) {
      for (int turn = 0; turn < 20; ++turn) join(report, request_of(job, rank, 4));
    });
  expect_all_join(processes, 4);
}

TEST(Joining, gives_its_name_free_before_anybody_is_through) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  for (std::int32_t rank = 0; rank < 4; ++rank)
    processes.start([&](Report& report) {
      join_and(report, request_of(job, rank, 4), [&](boot::Rendezvous&) {
        int error = -1;
        ZC_ASSERT(!boot::connect_to(boot::job_socket(job), &error) && error == 0);
      });
    });
  expect_all_join(processes, 4);
}

TEST(Joining, refuses_what_cannot_be_joined) {
  const auto status_of = [](const std::string& job, std::int32_t rank, std::int32_t ranks) -> zc_status {
    try {
      boot::Rendezvous::join(request_of(job, rank, ranks, 0), segment_with);
    } catch (const Error& error) {
      return error.status();
    }
    return ZC_OK;
  };
  EXPECT_EQ(status_of("a", 0, 0), ZC_ARGUMENT);
  EXPECT_EQ(status_of("a", 0, 1025), ZC_ARGUMENT);
  EXPECT_EQ(status_of("a", -1, 2), ZC_ARGUMENT);
  EXPECT_EQ(status_of("a", 2, 2), ZC_ARGUMENT);
  EXPECT_EQ(status_of("", 0, 2), ZC_ARGUMENT);
}

TEST(Joining, is_over_after_its_second_step) {
  const auto joined = boot::Rendezvous::join(request_of("", 0, 1), segment_with);
  joined->confirm();
  joined->give_up(ZC_INTERNAL, "too late");
  try {
    joined->confirm();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ZC_STATE);
  }
}

TEST(UniqueJob, has_its_form_and_comes_once) {
  const std::string one = boot::make_unique_job(), other = boot::make_unique_job();
  EXPECT_NE(one, other);
  for (const std::string& job : {one, other}) {
    EXPECT_TRUE(boot::is_unique_job(job)) << job;
    EXPECT_FALSE(boot::is_unique_job(job + "0"));
    EXPECT_FALSE(boot::is_unique_job(job.substr(1)));
    EXPECT_FALSE(boot::is_unique_job("a" + job.substr(1)));
    EXPECT_FALSE(boot::is_unique_job(job.substr(0, job.size() - 1)));
    EXPECT_FALSE(boot::is_unique_job(job.substr(0, job.size() - 1) + "g"));
    EXPECT_FALSE(boot::is_unique_job(job.substr(0, job.size() - 1) + "A"));
  }
  EXPECT_FALSE(boot::is_unique_job(""));
}

}  // namespace
}  // namespace zerocomm::test
