// zc run: starts a program several times, as the ranks of one job, and stays until all of them have ended.
#include "cli/failure.hpp"
#include "cli/options.hpp"
#include "cli/run_children.hpp"
#include "cli/run_output.hpp"
#include "cli/run_plan.hpp"
#include "cli/run_signals.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace zerocomm::cli {
namespace {

constexpr int kMostRanks = 1024;
constexpr double kLongestTimeout = 1e9;  // seconds

void check(const RunOptions& options) {
  if (options.ranks < 1 || options.ranks > kMostRanks)
    throw Failure("-n " + std::to_string(options.ranks) + ": there may be 1 to 1024 ranks", Exit::usage);
  if (options.timeout_s > kLongestTimeout) throw Failure("--timeout: at most 1e9 seconds are possible", Exit::usage);
  if (options.program.empty()) throw Failure("run needs a program: zc run -n RANKS -- PROGRAM ARGS...", Exit::usage);
}

std::int64_t timeout_ns(const RunOptions& options) { return std::llround(options.timeout_s * 1e9); }

// A standard stream that is missing becomes /dev/null: no pipe of ours may stand in its place.
RunDescriptor open_null() {
  while (true) {
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0) refuse("/dev/null");
    if (fd > STDERR_FILENO) return RunDescriptor(fd);
    fcntl(fd, F_SETFD, 0);
  }
}

// Pipes for many ranks need many descriptors. Returns the limit before, for the ranks.
rlimit raise_file_limit() {
  rlimit before{};
  if (getrlimit(RLIMIT_NOFILE, &before) != 0) refuse("getrlimit");
  rlimit raised = before;
  raised.rlim_cur = before.rlim_max;
  setrlimit(RLIMIT_NOFILE, &raised);  // if not, the pipe that is one too many says so
  return before;
}

class Run {
 public:
  explicit Run(const RunOptions& options)
      : null_(open_null()),
        files_(raise_file_limit()),
        output_(options.prefix, options.ranks),
        children_(options, signals_, files_),
        plan_(options.ranks, timeout_ns(options), now_ns()) {}

  int until_all_have_ended();

 private:
  std::int64_t now_ns() const;
  void start();
  void act(const RunActions& actions);
  void stop_self();
  void wait();
  void take_signals();
  void take_endings();
  void take_start_failures();

  RunDescriptor null_;
  rlimit files_;
  RunSignals signals_;
  RunOutput output_;
  RunChildren children_;
  std::int64_t stopped_ns_ = 0;
  RunPlan plan_;
  std::vector<pollfd> polled_;
  bool given_up_ = false;  // a signal came while only output was left
};

// Stands still while zc run is stopped by SIGTSTP, so that nobody's time runs out meanwhile.
std::int64_t Run::now_ns() const {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - stopped_ns_;
}

void Run::start() {
  const int null = null_.get();
  // Ranks are background processes: one that read from the terminal would be stopped.
  const bool is_interactive = isatty(STDIN_FILENO) == 1;
  const auto streams = [&](int rank) {
    return RankStreams{rank == 0 && !is_interactive ? -1 : null, output_.out_of(rank), output_.err_of(rank)};
  };
  if (const auto failure = children_.start(streams))
    act(plan_.not_started(failure->text, failure->status, failure->missing, now_ns()));
  output_.started();
}

void Run::stop_self() {
  const std::int64_t before = now_ns();
  signals_.stop_self();
  stopped_ns_ += now_ns() - before;
}

void Run::act(const RunActions& actions) {
  for (const RunAction& action : actions) switch (action.kind) {
      case RunAction::Kind::signal_all:
        children_.signal_all(action.signal);
        break;
      case RunAction::Kind::end_group:
        children_.end_group(action.rank);
        break;
      case RunAction::Kind::stop_self:
        stop_self();
        break;
      case RunAction::Kind::say:
        output_.say(action.text);
        break;
    }
}

void Run::take_start_failures() {
  while (const auto failure = children_.next_failure())
    act(plan_.not_started(failure->text, failure->status, failure->missing, now_ns()));
}

// Failures to start first: a rank writes them before it ends.
void Run::take_endings() {
  const std::vector<Ending> endings = children_.ended();
  take_start_failures();
  act(plan_.ended(endings, now_ns()));
  children_.reap(endings);
}

void Run::take_signals() {
  bool has_child_ended = false;
  while (const auto signal = signals_.next()) {
    if (*signal == SIGCHLD) {
      has_child_ended = true;
    } else if (plan_.done()) {
      given_up_ = given_up_ || *signal == SIGINT || *signal == SIGTERM || *signal == SIGHUP || *signal == SIGQUIT;
    } else {
      act(plan_.signaled(*signal, now_ns()));
    }
  }
  if (has_child_ended) take_endings();
}

void Run::wait() {
  polled_.assign({{signals_.fd(), POLLIN, 0}, {children_.failures_fd(), POLLIN, 0}});
  output_.wait_for(polled_);
  int timeout_ms = given_up_ ? 0 : -1;
  if (const auto deadline = plan_.deadline_ns(); deadline && !plan_.done())
    timeout_ms = static_cast<int>(std::clamp<std::int64_t>((*deadline - now_ns() + 999'999) / 1'000'000, 0, 60'000));
  if (poll(polled_.data(), polled_.size(), timeout_ms) < 0) {
    if (errno != EINTR) refuse("poll");
    return;
  }
  if (polled_[1].revents != 0) take_start_failures();
  if (polled_[0].revents != 0) take_signals();
  output_.handle(polled_.data() + 2, polled_.size() - 2);
  if (!plan_.done()) act(plan_.timer(now_ns()));
}

int Run::until_all_have_ended() {
  start();
  while (!plan_.done()) wait();
  output_.finish();
  while (!output_.drained() && !given_up_) wait();
  for (const std::string& line : plan_.report()) output_.say(line);
  while (!output_.flushed()) {
    wait();
    if (given_up_) break;  // what could be written at once has been
  }
  return plan_.exit_status();
}

}  // namespace

int run_ranks(const RunOptions& options) {
  check(options);
  return Run(options).until_all_have_ended();
}

}  // namespace zerocomm::cli
