// Who does not belong to the job: other programs of this user, other users, ranks that are not on this host.
#include "processes.hpp"

#include "boot/rendezvous_client.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstdlib>

namespace zerocomm::test {
namespace {

constexpr uid_t kNobody = 65534;

Descriptor stranger(const std::string& job) { return call(boot::job_socket(job)); }

// Milliseconds until the other side closes, at most 5000; -1 if it sends something.
std::int64_t closed_after_ms(const Descriptor& connection) {
  const std::int64_t start_ns = now_ns();
  std::array<std::byte, boot::wire::kMostBytes> room;
  std::vector<pollfd> polled;
  for (;;) {
    const std::int64_t passed_ms = (now_ns() - start_ns) / kMs;
    std::size_t bytes = 0;
    switch (boot::receive_message(connection, room, &bytes)) {
      case boot::Transfer::closed:
        return passed_ms;
      case boot::Transfer::later:
        if (passed_ms >= 5000) return passed_ms;
        polled.assign(1, boot::readable(connection));
        boot::wait_readable(polled, 100 * kMs);
        break;
      default:
        return -1;
    }
  }
}

// A joining of three that takes a while: ranks 0 and 1 come now, rank 2 when finish() says so.
class Slow {
 public:
  explicit Slow(std::int64_t deadline_ns = 20 * kSecond) : deadline_ns_(deadline_ns) { come(0), come(1); }
  const std::string& job() const { return job_; }
  Processes& processes() { return processes_; }
  pid_t rank_0() const { return processes_.pid(0); }
  void come(std::int32_t rank) {
    processes_.start([&](Report& report) { join(report, request_of(job_, rank, 3, deadline_ns_)); });
  }
  // Nanoseconds that rank 2 needed.
  std::int64_t finish() {
    come(2);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(processes_.report(i).status, ZC_OK) << "rank " << i << ": " << processes_.report(i).text;
    return processes_.report(2).elapsed_ns;
  }

