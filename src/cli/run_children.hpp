// The processes of zc run: started, signalled, waited for.
#pragma once

#include "cli/options.hpp"
#include "cli/run_descriptor.hpp"
#include "cli/run_plan.hpp"
#include "cli/run_port.hpp"
#include "cli/run_signals.hpp"

#include <sys/resource.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zerocomm::cli {

// What the standard streams of a rank become; -1: zc run's own.
struct RankStreams {
  int in = -1, out = -1, err = -1;
};

struct StartFailure {
  std::string text;
  int status = 0;           // for zc run
  std::size_t missing = 0;  // ranks that have no process at all
};

class RunChildren {
 public:
  // `files` is the limit of open files that the ranks get. Throws Failure if a port is asked for and cannot be had.
  RunChildren(const RunOptions& options, const RunSignals& signals, const rlimit& files);

  // Starts all ranks, each in a process group of its own, and does not wait until they run their program. A rank dies
  // with zc run, however that ends. The failure, if any, is that of the system to make another process.
  std::optional<StartFailure> start(const std::function<RankStreams(int rank)>& streams);

  // Readable while it is not closed: a rank could not be made to run the program. Closed, -1: none such is left.
  int failures_fd() const { return failures_.get(); }
  std::optional<StartFailure> next_failure();

  // The ranks that have ended and are not reaped. Until they are, their groups' ids are nobody else's.
  std::vector<Ending> ended() const;
  void reap(std::span<const Ending> endings);

  void signal_all(int signal) const;
  void end_group(int rank) const;

 private:
  struct Failed;  // what a child writes
  [[noreturn]] void become(const std::vector<char*>& environment, const RankStreams& streams, int failures,
                           pid_t parent);

  std::vector<std::string> program_;
  std::vector<char*> arguments_;
  const RunSignals& signals_;
  rlimit files_;
  RunPort port_;
  RunDescriptor failures_;
  std::vector<pid_t> pids_;  // by rank; 0: not started, or reaped
};

}  // namespace zerocomm::cli
