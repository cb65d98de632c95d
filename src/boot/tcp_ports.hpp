// Ports on which this process listens for ranks: communicators that it makes at the same time take turns on one.
#pragma once

#include <cstdint>

namespace zerocomm::boot {

// From the moment when a listener is there until it is closed.
class PortInUse {
 public:
  explicit PortInUse(std::uint16_t port);
  ~PortInUse();
  PortInUse(PortInUse&& other) noexcept;
  PortInUse& operator=(PortInUse&&) = delete;

  // Whether this process, and not only the one that it was forked from, listens there.
  static bool here(std::uint16_t port);

 private:
  std::uint16_t port_;  // 0: moved from
};

}  // namespace zerocomm::boot