 private:
  Processes processes_;
  std::string job_ = boot::make_unique_job();
  std::int64_t deadline_ns_;
};

TEST(Strangers, that_are_silent_and_many_neither_stop_the_ranks_nor_use_up_descriptors) {
  Slow slow;
  Descriptor first = stranger(slow.job());
  const int before = descriptors(slow.rank_0());
  std::vector<Descriptor> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(stranger(slow.job()));
  sleep_ms(50);
  EXPECT_LE(descriptors(slow.rank_0()), before + 70);
  EXPECT_LT(slow.finish(), kSecond);
  for (const Descriptor& connection : silent) EXPECT_LT(closed_after_ms(connection), 100);
}

// Leaves this process so many descriptors.
void allow_descriptors(int count) {
  // A sanitizer opens a pipe where it first meets an exception.
  try {
    throw Error(ZC_INTERNAL, "");
  } catch (const Error& error) {
    ZC_ASSERT(std::string(error.what()).empty());
  }
  const Descriptor next(dup(0));
  const rlimit limit{static_cast<rlim_t>(next.get() + count), static_cast<rlim_t>(next.get() + count)};
  ZC_ASSERT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

TEST(Strangers, that_are_many_do_no_harm_where_descriptors_are_few) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  processes.start([&](Report& report) {
    allow_descriptors(8);  // the socket, two ranks, the segment, one to read the namespaces
    join(report, request_of(job, 0, 3));
  });
  std::vector<Descriptor> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(stranger(job));
  for (const std::int32_t rank : {1, 2})
    processes.start([&](Report& report) { join(report, request_of(job, rank, 3)); });
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
}

TEST(Server, without_a_descriptor_for_a_rank_says_so_to_all) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  processes.start([&](Report& report) {
    allow_descriptors(3);  // the socket and two ranks
    join(report, request_of(job, 0, 4));
  });
  for (const std::int32_t rank : {1, 2, 3})
    processes.start([&](Report& report) { join(report, request_of(job, rank, 4)); });
  expect_same(processes, {0, 1, 2, 3}, ZC_SYSTEM, {"rank 0 cannot let the others in: accept: Too many open files"});
}

TEST(Strangers, that_are_silent_are_dropped_within_2_seconds) {
  Slow slow;
  std::vector<Descriptor> silent;
  for (int i = 0; i < 30; ++i) silent.push_back(stranger(slow.job()));
  const std::int64_t longest_ms = closed_after_ms(silent.back());
  EXPECT_GE(longest_ms, 500);
  EXPECT_LE(longest_ms, 2000);
  for (const Descriptor& connection : silent) EXPECT_LT(closed_after_ms(connection), 50);
  slow.finish();
}

TEST(Strangers, that_say_something_else_are_dropped_at_once) {
  Slow slow;
  const auto dropped = [&](const char* what, const void* message, std::size_t bytes, int descriptor = -1) {
    const Descriptor connection = stranger(slow.job());
    ASSERT_EQ(boot::send_message(connection, message, bytes, descriptor), boot::Transfer::done) << what;
    const std::int64_t passed_ms = closed_after_ms(connection);
    EXPECT_GE(passed_ms, 0) << what;
    EXPECT_LT(passed_ms, 1400) << what;  // the silent ones stay longer
  };
  std::vector<char> garbage(100'000);
  std::srand(1);
  for (char& byte : garbage) byte = static_cast<char>(std::rand());
  dropped("3 bytes", "abc", 3);
  dropped("nothing", "", 0);
  dropped("garbage", garbage.data(), 60);
  dropped("garbage as long as a hello", garbage.data(), sizeof(boot::wire::Hello));
  dropped("a lot of garbage", garbage.data(), garbage.size());
  const std::vector<char> ones(sizeof(boot::wire::Hello), '\xff');  // a stream's reader would see a huge length
  dropped("ones", ones.data(), ones.size());
  const boot::wire::Go go;
  dropped("another message of ours", &go, sizeof go);

  boot::wire::Hello hello;
  hello.job_hash = boot::job_hash(slow.job());
  hello.ranks = 3;
  const auto variant = [&](const char* what, auto&& change) {
    boot::wire::Hello changed = hello;
    changed.identity.rank = 2;
    change(changed);
    dropped(what, &changed, sizeof changed);
  };
  variant("another job", [](boot::wire::Hello& it) { ++it.job_hash; });
  variant("no magic", [](boot::wire::Hello& it) { ++it.header.magic; });
  variant("another kind", [](boot::wire::Hello& it) { it.header.kind = boot::wire::Kind::ready; });
  variant("no ranks", [](boot::wire::Hello& it) { it.ranks = 0; });
  variant("rank below 0", [](boot::wire::Hello& it) { it.identity.rank = -1; });
  variant("rank beyond its own number", [](boot::wire::Hello& it) { it.identity.rank = 3; });
  variant("much too high rank", [](boot::wire::Hello& it) { it.identity.rank = 0x7fffffff; });
  dropped("half a hello", &hello, sizeof hello / 2);
  hello.identity.rank = 2;
  std::array<std::byte, sizeof hello + 8> longer{};
  std::memcpy(longer.data(), &hello, sizeof hello);
  dropped("a hello and more", longer.data(), longer.size());

  const int before = descriptors(slow.rank_0());
  for (int i = 0; i < 20; ++i) {
    dropped("a descriptor", "abc", 3, 0);
    dropped("a hello with a descriptor", &hello, sizeof hello, 0);
  }
  EXPECT_LE(descriptors(slow.rank_0()), before + 1);  // rank 1 may have come
  slow.finish();
}

TEST(Strangers, that_connect_and_close_are_shrugged_off) {
  Slow slow;
  for (int i = 0; i < 500; ++i) {
    const Descriptor connection = stranger(slow.job());
    if (i % 2 == 0) boot::send_message(connection, "abc", 3);
  }
  slow.finish();
}

TEST(Strangers, are_counted_where_somebody_does_not_come) {
  Slow slow(500 * kMs);
  for (int i = 0; i < 5; ++i) {
    const Descriptor connection = stranger(slow.job());
    boot::send_message(connection, "abc", 3);
  }
  expect_same(slow.processes(), {0, 1}, ZC_TIMEOUT,
              {"rank 2 did not come", "; callers turned away that are none of them: 5"});
}

TEST(Strangers, that_call_without_end_do_not_keep_the_ranks_out) {
  Slow slow;
  Processes callers;
  for (int i = 0; i < 3; ++i)
    callers.start([&](Report&) {
      for (;;) {
        int error = 0;
        const Descriptor connection = boot::connect_to(boot::job_socket(slow.job()), &error);
      }
    });
  sleep_ms(100);
  slow.finish();
  for (std::size_t i = 0; i < 3; ++i) callers.kill(i, SIGKILL);
}

TEST(Strangers, of_another_version_make_it_fail_for_all) {
  Slow slow;
  boot::wire::Hello hello;
  ++hello.header.version;
  const Descriptor connection = stranger(slow.job());
  ASSERT_EQ(boot::send_message(connection, &hello, 100), boot::Transfer::done);
  EXPECT_EQ(closed_after_ms(connection), -1);  // it is told
  expect_same(slow.processes(), {0, 1}, ZC_MISMATCH,
              {format("process %d speaks version 3 of the joining, process %d version 2", getpid(), slow.rank_0())});
}

TEST(Server, that_says_something_else_loses_the_client_and_leaks_nothing) {
  using boot::wire::Accepted;
  using boot::wire::Ranks;
  using boot::wire::Segment;
  // What a false rank 0 sends to rank 1 of 2; the client closes then.
  const auto refused = [](const char* what, zc_status status, auto&& say) {
    Processes processes;
    const std::string job = boot::make_unique_job();
    const Descriptor listener = boot::listen_on(boot::job_socket(job));
    processes.start([&](Report& report) { join(report, request_of(job, 1, 2, 2 * kSecond)); });
    Descriptor connection = accept_call(listener);
    say(connection);
    connection = Descriptor();
    const Report& report = processes.report(0);
    EXPECT_EQ(report.status, status) << what << ": " << report.text;
  };
  const auto send = [](const Descriptor& to, const auto& message, int descriptor = -1) {
    EXPECT_EQ(boot::send_message(to, &message, sizeof message, descriptor), boot::Transfer::done);
  };
  const auto accept_and_list = [&](const Descriptor& to) {
    send(to, Accepted());
    Ranks ranks;
    ranks.count = 2;
    send(to, ranks);
  };
  refused("another message", ZC_TRANSPORT, [&](const Descriptor& to) { send(to, Segment()); });
  refused("accepted with a descriptor", ZC_TRANSPORT, [&](const Descriptor& to) { send(to, Accepted(), 0); });
  refused("too many ranks", ZC_TRANSPORT, [&](const Descriptor& to) {
    send(to, Accepted());
    Ranks ranks;
    ranks.count = 3;
    send(to, ranks);
  });
  refused("no ranks", ZC_TRANSPORT, [&](const Descriptor& to) {
    send(to, Accepted());
    send(to, Ranks());
  });
  refused("ranks that are not the next", ZC_TRANSPORT, [&](const Descriptor& to) {
    send(to, Accepted());
    Ranks ranks;
    ranks.first = 1;
    ranks.count = 1;
    send(to, ranks);
  });
  refused("no descriptor", ZC_TRANSPORT, [&](const Descriptor& to) {
    accept_and_list(to);
    send(to, Segment());
  });
  refused("something else with a descriptor", ZC_TRANSPORT, [&](const Descriptor& to) {
    accept_and_list(to);
    send(to, Accepted(), 0);
  });
  refused("too long, with a descriptor", ZC_TRANSPORT, [&](const Descriptor& to) {
    accept_and_list(to);
    const std::array<char, 50'000> much{};
    send(to, much, 0);
  });
  refused("nothing but a descriptor", ZC_PEER_LOST, [&](const Descriptor& to) {
    accept_and_list(to);
    boot::send_message(to, "", 0, 0);
  });
  for (const int count : {2, 3})
    refused("several descriptors", ZC_TRANSPORT, [&](const Descriptor& to) {
      accept_and_list(to);
      Segment segment;
      iovec part{&segment, sizeof segment};
      alignas(cmsghdr) std::array<char, CMSG_SPACE(3 * sizeof(int))> control{};
      msghdr header{};
      header.msg_iov = &part;
      header.msg_iovlen = 1;
      header.msg_control = control.data();
      header.msg_controllen = CMSG_SPACE(static_cast<std::size_t>(count) * sizeof(int));
      cmsghdr* const rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(static_cast<std::size_t>(count) * sizeof(int));  // of descriptor 0
      EXPECT_GT(sendmsg(to.get(), &header, MSG_NOSIGNAL), 0);
    });
  refused("another version", ZC_MISMATCH, [&](const Descriptor& to) {
    Accepted accepted;
    ++accepted.header.version;
    send(to, accepted);
  });
}

// Of another user; needs the right to become one.
#define ZC_SKIP_UNLESS_ROOT() \
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user"

void become_nobody() { ZC_ASSERT(setgid(kNobody) == 0 && setuid(kNobody) == 0 && geteuid() == kNobody); }

TEST(OtherUser, cannot_join_and_learns_nothing) {
  ZC_SKIP_UNLESS_ROOT();
  Slow slow;
  const std::size_t alien = slow.processes().start([&](Report& report) {
    become_nobody();
    boot::wire::Hello hello;  // as good as rank 2's own
    hello.job_hash = boot::job_hash(slow.job());
    hello.agreed = 7;
    hello.ranks = 3;
    hello.deadline_ns = hello.left_ns = 20 * kSecond;
    hello.identity = boot::own_identity(2);
    // The name has the user in it.
    const std::string name = [&] {
      std::string own = boot::job_socket(slow.job());
      return own.replace(own.find("65534"), 5, "0");
    }();
    for (int tries = 0; tries < 5; ++tries) {
      const Descriptor connection = call(name);
      boot::send_message(connection, &hello, sizeof hello);
      const std::int64_t passed_ms = closed_after_ms(connection);
      ZC_ASSERT(passed_ms >= 0 && passed_ms < 1000);
    }
    report.say(ZC_OK, "");
  });
  EXPECT_EQ(slow.processes().report(alien).status, ZC_OK) << slow.processes().report(alien).text;
  Processes& processes = slow.processes();
  slow.come(2);
  for (const std::size_t i : {0u, 1u, 3u}) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
}

// Has the name of a job for a while and says nothing. As another user, it fails if anybody speaks to it.
std::size_t start_holder(Processes& processes, const std::string& job, bool other_user, std::int64_t duration_ms) {
  int ready[2];
  EXPECT_EQ(pipe(ready), 0);
  const std::size_t index = processes.start([&](Report& report) {
    const std::string name = boot::job_socket(job);
    if (other_user) become_nobody();
    const Descriptor listener = boot::listen_on(name);
    ZC_ASSERT(listener && write(ready[1], "1", 1) == 1);
    std::vector<Descriptor> callers;
    for (const std::int64_t end_ns = now_ns() + duration_ms * kMs; now_ns() < end_ns; sleep_ms(1)) {
      int error = 0;
      if (Descriptor caller = boot::accept_from(listener, &error)) callers.push_back(std::move(caller));
      for (const Descriptor& caller : callers) {
        std::array<std::byte, boot::wire::kMostBytes> room;
        std::size_t bytes = 0;
        ZC_ASSERT(boot::receive_message(caller, room, &bytes) != boot::Transfer::done || !other_user);
      }
    }
    report.say(ZC_OK, "");
  });
  char one = 0;
  EXPECT_EQ(read(ready[0], &one, 1), 1);
  close(ready[0]);
  close(ready[1]);
  return index;
}

TEST(OtherUser, that_has_the_name_gets_no_word_and_is_named) {
  ZC_SKIP_UNLESS_ROOT();
  Processes processes;
  const std::string job = boot::make_unique_job();
  const std::size_t holder = start_holder(processes, job, true, 1500);
  for (const std::int32_t rank : {0, 1})
    processes.start([&](Report& report) { join(report, request_of(job, rank, 2, 700 * kMs)); });
  const std::string who =
      format("process %d of user 65534 has the name @%s", processes.pid(holder), boot::job_socket(job).c_str());
  expect_same(processes, {1}, ZC_TIMEOUT, {"rank 0 could not listen within 0.7 s: " + who});
  expect_same(processes, {2}, ZC_TIMEOUT, {"rank 0 did not come within 0.7 s: " + who});
  EXPECT_EQ(processes.report(holder).status, ZC_OK) << processes.report(holder).text;
}

TEST(OtherUser, that_leaves_the_name_in_time_does_no_harm) {
  ZC_SKIP_UNLESS_ROOT();
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_holder(processes, job, true, 300);
  for (const std::int32_t rank : {0, 1})
    processes.start([&](Report& report) { join(report, request_of(job, rank, 2)); });
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
}

// An earlier rank 0 that takes its time to close.
TEST(Holder, of_the_name_that_leaves_in_time_does_no_harm) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  start_holder(processes, job, false, 300);
  for (const std::int32_t rank : {0, 1})
    processes.start([&](Report& report) { join(report, request_of(job, rank, 2)); });
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
}

// A stranger of the same user is asked after half of the time, and does not answer.
TEST(Holder, of_the_name_that_stays_is_named) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  const Descriptor listener = boot::listen_on(boot::job_socket(job));
  processes.start([&](Report& report) { join(report, request_of(job, 0, 2, 300 * kMs)); });
  expect_same(processes, {0}, ZC_TIMEOUT, {format("rank 0 (pid %d) did not answer within 0.3 s", getpid())});
}

