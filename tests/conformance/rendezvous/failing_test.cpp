// Somebody does not come, ends, disagrees or gives up: all who are there learn the same, in time, and nothing is left.
#include "processes.hpp"

#include "boot/rendezvous_client.hpp"

#include <cstdlib>

namespace zerocomm::test {
namespace {

// Starts one process for each of `ranks`. Process i is the i-th of them.
void start_ranks(Processes& processes, const std::string& job, const std::vector<std::int32_t>& ranks, std::int32_t of,
                 std::int64_t deadline_ns = 10 * kSecond) {
  for (const std::int32_t rank : ranks)
    processes.start([&](Report& report) { join(report, request_of(job, rank, of, deadline_ns)); });
}

// Says hello as a rank, waits until rank 0 has taken it in, and then runs `after` with the connection still open.
template <class After>
std::size_t start_raw(Processes& processes, const boot::JoinRequest& request, After&& after) {
  return processes.start([&](Report& report) {
    boot::Client client(request, boot::own_identity(request.rank), Deadline::after(request.deadline_ns));
    client.join();
    after();
    report.say(ZC_OK, "");
  });
}

std::string name_of(Processes& processes, std::int32_t rank, std::size_t process) {
  return format("rank %d (pid %d)", rank, processes.pid(process));
}

TEST(Missing, ranks_are_listed_for_all_at_the_earliest_deadline) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_ranks(processes, job, {0}, 5);
  start_ranks(processes, job, {2}, 5, 800 * kMs);
  start_ranks(processes, job, {4}, 5);
  expect_same(
      processes, {0, 1, 2}, ZC_TIMEOUT,
      {"rank 1, rank 3 did not come within 0.8 s, the deadline of rank 2; 3 of 5 came to " + name_of(processes, 0, 0),
       format("network namespace %llu", static_cast<unsigned long long>(boot::own_identity(0).network_namespace))});
  EXPECT_EQ(std::string(processes.report(0).text).find("turned away"), std::string::npos);
  EXPECT_GE(processes.report(1).elapsed_ns, 800 * kMs);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(processes.report(i).elapsed_ns, 3 * kSecond) << i;
}

TEST(Missing, rank_of_an_earlier_start_counts_its_deadline_from_there) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_ranks(processes, job, {1}, 3, 1500 * kMs);
  sleep_ms(300);
  start_ranks(processes, job, {0}, 3, 1500 * kMs);
  expect_same(processes, {0, 1}, ZC_TIMEOUT, {"rank 2 did not come within 1.5 s, the deadline of rank 1"});
  EXPECT_LT(processes.report(1).elapsed_ns, 1490 * kMs);
}

TEST(Missing, names_are_cut_short_when_there_are_many) {
  Processes processes;
  start_ranks(processes, boot::make_unique_job(), {0}, 1024, 100 * kMs);
  expect_same(processes, {0}, ZC_TIMEOUT, {"rank 1, rank 2, ", ", rank 16 and 1007 more did not come"});
}

TEST(Missing, rank_0_is_named_by_each_with_the_place_where_it_looked) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_ranks(processes, job, {1, 2}, 3, 300 * kMs);
  expect_same(processes, {0, 1}, ZC_TIMEOUT,
              {"rank 0 did not come within 0.3 s: nobody listens on @" + boot::job_socket(job),
               format("in network namespace %llu; other network namespaces and hosts are out of reach",
                      static_cast<unsigned long long>(boot::own_identity(0).network_namespace))});
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_GE(processes.report(i).elapsed_ns, 300 * kMs);
    EXPECT_LT(processes.report(i).elapsed_ns, 2 * kSecond);
  }
}

TEST(Missing, rank_that_never_started_does_not_spoil_a_new_job) {
  Processes processes;
  const std::string job = boot::make_unique_job(), again = boot::make_unique_job();
  for (const std::int32_t rank : {0, 1, 3})
    processes.start([&](Report& report) {
      try {
        join(report, request_of(job, rank, 4, 300 * kMs));
      } catch (const Error& error) {
        ZC_ASSERT(error.status() == ZC_TIMEOUT && std::strstr(error.what(), "rank 2 did not come") != nullptr);
      }
      join(report, request_of(again, rank == 3 ? 2 : rank, 3));
    });
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
}

