#include "boot/tcp_ports.hpp"

#include <unistd.h>

#include <mutex>
#include <set>
#include <utility>

namespace zerocomm::boot {
namespace {

struct Ports {
  std::mutex mutex;
  std::multiset<std::pair<pid_t, std::uint16_t>> used;
};

Ports& ports() {
  static Ports* const all = new Ports;  // threads may still use it when the process ends
  return *all;
}

}  // namespace

PortInUse::PortInUse(std::uint16_t port) : port_(port) {
  const std::lock_guard lock(ports().mutex);
  ports().used.emplace(getpid(), port);
}

PortInUse::PortInUse(PortInUse&& other) noexcept : port_(std::exchange(other.port_, std::uint16_t{0})) {}

PortInUse::~PortInUse() {
  if (port_ == 0) return;
  const std::lock_guard lock(ports().mutex);
  const auto found = ports().used.find({getpid(), port_});
  if (found != ports().used.end()) ports().used.erase(found);
}

bool PortInUse::here(std::uint16_t port) {
  const std::lock_guard lock(ports().mutex);
  return ports().used.contains({getpid(), port});
}

}  // namespace zerocomm::boot
