// One rank gives a descriptor to others.
#include "processes.hpp"

#include "base/wait.hpp"
#include "boot/exchange.hpp"
#include "boot/local_socket.hpp"
#include "boot/rendezvous_wire.hpp"

#include <csignal>
#include <cstdlib>

namespace zerocomm::test {
namespace {

const auto kNever = [] { return false; };

Descriptor file_with(const std::string& text) {
  Descriptor file(memfd_create("exchange", MFD_CLOEXEC));
  ZC_ASSERT(write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  return file;
}

std::string text_of(const Descriptor& file) {
  std::string text(100, '\0');
  const ssize_t bytes = pread(file.get(), text.data(), text.size(), 0);
  text.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  return text;
}

void send(Report& report, const std::string& name, int receivers, std::int64_t deadline_ns = 10 * kSecond) {
  const Descriptor file = file_with("hello from " + name);
  boot::send_descriptor(name, file.get(), receivers, deadline_ns, kNever);
  report.say(ZC_OK, "");
}

void receive(Report& report, const std::string& name, std::int64_t deadline_ns = 10 * kSecond) {
  const Descriptor file = boot::receive_descriptor(name, deadline_ns, kNever);
  ZC_ASSERT(text_of(file) == "hello from " + name);
  ZC_ASSERT((fcntl(file.get(), F_GETFD) & FD_CLOEXEC) != 0);
  report.say(ZC_OK, "");
}

void expect_all(Processes& processes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    EXPECT_EQ(processes.report(i).status, ZC_OK) << "process " << i << ": " << processes.report(i).text;
}

class ExchangeOf : public testing::TestWithParam<int> {};

TEST_P(ExchangeOf, gives_each_its_descriptor_when_the_sender_comes_first) {
  Processes processes;
  const std::string name = boot::make_unique_job();
  processes.start([&](Report& report) { send(report, name, GetParam()); });
  for (int i = 0; i < GetParam(); ++i)
    processes.start([&](Report& report) {
      sleep_ms(50);
      receive(report, name);
    });
  expect_all(processes, static_cast<std::size_t>(GetParam()) + 1);
}

TEST_P(ExchangeOf, gives_each_its_descriptor_when_the_sender_comes_last) {
  Processes processes;
  const std::string name = boot::make_unique_job();
  for (int i = 0; i < GetParam(); ++i) processes.start([&](Report& report) { receive(report, name); });
  processes.start([&](Report& report) {
    sleep_ms(50);
    send(report, name, GetParam());
  });
  expect_all(processes, static_cast<std::size_t>(GetParam()) + 1);
}
INSTANTIATE_TEST_SUITE_P(Receivers, ExchangeOf, testing::Values(1, 2, 5, 16), testing::PrintToStringParamName());

TEST(Exchange, without_receivers_is_done) { boot::send_descriptor("nobody", 0, 0, 0, kNever); }

TEST(Exchange, several_at_once_do_not_meet) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  for (const std::string& name : {job + "a", job + "b", job + "c", job + "d"}) {
    processes.start([&](Report& report) { send(report, name, 3); });
    for (int i = 0; i < 3; ++i) processes.start([&](Report& report) { receive(report, name); });
  }
  expect_all(processes, 16);
}

TEST(Exchange, may_be_repeated_with_the_same_name) {
  Processes processes;
  const std::string name = boot::make_unique_job();
  constexpr int kTurns = 20;
  for (int rank = 0; rank < 3; ++rank)
    processes.start([&](Report& report) {
      for (int turn = 0; turn < kTurns; ++turn)  // every rank gives in turn; a name says whose turn it is
        if (turn % 3 == rank)
          send(report, format("%s %d", name.c_str(), turn), 2);
        else
          receive(report, format("%s %d", name.c_str(), turn));
    });
  expect_all(processes, 3);
}

TEST(Exchange, that_nobody_comes_to_times_out_on_both_sides) {
  Processes processes;
  const std::string job = boot::make_unique_job();
  processes.start([&](Report& report) { send(report, job + " sender", 3, 300 * kMs); });
  processes.start([&](Report& report) { receive(report, job + " sender", 300 * kMs); });
  processes.start([&](Report& report) { receive(report, job + " receiver", 300 * kMs); });
  expect_same(processes, {0}, ZC_TIMEOUT, {"1 of 3 receivers came to the exchange '" + job + " sender' within 0.3 s"});
  EXPECT_EQ(processes.report(1).status, ZC_OK) << processes.report(1).text;
  expect_same(processes, {2}, ZC_TIMEOUT,
              {"nobody gave a descriptor in the exchange '" + job + " receiver' within 0.3 s"});
  for (const unsigned i : {0u, 2u}) {
    EXPECT_GE(processes.report(i).elapsed_ns, 300 * kMs);
    EXPECT_LT(processes.report(i).elapsed_ns, 2 * kSecond);
  }
}

TEST(Exchange, ends_soon_when_it_is_given_up) {
  auto after_100_ms = [end_ns = std::int64_t{0}]() mutable {
    if (end_ns == 0) end_ns = now_ns() + 100 * kMs;
    return now_ns() > end_ns;
  };
  Processes processes;
  const std::string job = boot::make_unique_job();
  processes.start([&](Report&) { boot::send_descriptor(job + "x", 0, 1, 20 * kSecond, after_100_ms); });
  processes.start([&](Report&) { boot::receive_descriptor(job + "y", 20 * kSecond, after_100_ms); });
  // A sender that has the name and does not answer.
  const Descriptor mute = boot::listen_on(boot::socket_name("exchange", job + "z"));
  processes.start([&](Report&) { boot::receive_descriptor(job + "z", 20 * kSecond, after_100_ms); });
  processes.start([&](Report&) { boot::send_descriptor(job + "z", 0, 1, 20 * kSecond, after_100_ms); });
  for (std::size_t i = 0; i < 4; ++i) {
    expect_same(processes, {i}, ZC_CANCELED, {"was given up"});
    EXPECT_GE(processes.report(i).elapsed_ns, 100 * kMs);
    EXPECT_LT(processes.report(i).elapsed_ns, 2 * kSecond);
  }
}

TEST(Exchange, says_when_the_name_is_taken_or_its_holder_is_mute) {
  const std::string job = boot::make_unique_job();
  const Descriptor mute = boot::listen_on(boot::socket_name("exchange", job));
  Processes processes;
  processes.start([&](Report&) { boot::send_descriptor(job, 0, 1, 200 * kMs, kNever); });
  processes.start([&](Report&) { boot::receive_descriptor(job, 200 * kMs, kNever); });
  expect_same(processes, {0}, ZC_TIMEOUT, {"another process has the name @zerocomm-", "of the exchange '" + job});
  expect_same(processes, {1}, ZC_TIMEOUT, {"nobody gave a descriptor in the exchange '" + job});
}

TEST(Exchange, gives_nothing_to_strangers) {
  Processes processes;
  const std::string name = boot::make_unique_job();
  processes.start([&](Report& report) { send(report, name, 1); });
  const std::string socket = boot::socket_name("exchange", name);
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 200; ++i) strangers.push_back(call(socket));
  boot::wire::Wanted wanted;  // of another exchange
  for (int i = 0; i < 5; ++i) {
    strangers.push_back(call(socket));
    boot::send_message(strangers.back(), &wanted, sizeof wanted);
    strangers.push_back(call(socket));
    boot::send_message(strangers.back(), "abc", 3);
  }
  processes.start([&](Report& report) { receive(report, name); });
  expect_all(processes, 2);
  for (const Descriptor& connection : strangers) {
    std::array<std::byte, 100> room;
    std::size_t bytes = 0;
    Descriptor given;
    EXPECT_EQ(boot::receive_message(connection, room, &bytes, &given), boot::Transfer::closed);
    EXPECT_FALSE(given);
  }
}

TEST(Exchange, with_a_sender_that_says_something_else_gives_nothing_and_leaks_nothing) {
  Processes processes;
  const std::string name = boot::make_unique_job();
  const Descriptor listener = boot::listen_on(boot::socket_name("exchange", name));
  processes.start([&](Report& report) { receive(report, name, 1500 * kMs); });
  const boot::wire::Segment segment;
  std::array<std::byte, sizeof segment + 1> longer{};
  std::memcpy(longer.data(), &segment, sizeof segment);
  const auto answer = [&](const void* message, std::size_t bytes, int descriptor) {
    const Descriptor caller = accept_call(listener);
    EXPECT_EQ(boot::send_message(caller, message, bytes, descriptor), boot::Transfer::done);
  };
  for (int turn = 0; turn < 3; ++turn) {
    answer(&segment, sizeof segment, -1);
    answer(&segment, sizeof segment - 1, 0);
    answer(longer.data(), longer.size(), 0);
    answer("abc", 3, 0);
    answer("", 0, 0);
    answer("", 0, -1);
  }
  expect_same(processes, {0}, ZC_TIMEOUT, {"nobody gave a descriptor"});
}

// The other side sends and closes while this one looks: its message must not be taken for the end.
TEST(LocalSocket, gives_the_last_message_before_the_end) {
  constexpr int kTurns = 10'000;
  Processes processes;
  const std::string name = boot::socket_name("test", boot::make_unique_job());
  const Descriptor listener = boot::listen_on(name);
  processes.start([&](Report& report) {
    for (int turn = 0; turn < kTurns; ++turn) {
      Descriptor connection;
      for (int error = 0; !connection;) connection = boot::accept_from(listener, &error);
      for (int i = 0; i < turn * 7919 % 400; ++i) zerocomm::pause();
      ZC_ASSERT(boot::send_message(connection, "abc", 3) == boot::Transfer::done);
    }
    report.say(ZC_OK, "");
  });
  int lost = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    const Descriptor connection = call(name);
    std::array<std::byte, 16> room;
    std::size_t bytes = 0;
    boot::Transfer result = boot::Transfer::later;
    while ((result = boot::receive_message(connection, room, &bytes)) == boot::Transfer::later) {
    }
    lost += result == boot::Transfer::done ? 0 : 1;
  }
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(processes.report(0).status, ZC_OK) << processes.report(0).text;
}

