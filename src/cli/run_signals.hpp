// The signals that zc run answers, as a descriptor to poll.
#pragma once

#include "cli/run_descriptor.hpp"

#include <csignal>
#include <cstdint>
#include <optional>

namespace zerocomm::cli {

class RunSignals {
 public:
  // Blocks them all for as long as this lives. One that is ignored when zc run starts (nohup) stays ignored.
  RunSignals();
  ~RunSignals();
  RunSignals(const RunSignals&) = delete;
  RunSignals& operator=(const RunSignals&) = delete;

  int fd() const { return fd_.get(); }
  std::optional<int> next() const;  // nothing: no more for now

  // Stops this process as the terminal's Ctrl-Z does, and returns when it goes on.
  void stop_self() const;
  // In a forked child: what the signals did before. Async-signal-safe.
  void restore() const;

 private:
  sigset_t before_{};
  struct sigaction pipe_before_ {};
  RunDescriptor fd_;
};

}  // namespace zerocomm::cli