TEST(Missing, rank_between_the_two_steps_is_named_for_all) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_ranks(processes, job, {0, 1}, 3, 500 * kMs);
  processes.start(
      [&](Report& report) { join_and(report, request_of(job, 2, 3), [](boot::Rendezvous&) { sleep_ms(1500); }); });
  expect_same(processes, {0, 1, 2}, ZC_TIMEOUT, {name_of(processes, 2, 2) + " did not finish its set-up within 0.5 s"});
  EXPECT_LT(processes.report(0).elapsed_ns, 1400 * kMs);
}

TEST(Missing, answer_of_a_stopped_rank_0_is_waited_for_until_a_little_after_the_deadline) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  processes.start(
      [&](Report& report) { join_and(report, request_of(job, 0, 2), [](boot::Rendezvous&) { raise(SIGSTOP); }); });
  start_ranks(processes, job, {1}, 2, 200 * kMs);
  processes.wait(1);
  processes.kill(0, SIGCONT);
  expect_same(processes, {1}, ZC_TIMEOUT, {name_of(processes, 0, 0) + " did not answer within 0.2 s"});
  EXPECT_GE(processes.report(1).elapsed_ns, 1200 * kMs);
  expect_same(processes, {0}, ZC_PEER_LOST, {name_of(processes, 1, 1) + " ended"});
}

TEST(Death, of_a_rank_that_waits_is_everybodys_at_once) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_ranks(processes, job, {0, 1}, 4, 20 * kSecond);
  const std::size_t raw = start_raw(processes, request_of(job, 2, 4), [] { _exit(3); });
  expect_same(processes, {0, 1}, ZC_PEER_LOST,
              {name_of(processes, 2, raw) + " ended while the communicator was being created"});
  EXPECT_LT(processes.report(1).elapsed_ns, kSecond);
  EXPECT_LT(processes.report(0).elapsed_ns, 3 * kSecond);  // it tells rank 3 too, if that comes soon
}

TEST(Death, between_the_two_steps_is_everybodys) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_ranks(processes, job, {0, 1, 3}, 4, 20 * kSecond);
  processes.start(
      [&](Report& report) { join_and(report, request_of(job, 2, 4), [](boot::Rendezvous&) { _exit(3); }); });
  expect_same(processes, {0, 1, 2}, ZC_PEER_LOST,
              {name_of(processes, 2, 3) + " ended while the communicator was being created"});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(processes.report(i).elapsed_ns, 3 * kSecond);
}

TEST(Death, of_a_rank_that_leaves_without_a_word_is_everybodys) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_ranks(processes, job, {0, 1}, 3);
  processes.start([&](Report& report) {
    boot::Rendezvous::join(request_of(job, 2, 3), segment_with).reset();
    report.say(ZC_OK, "");
  });
  expect_same(processes, {0, 1}, ZC_PEER_LOST, {name_of(processes, 2, 2) + " ended"});
}

TEST(Death, of_rank_0_while_ranks_come) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  const std::size_t zero = processes.start([&](Report& report) { join(report, request_of(job, 0, 4)); });
  int in[2];
  ASSERT_EQ(pipe(in), 0);
  for (const std::int32_t rank : {1, 2})
    processes.start([&](Report& report) {
      const boot::JoinRequest request = request_of(job, rank, 4, 20 * kSecond);
      boot::Client client(request, boot::own_identity(rank), Deadline::after(request.deadline_ns));
      client.join();
      ZC_ASSERT(write(in[1], "1", 1) == 1);
      std::vector<boot::Identity> ranks;
      Descriptor segment;
      std::uint64_t strangers = 0;
      client.receive_welcome(ranks, segment, strangers);
      report.say(ZC_OK, "");
    });
  char both[2];
  for (char& one : both) ASSERT_EQ(read(in[0], &one, 1), 1);
  processes.kill(zero, SIGKILL);
  close(in[0]);
  close(in[1]);
  expect_same(processes, {1, 2}, ZC_PEER_LOST,
              {name_of(processes, 0, zero) + " ended while the communicator was being created"});
  EXPECT_LT(processes.report(1).elapsed_ns, 5 * kSecond);
}

