// How the ranks of one host find each other: an abstract unix socket that rank 0 listens on.
//
// The name is made of the user and a hash of the job, so that jobs do not meet; the kernel tells both sides who the
// other is, so that nobody else joins. Nothing is left in any file system.
#pragma once

#include "base/check.hpp"
#include "base/descriptor.hpp"
#include "base/function_ref.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zerocomm::boot {

// What one process says of itself when it joins. Plain bytes on the wire.
struct Identity {
  std::int32_t rank = -1;
  std::int32_t pid = 0;                 // in its own PID namespace
  std::uint64_t network_namespace = 0;  // inode numbers of /proc/self/ns
  std::uint64_t ipc_namespace = 0;
  std::uint64_t pid_namespace = 0;
  std::int32_t usable_cores = 0;  // affinity and quota
  std::uint32_t reserved = 0;
  std::array<std::uint64_t, 16> cpu_mask{};  // affinity, the first 1024 cores
  std::array<std::uint64_t, 2> boot_id{};    // of the running kernel; 0 where /proc is not there
  std::array<char, 64> host{};               // its name for people
};
Identity own_identity(std::int32_t rank);

inline constexpr std::int32_t kMostRanks = 1024;

struct JoinRequest {
  std::string job;  // text that all ranks of the job share, and nobody else
  std::int32_t rank = 0;
  std::int32_t ranks = 1;
  std::uint64_t agreed = 0;      // hash of what must be equal on all ranks
  std::string agreed_text;       // what was hashed, for the error text; at most 200 characters are sent
  std::int64_t deadline_ns = 0;  // from the call of join until the end of confirm
  // Called every few milliseconds while this rank waits; an Error that it returns is everybody's. May be empty.
  std::function<std::optional<Error>()> progress;
};

// One joining. Throws Error from every step: TIMEOUT names the ranks that did not come; PEER_LOST a rank that ended
// meanwhile; MISMATCH another number of ranks, another `agreed` (both texts) or a rank that came twice; UNSUPPORTED
// ranks of other hosts; SYSTEM what the system refused. All ranks that are there get the same status and text, at once;
// where some are missing rank 0 stays for up to a second more, to tell those that are on their way. The earliest
// deadline of all ranks counts. A rank that never reached rank 0 has a TIMEOUT of its own, which says where it looked.
// The same job may be joined again after success and after failure.
class Rendezvous {
 public:
  // Returns when all ranks have come. Rank 0 runs `make_segment` then, with what all said; its descriptor goes to
  // everybody. If it throws Error, that error is everybody's.
  static std::unique_ptr<Rendezvous> join(const JoinRequest& request,
                                          FunctionRef<Descriptor(const std::vector<Identity>&)> make_segment);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  const std::vector<Identity>& ranks() const;
  // The descriptor of make_segment (rank 0: its own).
  const Descriptor& segment() const;
  // Callers that rank 0 turned away because they are none of these.
  std::uint64_t strangers() const;

  // Second step: returns when all ranks have called it, and closes every connection. A rank whose set-up failed calls
  // give_up instead, and its error is everybody's. To destroy this object before either counts as the end of the rank.
  void confirm();
  void give_up(int status, const std::string& text) noexcept;

 private:
  struct State;
  explicit Rendezvous(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace zerocomm::boot
