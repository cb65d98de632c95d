// How ranks meet where the kernel cannot vouch for them: rank 0 listens on a TCP port, and both sides prove that they
// have the key of the job before either believes a word.
#pragma once

#include "boot/names.hpp"
#include "boot/rendezvous.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace zerocomm::boot {

// What is agreed when all ranks have met and are on one host.
struct Meeting {
  std::string job;  // drawn for them: the name under which they meet there
  std::uint64_t strangers = 0;
};

// Where rank 0 listens, and what proves who belongs to the job.
struct TcpWay {
  std::string address;  // a name or a number
  std::uint16_t port = 0;
  std::string key_file;
  NameResolver resolver{};  // of `address`, where that is a name; empty: the system's
};

// "127.0.0.1:29500", "[::1]:29500"
std::string tcp_text(const TcpWay& way);

// Whether this build has it, and what to do if not.
bool has_tcp() noexcept;
inline constexpr const char* kNoTcp =
    "this build has no TCP rendezvous: build with ZC_WITH_TCP=ON, which needs Boost.Asio and libsodium (Debian: "
    "libboost-dev, libsodium-dev)";

// Collective. Rank 0 listens on every address that the name stands for, and on no other; the others look for it until
// the deadline, which is that of finding out what the name stands for as well. Strangers are dropped within 2 s and
// counted; none gets an answer.
//
// Throws Error, the same for all that are there: TIMEOUT names the ranks that did not come, PEER_LOST one that ended,
// MISMATCH ranks that disagree or a second rank 0, UNSUPPORTED ranks on several hosts (who is where). For one rank
// alone: MISMATCH for a key that rank 0 does not accept, TIMEOUT if it was not found or its name not resolved, SYSTEM
// for a rank 0 that cannot listen, at once or within a second, ARGUMENT for a bad key file, UNSUPPORTED if has_tcp()
// is false. Communicators that one process makes at the same time take turns on a port.
Meeting meet_over_tcp(const JoinRequest& request, const TcpWay& way);

}  // namespace zerocomm::boot