TEST(Death, of_rank_0_while_it_makes_the_segment) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  processes.start([&](Report&) {
    boot::Rendezvous::join(request_of(job, 0, 3), [](const std::vector<boot::Identity>&) -> Descriptor {
      raise(SIGKILL);
      return {};
    });
  });
  start_ranks(processes, job, {1, 2}, 3, 20 * kSecond);
  expect_same(processes, {1, 2}, ZC_PEER_LOST, {name_of(processes, 0, 0) + " ended"});
}

TEST(Death, of_rank_0_between_the_two_steps) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  processes.start(
      [&](Report& report) { join_and(report, request_of(job, 0, 3), [](boot::Rendezvous&) { raise(SIGKILL); }); });
  start_ranks(processes, job, {1, 2}, 3, 20 * kSecond);
  expect_same(processes, {1, 2}, ZC_PEER_LOST, {name_of(processes, 0, 0) + " ended"});
}

TEST(Death, at_random_moments_leaves_nobody_waiting) {
  constexpr std::int32_t kRanks = 4;
  std::srand(1);
  for (int turn = 0; turn < 24; ++turn) {
    Processes processes;
    const std::string job = boot::make_unique_job();
    std::vector<std::size_t> others;
    const int victim = turn % kRanks;
    for (std::int32_t rank = 0; rank < kRanks; ++rank) {
      start_ranks(processes, job, {rank}, kRanks, 300 * kMs);
      if (rank != victim) others.push_back(static_cast<std::size_t>(rank));
    }
    timespec pause{0, std::rand() % 3'000'000};
    nanosleep(&pause, nullptr);
    processes.kill(static_cast<std::size_t>(victim), SIGKILL);
    for (const std::size_t index : others) {
      const Report& report = processes.report(index);
      EXPECT_TRUE(report.status == ZC_OK || report.status == ZC_PEER_LOST || report.status == ZC_TIMEOUT)
          << report.status << " " << report.text;
      EXPECT_LT(report.elapsed_ns, 10 * kSecond);
    }
  }
}

// It knows nobody's job but its own, so who has been told waits for the next rank 0.
TEST(Death, does_not_spoil_the_next_joining_of_the_same_job) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  for (const std::int32_t rank : {0, 1})
    processes.start([&](Report& report) {
      try {
        join(report, request_of(job, rank, 4));
      } catch (const Error& error) {
        ZC_ASSERT(error.status() == ZC_PEER_LOST);
      }
      join(report, request_of(job, rank, 2));
    });
  start_raw(processes, request_of(job, 2, 4), [] { _exit(3); });
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
}

TEST(Disagreement, about_the_number_of_ranks) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_ranks(processes, job, {0, 1}, 4);
  processes.start([&](Report& report) {
    sleep_ms(100);
    join(report, request_of(job, 2, 3));
  });
  start_ranks(processes, job, {3}, 4);
  expect_same(processes, {0, 1, 2, 3}, ZC_MISMATCH,
              {name_of(processes, 2, 2) + " is one of 3 ranks, " + name_of(processes, 0, 0) + " is one of 4"});
}

TEST(Disagreement, about_the_number_of_ranks_from_a_rank_beyond_it) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_ranks(processes, job, {0}, 2);
  start_ranks(processes, job, {7}, 8);
  expect_same(processes, {0, 1}, ZC_MISMATCH, {" is one of 8 ranks, ", " is one of 2"});
}

TEST(Disagreement, about_what_must_be_equal_shows_both_texts) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_ranks(processes, job, {0, 1}, 3);
  processes.start([&](Report& report) {
    boot::JoinRequest request = request_of(job, 2, 3);
    request.agreed = 8;
    request.agreed_text = std::string(199, 'e') + "ight";
    join(report, request);
  });
  expect_same(processes, {0, 1, 2}, ZC_MISMATCH,
              {name_of(processes, 2, 2) + " has \"" + std::string(199, 'e') + "i\", " + name_of(processes, 0, 0) +
               " has \"seven\""});
}

