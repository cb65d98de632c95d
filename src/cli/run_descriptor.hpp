// A file descriptor that closes itself, and how a refusal of the system becomes a Failure.
#pragma once

#include "cli/failure.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace zerocomm::cli {

class RunDescriptor {
 public:
  RunDescriptor() = default;
  explicit RunDescriptor(int fd) noexcept : fd_(fd) {}
  RunDescriptor(RunDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RunDescriptor& operator=(RunDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  RunDescriptor(const RunDescriptor&) = delete;
  RunDescriptor& operator=(const RunDescriptor&) = delete;
  ~RunDescriptor() { close(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void close() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

[[noreturn]] inline void refuse(const std::string& what) { throw Failure(what + ": " + std::strerror(errno)); }

}  // namespace zerocomm::cli
