// How a command ends badly: one line for stderr and the exit status.
#pragma once

#include <stdexcept>
#include <string>

namespace zerocomm::cli {

enum class Exit : int { ok = 0, failed = 1, usage = 2 };

class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& line, Exit exit = Exit::failed) : std::runtime_error(line), exit_(exit) {}
  Exit exit() const noexcept { return exit_; }

 private:
  Exit exit_;
};

}  // namespace zerocomm::cli