TEST(Disagreement, that_the_texts_do_not_show_is_shown_by_hashes) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_ranks(processes, job, {0}, 2);
  processes.start([&](Report& report) {
    boot::JoinRequest request = request_of(job, 1, 2);
    request.agreed = 8;
    join(report, request);
  });
  expect_same(processes, {0, 1}, ZC_MISMATCH, {"0000000000000008 and 0000000000000007"});
}

TEST(Disagreement, of_two_processes_about_who_is_rank_1) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_ranks(processes, job, {0}, 3);
  start_raw(processes, request_of(job, 1, 3), [] { sleep_ms(500); });
  processes.start([&](Report& report) {
    sleep_ms(200);
    join(report, request_of(job, 1, 3));
  });
  expect_same(processes, {0, 2}, ZC_MISMATCH,
              {format("rank 1 came twice, as process %d and as process %d", processes.pid(1), processes.pid(2))});
}

TEST(Disagreement, of_two_processes_about_who_is_rank_0) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_ranks(processes, job, {0, 0, 1}, 3, 20 * kSecond);
  expect_same(processes, {0, 1, 2}, ZC_MISMATCH, {"rank 0 came twice, as process "});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(processes.report(i).elapsed_ns, 5 * kSecond);
}

TEST(Disagreement, is_told_to_a_rank_that_comes_a_little_later) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_ranks(processes, job, {0}, 4);
  start_ranks(processes, job, {1}, 3);
  for (const std::int32_t rank : {2, 3})
    processes.start([&](Report& report) {
      sleep_ms(300 * (rank - 1));
      join(report, request_of(job, rank, 4));
    });
  expect_same(processes, {0, 1, 2, 3}, ZC_MISMATCH, {" is one of 3 ranks, "});
  EXPECT_LT(processes.report(1).elapsed_ns, processes.report(0).elapsed_ns);
}

TEST(GivingUp, of_any_rank_is_everybodys_error) {
  for (const std::int32_t loser : {0, 1, 2}) {
    Processes processes;
    const std::string job = boot::make_unique_job();
    for (std::int32_t rank = 0; rank < 3; ++rank)
      processes.start([&](Report& report) {
        join_and(report, request_of(job, rank, 3), [&](boot::Rendezvous& joined) {
          if (rank != loser) return;
          joined.give_up(ZC_NO_MEMORY, "no room for 12345 bytes");
          throw Error(ZC_NO_MEMORY, "no room for 12345 bytes");
        });
      });
    EXPECT_EQ(expect_same(processes, {0, 1, 2}, ZC_NO_MEMORY, {}), "no room for 12345 bytes");
  }
}

TEST(GivingUp, of_rank_0_over_the_segment_is_everybodys_error) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  for (std::int32_t rank = 0; rank < 3; ++rank)
    processes.start([&](Report&) {
      boot::Rendezvous::join(request_of(job, rank, 3), [](const std::vector<boot::Identity>& ranks) -> Descriptor {
        throw Error(ZC_BUDGET, format("a segment for %zu ranks is too much", ranks.size()));
      });
    });
  EXPECT_EQ(expect_same(processes, {0, 1, 2}, ZC_BUDGET, {}), "a segment for 3 ranks is too much");
}

TEST(GivingUp, with_a_status_that_is_none_is_a_defect) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  for (std::int32_t rank = 0; rank < 2; ++rank)
    processes.start([&](Report& report) {
      join_and(report, request_of(job, rank, 2), [&](boot::Rendezvous& joined) {
        if (rank == 0) return;
        joined.give_up(777, "what");
        throw Error(ZC_INTERNAL, "what");
      });
    });
  expect_same(processes, {0, 1}, ZC_INTERNAL, {"what"});
}

}  // namespace
}  // namespace zerocomm::test