TEST(Exchange, of_another_user_is_not_for_this_one) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Processes processes;
  const std::string name = boot::make_unique_job(), socket = boot::socket_name("exchange", name);
  const auto become_nobody = [] { ZC_ASSERT(setgid(65534) == 0 && setuid(65534) == 0); };
  processes.start([&](Report& report) { send(report, name, 1, kSecond); });
  processes.start([&](Report& report) {
    become_nobody();
    boot::wire::Wanted wanted;
    wanted.name_hash = boot::hash_text(name, 0x082efa98ec4e6c89u);
    const Descriptor connection = call(socket);
    boot::send_message(connection, &wanted, sizeof wanted);
    std::array<std::byte, 100> room;
    std::size_t bytes = 0;
    Descriptor given;
    boot::Transfer result = boot::Transfer::later;
    while ((result = boot::receive_message(connection, room, &bytes, &given)) == boot::Transfer::later) sleep_ms(1);
    ZC_ASSERT(result == boot::Transfer::closed && !given);
    report.say(ZC_OK, "");
  });
  EXPECT_EQ(processes.report(1).status, ZC_OK) << processes.report(1).text;
  expect_same(processes, {0}, ZC_TIMEOUT, {"0 of 1 receivers came"});

  Processes others;
  others.start([&](Report& report) {
    const Descriptor file = file_with("false");
    become_nobody();
    const Descriptor listener = boot::listen_on(socket);
    std::vector<Descriptor> callers;
    for (const std::int64_t end_ns = now_ns() + kSecond; now_ns() < end_ns; sleep_ms(1)) {
      int error = 0;
      if (Descriptor caller = boot::accept_from(listener, &error)) {
        const boot::wire::Segment segment;
        boot::send_message(caller, &segment, sizeof segment, file.get());
        callers.push_back(std::move(caller));
      }
    }
    report.say(ZC_OK, "");
  });
  others.start([&](Report& report) {
    sleep_ms(50);
    receive(report, name, 500 * kMs);
  });
  EXPECT_EQ(others.report(0).status, ZC_OK) << others.report(0).text;
  expect_same(others, {1}, ZC_TIMEOUT, {"nobody gave a descriptor"});
}

}  // namespace
}  // namespace zerocomm::test
