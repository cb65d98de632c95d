// What the kernel lets this process do, found out by doing it: containers forbid things that kernel and build allow.
#pragma once

#include <string>

namespace zerocomm::transport {

struct Probe {
  bool works = false;
  std::string why;  // what the system said, or what is used instead
};

Probe probe_memfd();
Probe probe_futex_waitv();
Probe probe_private_read();  // of this process itself

}  // namespace zerocomm::transport
