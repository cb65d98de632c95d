// The port over which the ranks of zc run meet, where the user leaves it to zc run.
#pragma once

#include "cli/run_descriptor.hpp"

#include <optional>
#include <string>

namespace zerocomm::cli {

// ZC_RENDEZVOUS=tcp asks for a free port of 127.0.0.1, tcp://ADDRESS:0 for one of that address; nothing else is
// changed. The port stays reserved: this process holds it without listening, and rank 0 may listen there as often as it
// likes.
class RunPort {
 public:
  // `asked`: the value of ZC_RENDEZVOUS, or null. Throws Failure if the address is not one of this host.
  explicit RunPort(const char* asked);

  // What the ranks get instead; nothing: what they have is right.
  const std::optional<std::string>& rendezvous() const { return rendezvous_; }

 private:
  RunDescriptor held_;
  std::optional<std::string> rendezvous_;
};

}  // namespace zerocomm::cli
