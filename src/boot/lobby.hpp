// A listening socket, and those who have connected to it and not yet said who they are.
#pragma once

#include "boot/local_socket.hpp"

#include "base/clock.hpp"
#include "base/function_ref.hpp"

namespace zerocomm::boot {

// Never waits for a caller. Callers of other users are dropped at once, silent ones after a while or when there are too
// many of them, and each is counted as a stranger.
class Lobby {
 public:
  static constexpr std::int64_t kSilenceNs = 1'500'000'000;
  static constexpr std::size_t kMostSilent =
      64;  // bounds the descriptors; callers of ours speak as soon as they connect
  static constexpr std::size_t kMostBytes = 1024;  // of a first message

  explicit Lobby(Descriptor listener) : listener_(std::move(listener)) {}

  void watch(std::vector<pollfd>& polled) const;
  // Until the next silent caller is to be dropped.
  std::int64_t left_ns() const noexcept;

  // Gets the first message of a caller: takes the connection out of its reference to keep it, or leaves it to be
  // closed. False: a stranger. Must not throw.
  using Decide = FunctionRef<bool(Descriptor&, std::span<const std::byte>)>;
  // Looks once at everybody. Returns 0, or the errno if the system gives no descriptor for a caller.
  int serve(Decide decide);

  std::size_t strangers() const noexcept { return strangers_; }

 private:
  struct Caller {
    Descriptor connection;
    Deadline limit;
  };
  // True when the caller is dealt with.
  bool hear(Descriptor& connection, Decide decide);
  void drop_oldest(Decide decide);

  Descriptor listener_;
  std::vector<Caller> silent_;  // oldest first
  std::size_t strangers_ = 0;
};

// Listens on `name`, with pauses while somebody else has it; asks `go_on` before each. Throws Error(SYSTEM); empty when
// go_on says no.
Descriptor listen_when_free(const std::string& name, FunctionRef<bool()> go_on, const Deadline& deadline);

}  // namespace zerocomm::boot
