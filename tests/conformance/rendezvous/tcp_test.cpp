// Ranks that meet over TCP: strangers on the port, wrong keys, missing ranks, and that data goes by shared memory after
// all. The ranks make real communicators, from the variables that a user would set.
#include "tcp_job.hpp"

#include "boot/tcp_wire.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

namespace zerocomm::test {
namespace {

struct Stranger {
  Descriptor socket;
  std::int64_t since_ns = now_ns();
};

// Waits until the other side has hung up on all. The longest that any was kept.
std::int64_t longest_kept_ns(std::vector<Stranger>& strangers) {
  std::int64_t longest_ns = 0;
  while (!strangers.empty()) {
    std::vector<pollfd> polled;
    for (const Stranger& one : strangers) polled.push_back({one.socket.get(), POLLIN, 0});
    poll(polled.data(), polled.size(), 100);
    std::vector<Stranger> left;
    for (std::size_t i = 0; i < strangers.size(); ++i) {
      char byte = 0;
      const ssize_t got = polled[i].revents == 0 ? 1 : recv(strangers[i].socket.get(), &byte, 1, MSG_DONTWAIT);
      EXPECT_FALSE(polled[i].revents != 0 && got > 0) << "a stranger got an answer";
      const std::int64_t kept_ns = now_ns() - strangers[i].since_ns;
      if (got <= 0 || kept_ns > 30 * kSecond)
        longest_ns = std::max(longest_ns, kept_ns);
      else
        left.push_back(std::move(strangers[i]));
    }
    strangers = std::move(left);
  }
  return longest_ns;
}

// A scan of the port that ends the start of a job, or a stranger for whom a rank waits for ever: nothing, 3 bytes, 8
// wrong bytes, a length of 4 GiB, silence: 200 times, while rank 2 is still to come.
TEST(TcpStrangers, two_hundred_times_five_are_dropped_within_2_seconds_and_counted) {
  const Job job;
  Processes processes;
  for (const int rank : {0, 1}) processes.start([&](Report& report) { take_part(report, job, rank); });
  std::vector<Stranger> strangers;
  const std::array<unsigned char, 8> length = {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0};
  for (int turn = 0; turn < 200; ++turn)
    for (int kind = 0; kind < 5; ++kind) {
      Stranger one{connect_to_port(job.port)};
      const auto say = [&](const void* bytes, std::size_t count) {
        static_cast<void>(send(one.socket.get(), bytes, count, MSG_NOSIGNAL));
      };
      if (kind == 0) continue;  // closes at once
      if (kind == 1) say("abc", 3);
      if (kind == 2) say("notakey!", 8);
      if (kind == 3) say(length.data(), length.size());
      strangers.push_back(std::move(one));
    }
  EXPECT_LE(longest_kept_ns(strangers), 2 * kSecond);
  processes.start([&](Report& report) { take_part(report, job, 2); });
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
  EXPECT_STREQ(processes.report(0).text, "1000");
}

TEST(TcpStrangers, that_come_all_the_time_do_not_keep_the_ranks_out) {
  const Job job;
  Processes processes;
  processes.start([&](Report& report) { take_part(report, job, 0); });
  std::vector<Stranger> silent;
  for (int i = 0; i < 300; ++i) silent.push_back({connect_to_port(job.port)});
  const std::int64_t start_ns = now_ns();
  for (const int rank : {1, 2}) processes.start([&](Report& report) { take_part(report, job, rank); });
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
  EXPECT_LT(now_ns() - start_ns, 5 * kSecond);
}

// Sockets of this network namespace that listen on a port, as "address" of /proc/net/tcp and tcp6.
std::vector<std::string> listeners(std::uint16_t port) {
  std::vector<std::string> found;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state;
      words >> number >> local >> remote >> state;
      if (state == "0A" && local.ends_with(format(":%04X", port))) found.push_back(local.substr(0, local.find(':')));
    }
  }
  return found;
}

