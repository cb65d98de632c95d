// Ranks as child processes: each joins a communicator by an id, runs its body, and sends home what went wrong. A body
// leaves values in a SharedArray.
//
// The test that starts them has one thread at that moment. No child outlives the test, and none is waited for without
// end.
#pragma once

#include "support/rank_failure.hpp"
#include "support/rank_threads.hpp"
#include "support/shared_array.hpp"

#include <zerocomm/comm.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace zerocomm::test {

// Sanitizers make everything slower, so limits of time are wider there.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
inline constexpr std::int64_t kSlack = kSanitized ? 10 : 1;

// How one child ended.
struct ChildEnd {
  bool exited = false;      // else by a signal
  int code = 0;             // exit status or signal
  bool late = false;        // it did not end in time, and was killed for that
  std::string text;         // what it sent: the failure
  std::int64_t end_ns = 0;  // when its end was seen; 0: not yet

  bool ok() const { return exited && code == 0; }
  bool killed_by(int signal) const { return !exited && code == signal && !late; }
};

// The clock of the library, the same in all processes.
inline std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline void sleep_ns(std::int64_t duration_ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(duration_ns)); }

// Sleeps until the condition holds. False: it did not within the limit.
template <class Condition>
bool wait_until(Condition&& condition, std::int64_t limit_ns = 30 * kSecondNs) {
  const std::int64_t until_ns = steady_ns() + limit_ns;
  while (!condition()) {
    if (steady_ns() > until_ns) return false;
    sleep_ns(kMillisecondNs / 4);
  }
  return true;
}

// Processes that run a body each. One that returns ends its process with exit status 0, one that throws with 1 and the
// text.
class Children {
 public:
  using Body = std::function<void(std::int32_t index)>;

  Children() = default;
  Children(std::int32_t count, const Body& body) {
    for (std::int32_t index = 0; index < count; ++index) start([&] { body(index); });
  }
  ~Children() {
    for (Child& child : children_)
      if (child.end.end_ns == 0) kill(child.pid, SIGKILL);
    for (Child& child : children_) {
      while (child.end.end_ns == 0 && !reap(child, 0)) {
      }
      close_pipe(child);
    }
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  std::int32_t start(const std::function<void()>& body) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw RankFailure("no pipe");
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) throw RankFailure("no fork");
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(99);
      for (const Child& child : children_)
        if (child.pipe >= 0) close(child.pipe);
      close(ends[0]);
      run(body, ends[1]);
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    children_.push_back({pid, ends[0], {}});
    return static_cast<std::int32_t>(children_.size()) - 1;
  }

  pid_t pid(std::int32_t index) const { return children_[static_cast<std::size_t>(index)].pid; }
  void send_signal(std::int32_t index, int signal) const { kill(pid(index), signal); }

  // Waits until all have ended; those that have not after the deadline are killed, and their ends say so.
  std::vector<ChildEnd> wait(std::int64_t deadline_ns = 60 * kSecondNs) {
    const std::int64_t until_ns = steady_ns() + deadline_ns;
    while (!look()) {
      const std::int64_t left_ns = until_ns - steady_ns();
      if (left_ns <= 0) {
        give_up();
        break;
      }
      std::vector<pollfd> open;
      bool closed = false;  // a child whose pipe has ended is about to end
      for (const Child& child : children_) {
        if (child.pipe >= 0) open.push_back({child.pipe, POLLIN, 0});
        closed = closed || (child.pipe < 0 && child.end.end_ns == 0);
      }
      poll(open.data(), open.size(),
           static_cast<int>(std::min<std::int64_t>(left_ns / kMillisecondNs, closed ? 0 : 19)) + 1);
    }
    std::vector<ChildEnd> ends;
    for (const Child& child : children_) ends.push_back(child.end);
    return ends;
  }

 private:
  struct Child {
    pid_t pid;
    int pipe;
    ChildEnd end;
  };

  [[noreturn]] static void run(const std::function<void()>& body, int pipe) {
    try {
      body();
    } catch (const std::exception& failure) {
      const std::string text = failure.what();
      std::size_t sent = 0;
      while (sent < text.size()) {
        const ssize_t now = write(pipe, text.data() + sent, text.size() - sent);
        if (now <= 0) break;
        sent += static_cast<std::size_t>(now);
      }
      _exit(1);
    }
    _exit(0);
  }

  // Takes what has come. True: all have ended.
  bool look() {
    bool all = true;
    for (Child& child : children_) {
      if (child.end.end_ns == 0) reap(child, WNOHANG);
      drain(child);  // a process of the child's own may keep the pipe open for longer than the child lives
      if (child.end.end_ns == 0)
        all = false;
      else
        close_pipe(child);
    }
    return all;
  }

  void give_up() {
    for (Child& child : children_) {
      if (child.end.end_ns != 0) continue;
      kill(child.pid, SIGKILL);
      while (!reap(child, 0)) {
      }
      child.end.late = true;
      child.end.text += " (did not end in time)";
      close_pipe(child);
    }
  }

  static bool reap(Child& child, int flags) {
    int status = 0;
    if (waitpid(child.pid, &status, flags) != child.pid) return errno == ECHILD;
    child.end.end_ns = steady_ns();
    child.end.exited = WIFEXITED(status);
    child.end.code = child.end.exited ? WEXITSTATUS(status) : WTERMSIG(status);
    return true;
  }

  static void drain(Child& child) {
    char text[4096];
    while (child.pipe >= 0) {
      const ssize_t got = read(child.pipe, text, sizeof text);
      if (got > 0)
        child.end.text.append(text, static_cast<std::size_t>(got));
      else if (got == 0)
        close_pipe(child);
      else if (errno != EINTR)
        return;
    }
  }

  static void close_pipe(Child& child) {
    if (child.pipe >= 0) close(std::exchange(child.pipe, -1));
  }

  std::vector<Child> children_;
};