// True in a child that has namespaces of its own.
bool leave_namespace(int flag) { return unshare(flag) == 0; }
#define ZC_SKIP_UNLESS_NAMESPACES()                                                                            \
  {                                                                                                            \
    Processes probe;                                                                                           \
    probe.start([](Report& report) { report.say(leave_namespace(CLONE_NEWNET | CLONE_NEWIPC) ? 0 : 1, ""); }); \
    if (probe.report(0).status != 0) GTEST_SKIP() << "this user may not make namespaces";                      \
  }

TEST(OtherNamespace, of_the_network_is_out_of_reach_and_both_sides_say_where_they_are) {
  ZC_SKIP_UNLESS_NAMESPACES();
  Processes processes;
  const std::string job = boot::make_unique_job();
  processes.start([&](Report& report) { join(report, request_of(job, 0, 2, 500 * kMs)); });
  processes.start([&](Report& report) {
    ZC_ASSERT(leave_namespace(CLONE_NEWNET));
    const auto own = static_cast<unsigned long long>(boot::own_identity(1).network_namespace);
    try {
      join(report, request_of(job, 1, 2, 500 * kMs));
    } catch (const Error& error) {
      ZC_ASSERT(std::strstr(error.what(), format("in network namespace %llu; other network namespaces", own).c_str()));
      throw;
    }
  });
  expect_same(processes, {1}, ZC_TIMEOUT, {"rank 0 did not come within 0.5 s: nobody listens"});
  const auto here = static_cast<unsigned long long>(boot::own_identity(0).network_namespace);
  expect_same(processes, {0}, ZC_TIMEOUT, {"rank 1 did not come", format("in network namespace %llu", here)});
  EXPECT_EQ(std::string(processes.report(1).text).find(format("%llu", here)), std::string::npos);
}

