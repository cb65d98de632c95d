// Text that waits for its reader.
#include "cli/run_output.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>

namespace {

using namespace zerocomm::cli;

struct Ends {
  RunDescriptor read_end, write_end;
};

Ends make_pipe() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
  EXPECT_EQ(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
  return {RunDescriptor(fds[0]), RunDescriptor(fds[1])};
}

// Up to `most` bytes of what is there.
std::string read_from(const RunDescriptor& end, std::size_t most) {
  std::string text(most, '\0');
  const ssize_t got = read(end.get(), text.data(), most);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

bool has_room(const RunSink& sink) {
  pollfd polled{sink.fd(), POLLOUT, 0};
  return poll(&polled, 1, 0) == 1;
}

// `count` bytes that say where they belong.
std::string piece_of_text(std::size_t from, std::size_t count) {
  std::string text(count, '\0');
  for (std::size_t i = 0; i < count; ++i) text[i] = static_cast<char>('a' + (from + i) % 23);
  return text;
}

TEST(RunSink, takes_little_memory_however_long_a_slow_reader_is_behind) {
  const Ends ends = make_pipe();
  RunSink sink(ends.write_end.get());
  std::size_t put = 0, got = 0, longest = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    while (!sink.full()) {
      sink.queue() += piece_of_text(put, 1000);
      put += 1000;
    }
    sink.write_some();
    longest = std::max(longest, sink.queue().length());
    EXPECT_TRUE(sink.waiting()) << "the reader is to be behind all the time";
    const std::string text = read_from(ends.read_end, 3000);
    ASSERT_TRUE(text == piece_of_text(got, text.length())) << "byte " << got;
    got += text.length();
  }
  EXPECT_GT(got, 20 * kQueueBytes);
  EXPECT_LE(longest, 2 * kQueueBytes + 2000);
}

TEST(RunSink, writes_nothing_rather_than_wait) {
  const Ends ends = make_pipe();
  RunSink sink(ends.write_end.get());
  sink.queue() = std::string(1'000'000, 'x');
  sink.write_some();  // would never return if it waited
  EXPECT_TRUE(sink.waiting());
  EXPECT_FALSE(has_room(sink));
  EXPECT_EQ(fcntl(ends.write_end.get(), F_GETFL) & O_NONBLOCK, 0) << "others may write there and want to wait";
}

TEST(RunSink, does_not_wait_for_a_socket_either) {
  int fds[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  const Ends ends{RunDescriptor(fds[0]), RunDescriptor(fds[1])};
  RunSink sink(ends.write_end.get());
  sink.queue() = piece_of_text(0, 3'000'000);
  while (has_room(sink)) sink.write_some();
  EXPECT_TRUE(sink.waiting());
  EXPECT_TRUE(read_from(ends.read_end, 10'000) == piece_of_text(0, 10'000));
}

TEST(RunSink, drops_what_nobody_reads) {
  Ends ends = make_pipe();
  RunSink sink(ends.write_end.get());
  ends.read_end.close();
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before);
  sink.queue() = "text\n";
  sink.write_some();
  sigaction(SIGPIPE, &before, nullptr);
  EXPECT_TRUE(sink.broken());
  EXPECT_FALSE(sink.waiting());
}

}  // namespace