inline zc_unique_id make_id() {
  zc_unique_id id;
  if (zc_unique_id_create(&id) != ZC_OK) throw RankFailure(zc_last_error());
  return id;
}

// The config of one rank of a communicator of processes. The id stays where it is.
inline zc_comm_config process_config(const zc_unique_id& id, std::int32_t ranks, std::int32_t rank,
                                     const RankOptions& options = {}) {
  zc_comm_config config{};
  config.struct_size = sizeof config;
  config.deadline_ns = options.deadline_ns != 0 ? options.deadline_ns : 60 * kSecondNs;
  config.spin_ns = options.spin_ns;
  config.topology = options.topology;
  config.requests = options.requests;
  config.helper_thread = options.helper_thread;
  config.ranks = ranks;
  config.rank = rank;
  config.id = &id;
  return config;
}

class ChildRanks : public Children {
 public:
  using Body = RankThreads::Body;

  // Starts the ranks: each runs `before`, joins the communicator, and runs `body`; either way its communicator is
  // destroyed after that.
  ChildRanks(std::int32_t ranks, const Body& body, const RankOptions& options = {},
             const Children::Body& before = nullptr) {
    const zc_unique_id id = make_id();
    for (std::int32_t rank = 0; rank < ranks; ++rank)
      start([&] {
        if (before) before(rank);
        const zc_comm_config config = process_config(id, ranks, rank, options);
        zc_comm* comm = nullptr;
        RANK_OK(zc_comm_create(&config, &comm));
        try {
          body(comm, rank);
        } catch (const std::exception&) {
          zc_comm_abort(comm);
          zc_comm_destroy(comm);
          throw;
        }
        RANK_OK(zc_comm_destroy(comm));
      });
  }
};

// Every child that did not end well fails the test.
inline void expect_ok(const std::vector<ChildEnd>& ends) {
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (!ends[i].ok())
      ADD_FAILURE() << "rank " << i << (ends[i].exited ? " exited with " : " was ended by signal ") << ends[i].code
                    << ": " << ends[i].text;
}

// The interface of RankThreads, for suites that run on any kind of ranks. Every run() starts processes of its own.
class RankProcesses {
 public:
  using Body = RankThreads::Body;
  explicit RankProcesses(std::int32_t ranks, const RankOptions& options = {}) : ranks_(ranks), options_(options) {}

  std::int32_t ranks() const { return ranks_; }

  void run(const Body& body) { expect_ok(ChildRanks(ranks_, body, options_).wait(300 * kSecondNs)); }

 private:
  std::int32_t ranks_;
  RankOptions options_;
};

}  // namespace zerocomm::test