TEST(OtherNamespace, of_the_network_is_fine_when_all_are_in_it) {
  ZC_SKIP_UNLESS_NAMESPACES();
  Processes processes;
  const std::string job = boot::make_unique_job();
  processes.start([&](Report& report) {
    ZC_ASSERT(leave_namespace(CLONE_NEWNET));  // loopback is down in it
    Processes inner;
    for (const std::int32_t rank : {0, 1}) inner.start([&](Report& own) { join(own, request_of(job, rank, 2)); });
    ZC_ASSERT(inner.report(0).status == ZC_OK && inner.report(1).status == ZC_OK);
    report.say(ZC_OK, "");
  });
  EXPECT_EQ(processes.report(0).status, ZC_OK) << processes.report(0).text;
}

TEST(OtherNamespace, of_ipc_is_another_host_for_all) {
  ZC_SKIP_UNLESS_NAMESPACES();
  Processes processes;
  const std::string job = boot::make_unique_job();
  for (const std::int32_t rank : {0, 1, 2})
    processes.start([&](Report& report) {
      if (rank == 1) {
        ZC_ASSERT(leave_namespace(CLONE_NEWIPC));
        sleep_ms(100);
      }
      join(report, request_of(job, rank, 3));
    });
  expect_same(processes, {0, 1, 2}, ZC_UNSUPPORTED,
              {format("rank 1 (pid %d) is in IPC namespace ", processes.pid(1)),
               format(", rank 0 (pid %d) in %llu: ", processes.pid(0),
                      static_cast<unsigned long long>(boot::own_identity(0).ipc_namespace)),
               "ranks on several hosts are not supported by this version"});
}

}  // namespace
}  // namespace zerocomm::test
