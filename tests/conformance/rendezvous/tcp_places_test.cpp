// Where ranks meet over TCP: ports that others have, several jobs at once, and names that are hard to find.
#include "tcp_job.hpp"

#include "boot/tcp.hpp"

#include <thread>

namespace zerocomm::test {
namespace {

// One that does not belong to any job, on the port of one. It accepts nobody.
Descriptor listen_on_port(std::uint16_t port) {
  const sockaddr_in place = place_of(INADDR_LOOPBACK, port);
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  if (setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      bind(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0 || listen(socket.get(), 8) != 0)
    throw std::runtime_error("the port is not free");
  return socket;
}

// A start that waits for a port that somebody keeps: rank 0 says within 3 s, with 20 to go, what it cannot have and who
// it is.
TEST(TcpPort, of_another_program_is_refused_early_with_address_and_rank) {
  Job taken, elsewhere;
  taken.ranks = elsewhere.ranks = 2;
  elsewhere.address = "192.0.2.1";  // of no host
  const Descriptor other = listen_on_port(taken.port);
  Processes processes;
  processes.start([&](Report& report) { take_part(report, taken, 0); });
  processes.start([&](Report& report) { take_part(report, elsewhere, 0); });
  const std::string who = format("rank 0 (pid %d on ", processes.pid(0));
  const std::string at = format("cannot listen on 127.0.0.1:%d: another process has it", taken.port);
  expect_all(processes, {0}, ZC_SYSTEM, {who.c_str(), at.c_str(), "Address already in use", "Give a free port"});
  expect_all(processes, {1}, ZC_SYSTEM, {"192.0.2.1:", "Cannot assign requested address", "on which rank 0 runs"});
  for (const std::size_t i : {0u, 1u}) EXPECT_LT(processes.report(i).elapsed_ns, 3 * kSecond);
}

// Two processes of one job that both take themselves for rank 0: all who are there learn which two.
TEST(TcpPort, of_a_second_rank_0_of_the_job_is_a_mismatch_for_all) {
  const Job job;
  Processes processes;
  for (const int rank : {0, 1}) processes.start([&](Report& report) { take_part(report, job, rank); });
  connect_to_port(job.port);
  processes.start([&](Report& report) { take_part(report, job, 0); });
  const std::string twice =
      format("rank 0 came twice, as process %d and as process %d", processes.pid(0), processes.pid(2));
  expect_all(processes, {0, 1, 2}, ZC_MISMATCH, {twice.c_str()});
  for (const std::size_t i : {0u, 1u, 2u}) EXPECT_LT(processes.report(i).elapsed_ns, 5 * kSecond);
}

// Two jobs on one port: the first goes on, and all ranks of the other say what is the matter.
TEST(TcpPort, of_another_job_is_refused_early_and_does_it_no_harm) {
  const KeyFile other_key(std::string(32, 'x'));
  const Job first;
  Job same_key, own_key;
  same_key.key_path = first.key_path, own_key.key_path = other_key.path();
  Processes processes;
  for (const int rank : {0, 1}) processes.start([&](Report& report) { take_part(report, first, rank); });
  connect_to_port(first.port);  // a stranger, which closes at once
  for (Job* job : {&same_key, &own_key}) {
    job->name = job == &same_key ? "same" : "own", job->port = first.port, job->ranks = 2, job->deadline_ms = 4'000;
    for (const int rank : {0, 1}) processes.start([&](Report& report) { take_part(report, *job, rank); });
  }
  const std::string at = format("cannot listen on 127.0.0.1:%d: another process has it", first.port);
  expect_all(processes, {2}, ZC_SYSTEM, {"rank 0 ", at.c_str(), "rank 0 of another job with the same key"});
  expect_all(processes, {4}, ZC_SYSTEM, {"rank 0 ", at.c_str(), "hung up on this rank"});
  for (const std::size_t i : {2u, 4u}) EXPECT_LT(processes.report(i).elapsed_ns, 3 * kSecond);
  expect_all(processes, {3}, ZC_TIMEOUT, {"did not find rank 0", "rank 0 of another job with the same key"});
  expect_all(processes, {5}, ZC_MISMATCH, {"its key is not the one of this rank", "give a free port"});
  processes.start([&](Report& report) { take_part(report, first, 2); });
  for (const std::size_t i : {0u, 1u, 6u}) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
}

// Connections that are still closing hold no port: jobs one after another.
TEST(TcpPort, is_free_again_as_soon_as_the_ranks_have_met) {
  const Job job;
  for (int turn = 0; turn < 5; ++turn) {
    Processes processes;
    for (const int rank : {2, 1, 0}) processes.start([&](Report& report) { take_part(report, job, rank); });
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
  }
}

boot::Meeting meet(const Job& job, const std::string& name, std::int32_t rank, std::int64_t deadline_ns = 10 * kSecond,
                   const boot::NameResolver& resolver = {}) {
  return boot::meet_over_tcp(request_of(name, rank, 2, deadline_ns), {job.address, job.port, job.key_path, resolver});
}

// A process that makes two communicators at a time, of which one is slow: the other waits for the port.
TEST(TcpPort, serves_the_communicators_of_one_process_in_turn) {
  const Job job;
  Processes processes;
  processes.start([&](Report& report) {
    std::string failed;
    std::thread slow([&] {
      try {
        meet(job, "slow", 0);
      } catch (const Error& error) {
        failed = error.what();
      }
    });
    connect_to_port(job.port);
    try {
      meet(job, "fast", 0);
    } catch (const Error& error) {
      failed += error.what();
    }
    slow.join();
    report.say(failed.empty() ? ZC_OK : ZC_INTERNAL, failed);
  });
  connect_to_port(job.port);
  const auto other = [&](const char* name) {
    processes.start([&](Report& report) {
      meet(job, name, 1);
      report.say(ZC_OK, "");
    });
  };
  other("fast");
  sleep_ms(2'200);  // longer than anybody else is waited for
  other("slow");
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
}

// "Address in use" at random, ranks that meet those of another job: many at once, each with a key and a port of its
// own.
TEST(TcpPort, of_each_of_fifty_jobs_at_once_leads_to_its_own_ranks) {
  constexpr std::int64_t kJobs = 50;
  struct Named : Job {
    KeyFile own_key{std::string(32, 'k') + std::to_string(now_ns())};
    Named() { key_path = own_key.path(), ranks = 2, deadline_ms = 40'000; }
  };
  const std::vector<Named> jobs(kJobs);
  Processes processes(2 * kJobs);
  for (const int rank : {1, 0})
    for (std::int64_t number = 0; number < kJobs; ++number)
      processes.start([&](Report& report) {
        jobs[static_cast<std::size_t>(number)].set(rank);
        zc_comm* comm = nullptr;
        check(zc_comm_create(nullptr, &comm));
        std::int64_t value = 1 + number * 1'000'000;
        check(zc_all_reduce(comm, &value, &value, 1, ZC_DTYPE_I64, ZC_OP_SUM, nullptr));
        check(zc_comm_destroy(comm));
        report.say(ZC_OK, std::to_string(value));
      });
  for (std::size_t i = 0; i < 2 * kJobs; ++i) {
    EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
    EXPECT_EQ(processes.report(i).text, std::to_string(2 + 2'000'000 * (static_cast<std::int64_t>(i) % kJobs)));
  }
}

// A resolver that is silent: the deadline is that of the call, and the text has the name.
TEST(TcpName, that_nobody_resolves_is_given_up_at_the_deadline) {
  Job job;
  job.address = "silent.example";
  Processes processes;
  for (const int rank : {0, 1})
    processes.start([&](Report&) {
      meet(job, "silent", rank, 300 * kMs, [](const std::string&) {
        for (;;) sleep_ms(1'000);
        return std::vector<std::string>();
      });
    });
  expect_all(processes, {0}, ZC_TIMEOUT, {"rank 0 (pid", "the name silent.example stands for", "within 0.3 s"});
  expect_all(
      processes, {1}, ZC_TIMEOUT,
      {"rank 1 (pid", "did not find rank 0 within 0.3 s", "the name silent.example: the resolver did not answer"});
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_GE(processes.report(i).elapsed_ns, 300 * kMs);
    EXPECT_LT(processes.report(i).elapsed_ns, 2 * kSecond);
  }
}

// One that answers when nobody waits any more does no harm, and one that takes its time is waited for.
TEST(TcpName, may_be_resolved_late) {
  Job job;
  job.address = "late.example";
  Processes processes;
  for (const int rank : {0, 1})
    processes.start([&](Report& report) {
      try {
        meet(job, "too late", rank, 50 * kMs, [](const std::string&) {
          sleep_ms(200);
          return std::vector<std::string>{"127.0.0.1"};
        });
      } catch (const Error& error) {
        ZC_ASSERT(error.status() == ZC_TIMEOUT);
      }
      sleep_ms(300);
      meet(job, "late", rank, 10 * kSecond, [](const std::string& name) {
        ZC_ASSERT(name == "late.example");
        sleep_ms(100);
        return std::vector<std::string>{"127.0.0.1"};
      });
      report.say(ZC_OK, "");
    });
  for (const std::size_t i : {0u, 1u}) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
}

TEST(TcpName, that_stands_for_nothing_is_named_on_both_sides) {
  Job job;
  job.address = "nothing.example";
  Processes processes;
  for (const int rank : {0, 1})
    processes.start([&](Report&) {
      meet(job, "nothing", rank, 200 * kMs,
           [](const std::string&) -> std::vector<std::string> { throw Error(ZC_SYSTEM, "no such name"); });
    });
  expect_all(processes, {0}, ZC_SYSTEM, {"rank 0 (pid", "cannot listen", "the name nothing.example: no such name"});
  expect_all(processes, {1}, ZC_TIMEOUT, {"rank 1 (pid", "the name nothing.example: no such name"});
}

}  // namespace
}  // namespace zerocomm::test