// A port that is open on every interface, and says something to whoever comes: another address of this host reaches
// nobody, and a caller that has another address hears nothing.
TEST(Tcp, only_the_given_address_listens) {
  const Job job;
  Processes processes;
  processes.start([&](Report& report) { take_part(report, job, 0); });
  connect_to_port(job.port);
  EXPECT_EQ(listeners(job.port), std::vector<std::string>{"0100007F"});
  const sockaddr_in second = place_of(INADDR_LOOPBACK + 1, 0), other = place_of(INADDR_LOOPBACK + 1, job.port),
                    given = place_of(INADDR_LOOPBACK, job.port);
  const auto call = [](const Descriptor& socket, const sockaddr_in& place) {
    return connect(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0 ? 0 : errno;
  };
  const Descriptor refused(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(call(refused, other), ECONNREFUSED);
  const Descriptor heard(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(heard.get(), reinterpret_cast<const sockaddr*>(&second), sizeof second), 0);
  ASSERT_EQ(call(heard, given), 0);
  EXPECT_EQ(send(heard.get(), "notakey!", 8, MSG_NOSIGNAL), 8);
  char byte = 0;
  EXPECT_LE(recv(heard.get(), &byte, 1, 0), 0) << "a stranger got an answer";
  for (const int rank : {1, 2}) processes.start([&](Report& report) { take_part(report, job, rank); });
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
  EXPECT_EQ(listeners(job.port), std::vector<std::string>{});
}

// Makes `name` stand for ::1 and for 127.0.0.1, in this process. False if it may not.
bool name_two_addresses(const char* name) {
  char path[] = "/tmp/zc_hosts_XXXXXX";
  const Descriptor file(mkstemp(path));
  const std::string text = format("::1 %s\n127.0.0.1 %s\n127.0.0.1 localhost\n", name, name);
  const bool done = write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                    fchmod(file.get(), 0644) == 0 && unshare(CLONE_NEWNS) == 0 &&
                    mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                    mount(path, "/etc/hosts", nullptr, MS_BIND, nullptr) == 0;
  unlink(path);
  return done;
}

// The first address that a name stands for is IPv6, and rank 0 listens on the second: the others find it there. Where
// nobody listens, the text has every address with what became of it.
TEST(Tcp, a_name_of_two_addresses_is_tried_at_both) {
  Job there, nowhere;
  there.ranks = nowhere.ranks = 2;
  nowhere.deadline_ms = 300;
  Processes processes;
  processes.start([&](Report& report) { take_part(report, there, 0); });
  for (Job* job : {&there, &nowhere})
    processes.start([&](Report& report) {
      if (!name_two_addresses("twofold")) return report.say(-3, "no namespace");
      job->address = "twofold";
      take_part(report, *job, 1);
    });
  if (processes.report(1).status == -3) {
    processes.kill(0, SIGKILL);
    GTEST_SKIP() << "this user may not make namespaces";
  }
  for (const std::size_t i : {0u, 1u}) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
  const std::string text = processes.report(2).text;
  EXPECT_EQ(processes.report(2).status, ZC_TIMEOUT) << text;
  for (const char* address : {"[::1]", "127.0.0.1"})
    EXPECT_NE(text.find(format("%s:%d: ", address, nowhere.port)), std::string::npos) << text;
}

bool has_localhost() {
  addrinfo* found = nullptr;
  const bool known = getaddrinfo("localhost", nullptr, nullptr, &found) == 0;
  if (known) freeaddrinfo(found);
  return known;
}

// A name may stand for several addresses, of which only some can be reached.
TEST(Tcp, every_address_of_a_name_is_tried) {
  if (!has_localhost()) GTEST_SKIP() << "this system does not know the name localhost";
  Job job;
  job.address = "localhost";
  Processes processes;
  for (const int rank : {2, 1, 0}) processes.start([&](Report& report) { take_part(report, job, rank); });
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
}

// A handshake that somebody has overheard, said again, and changed in any of its parts.
TEST(TcpStrangers, that_repeat_or_change_what_a_rank_has_said_get_no_answer) {
  const Job job;
  Processes processes;
  processes.start([&](Report& report) { take_part(report, job, 0); });
  const boot::Key key = boot::Key::read(job.key_path);
  boot::wire::Greeting greeting;
  greeting.job_mark = boot::wire::job_mark("zc run ZC_JOB=tcp #0");
  greeting.nonce = boot::make_nonce();
  greeting.proof = key.prove(boot::Proof::greeting, boot::wire::mark_text(greeting.job_mark), greeting.nonce, {});
  const auto answered = [&](const boot::wire::Greeting& said) {
    const Descriptor socket = connect_to_port(job.port);
    EXPECT_EQ(send(socket.get(), &said, sizeof said, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof said));
    char byte = 0;
    return recv(socket.get(), &byte, 1, 0) == 1;
  };
  EXPECT_TRUE(answered(greeting));
  EXPECT_FALSE(answered(greeting));
  for (std::size_t at = 0; at < sizeof greeting; at += 5) {
    boot::wire::Greeting changed = greeting;
    changed.nonce = boot::make_nonce();
    changed.proof = key.prove(boot::Proof::greeting, boot::wire::mark_text(changed.job_mark), changed.nonce, {});
    reinterpret_cast<unsigned char*>(&changed)[at] ^= 1;
    const bool reserved =
        at >= offsetof(boot::wire::Greeting, reserved) && at < offsetof(boot::wire::Greeting, job_mark);
    EXPECT_TRUE(reserved || !answered(changed)) << "byte " << at;
  }
  // A greeting that is right, and an answer that is not: a challenge is all that ever comes.
  for (int turn = 0; turn < 8; ++turn) {
    greeting.nonce = boot::make_nonce();
    greeting.proof = key.prove(boot::Proof::greeting, boot::wire::mark_text(greeting.job_mark), greeting.nonce, {});
    const Descriptor socket = connect_to_port(job.port);
    EXPECT_EQ(send(socket.get(), &greeting, sizeof greeting, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof greeting));
    boot::wire::Challenge challenge;
    EXPECT_EQ(recv(socket.get(), &challenge, sizeof challenge, MSG_WAITALL), static_cast<ssize_t>(sizeof challenge));
    boot::wire::Answer answer{key.prove(boot::Proof::client, "zc run ZC_JOB=tcp #0", greeting.nonce, challenge.nonce)};
    reinterpret_cast<unsigned char*>(&answer)[4 * turn % static_cast<int>(sizeof answer)] ^= 1;
    EXPECT_EQ(send(socket.get(), &answer, sizeof answer, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof answer));
    char byte = 0;
    EXPECT_LE(recv(socket.get(), &byte, 1, 0), 0) << "turn " << turn;
  }
  for (const int rank : {1, 2}) processes.start([&](Report& report) { take_part(report, job, rank); });
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(processes.report(i).status, ZC_OK) << processes.report(i).text;
}

TEST(Tcp, a_wrong_key_is_refused_with_a_message_that_helps_on_both_sides) {
  Job job;
  job.ranks = 2;
  job.deadline_ms = 1'500;
  const KeyFile other(std::string(32, 'x'));
  Job wrong;
  wrong.key_path = other.path(), wrong.port = job.port, wrong.ranks = 2, wrong.deadline_ms = job.deadline_ms;
  Processes processes;
  processes.start([&](Report& report) { take_part(report, job, 0); });
  processes.start([&](Report& report) { take_part(report, wrong, 1); });
  const Report &zero = processes.report(0), &one = processes.report(1);
  EXPECT_EQ(one.status, ZC_MISMATCH) << one.text;
  EXPECT_EQ(zero.status, ZC_TIMEOUT) << zero.text;
  for (const Report* report : {&zero, &one}) {
    EXPECT_NE(std::string(report->text).find("give all hosts the same ZC_KEY_FILE"), std::string::npos) << report->text;
    EXPECT_NE(std::string(report->text).find("fingerprint"), std::string::npos) << report->text;
  }
  EXPECT_NE(std::string(zero.text).find("rank 1 did not come"), std::string::npos) << zero.text;
}

TEST(Tcp, ranks_that_do_not_come_are_named_to_all) {
  Job job;
  job.ranks = 4;
  job.deadline_ms = 700;
  Processes processes;
  for (const int rank : {0, 2}) processes.start([&](Report& report) { take_part(report, job, rank); });
  expect_all(processes, {0, 1}, ZC_TIMEOUT, {"rank 1, rank 3 did not come"});
}

TEST(TcpStrangers, are_counted_where_a_rank_does_not_come) {
  Job job;
  job.deadline_ms = 700;
  Processes processes;
  for (const int rank : {0, 1}) processes.start([&](Report& report) { take_part(report, job, rank); });
  for (int i = 0; i < 5; ++i) {
    const Descriptor socket = connect_to_port(job.port);
    if (i % 2 == 0) static_cast<void>(send(socket.get(), "abc", 3, MSG_NOSIGNAL));
  }
  expect_all(processes, {0, 1}, ZC_TIMEOUT, {"rank 2 did not come", "callers turned away that are none of them: 5"});
}

TEST(Tcp, a_rank_that_ends_meanwhile_is_lost_to_all) {
  const Job job;
  Processes processes;
  for (const int rank : {0, 1}) processes.start([&](Report& report) { take_part(report, job, rank); });
  connect_to_port(job.port);
  sleep_ms(300);
  processes.kill(1, SIGKILL);
  processes.start([&](Report& report) { take_part(report, job, 2); });
  expect_all(processes, {0, 2}, ZC_PEER_LOST, {"rank 1", "ended while the communicator was being created"});
}

TEST(Tcp, ranks_that_disagree_are_told_both_sides) {
  const Job job;
  Job other;
  other.port = job.port, other.key_path = job.key_path, other.ranks = 4;
  Processes processes;
  processes.start([&](Report& report) { take_part(report, job, 0); });
  processes.start([&](Report& report) { take_part(report, other, 1); });
  expect_all(processes, {0, 1}, ZC_MISMATCH, {"is one of 4 ranks", "is one of 3"});
}

TEST(Tcp, one_rank_twice_is_a_mismatch) {
  const Job job;
  Processes processes;
  for (const int rank : {0, 1, 1}) processes.start([&](Report& report) { take_part(report, job, rank); });
  expect_all(processes, {0, 1, 2}, ZC_MISMATCH, {"rank 1"});
}

TEST(Tcp, a_rank_of_another_host_is_told_where_everybody_is) {
  Job job;
  job.ranks = 2;
  Processes processes;
  processes.start([&](Report& report) { take_part(report, job, 0); });
  processes.start([&](Report& report) {
    // The same network, and memory that cannot be shared.
    if (unshare(CLONE_NEWIPC) != 0) {
      report.say(-3, "no namespace");
      return;
    }
    take_part(report, job, 1);
  });
  if (processes.report(1).status == -3) {
    processes.kill(0, SIGKILL);
    GTEST_SKIP() << "this user may not make namespaces";
  }
  expect_all(processes, {0, 1}, ZC_UNSUPPORTED, {"rank 0", "rank 1", "host"});
}

TEST(Tcp, a_rank_that_finds_nobody_says_what_became_of_every_address) {
  if (!has_localhost()) GTEST_SKIP() << "this system does not know the name localhost";
  Job job;
  job.ranks = 2;
  job.deadline_ms = 200;
  job.address = "localhost";
  Processes processes;
  processes.start([&](Report& report) { take_part(report, job, 1); });
  const std::string at = format("127.0.0.1:%d: Connection refused", job.port);
  expect_all(processes, {0}, ZC_TIMEOUT, {"did not find rank 0 within 0.2 s", at.c_str()});
}

}  // namespace
}  // namespace zerocomm::test
