// What zc run does about what happens: events in, actions out. Reads no clock and touches no process.
//
// A rank that fails (status other than 0, or a signal) is the cause, and decides the exit status. The others have 2 s
// to notice and report it; then SIGTERM, and 2 s later SIGKILL. Whoever does not end even then is given up.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zerocomm::cli {

inline constexpr std::int64_t kSecondNs = 1'000'000'000;
inline constexpr std::int64_t kGraceNs = 2 * kSecondNs;    // from one step to the next
inline constexpr std::int64_t kGiveUpNs = 10 * kSecondNs;  // after SIGKILL
// timeout(1) and others send a signal to the process and at once to its group as well: that is one wish, not two.
inline constexpr std::int64_t kRepeatNs = kSecondNs / 10;

inline constexpr int kStatusTimeout = 124;
inline constexpr int kStatusNotExecutable = 126;
inline constexpr int kStatusNotFound = 127;
inline constexpr int kStatusSignal = 128;  // plus the signal

// How a rank ended.
struct Ending {
  int rank = 0;
  int pid = 0;
  int signal = 0;  // that killed it; 0: it exited
  int status = 0;  // with which it exited
};

struct RunAction {
  enum class Kind : std::uint8_t {
    signal_all,  // `signal` to the process group of every rank that has not ended
    end_group,   // SIGKILL to what is left of the group of `rank`, which has ended
    stop_self,   // stop zc run; done when somebody has continued it
    say,         // `text`, a line, to stderr
  };
  Kind kind = Kind::say;
  int signal = 0;
  int rank = 0;
  std::string text;
};
using RunActions = std::vector<RunAction>;

class RunPlan {
 public:
  // `timeout_ns` 0: none. Times are those of any clock that stands still while zc run is stopped.
  RunPlan(int ranks, std::int64_t timeout_ns, std::int64_t now_ns);

  // These ranks have ended. To be told together if they are noticed together: one that was killed is then taken for
  // the cause rather than one that complains about it.
  RunActions ended(std::span<const Ending> endings, std::int64_t now_ns);
  // A rank could not run the program. `text` says why, `status` becomes the exit status; `missing` ranks have no
  // process that could end.
  RunActions not_started(const std::string& text, int status, std::size_t missing, std::int64_t now_ns);
  RunActions signaled(int signal, std::int64_t now_ns);
  // The deadline may have passed.
  RunActions timer(std::int64_t now_ns);

  std::optional<std::int64_t> deadline_ns() const { return deadline_ns_; }
  bool done() const { return living_ == 0 || phase_ == Phase::given_up; }
  // Once done. The lines are for stderr; there are none if all is well.
  int exit_status() const { return exit_status_.value_or(0); }
  std::vector<std::string> report() const;

 private:
  enum class Phase : std::uint8_t { running, grace, terminating, killing, given_up };

  void enter(Phase phase, std::int64_t now_ns, std::int64_t longest_ns);
  void blame(std::span<const Ending> endings, std::int64_t now_ns);
  RunActions terminate(std::int64_t now_ns);
  RunActions kill(std::int64_t now_ns);
  RunActions ask_again(int signal, std::int64_t now_ns);

  std::vector<std::optional<Ending>> endings_;  // by rank
  std::size_t living_;
  Phase phase_ = Phase::running;
  std::int64_t timeout_ns_;
  std::optional<std::int64_t> deadline_ns_;
  std::optional<std::int64_t> asked_ns_;  // the first SIGINT or SIGTERM
  std::optional<int> exit_status_;        // set by the cause
  std::optional<int> cause_rank_;
  std::string start_failure_;
};

}  // namespace zerocomm::cli
