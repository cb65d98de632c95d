// Rank 0's side of the joining: it listens, decides, and tells everybody the same.
#pragma once

#include "boot/lobby.hpp"
#include "boot/rendezvous.hpp"
#include "boot/rendezvous_wire.hpp"
#include "boot/roll.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/math.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zerocomm::boot {

// One loop over all connections that never waits for one of them. The first error becomes the verdict: all who are
// there get it, and it is thrown here. The deadline is the earliest one of all who have come.
class Server {
 public:
  Server(const JoinRequest& request, const Identity& own, const Deadline& deadline);

  // Returns when all ranks have come. The name is free again then: a rank that is through may join anew at once.
  void gather();
  const std::vector<Identity>& identities() const { return roll_.identities(); }
  std::uint64_t strangers() const { return strangers_; }
  // Sends what all ranks said, and the segment. Returns when it is sent.
  void welcome(int segment);
  // Returns when all ranks are ready, and tells them.
  void confirm();
  // Makes this the end for everybody and closes all connections.
  void tell_all(std::int32_t status, std::string_view text) noexcept;

 private:
  // A rank's place.
  struct Seat {
    Descriptor connection;
    bool ready = false;
    std::size_t sent = 0;  // messages; see send_next
  };
  void take_name();
  void run(FunctionRef<bool()> done, FunctionRef<std::string()> late);
  bool decide(Descriptor& connection, std::span<const std::byte> message);
  bool send_pending();
  Transfer send_next(Seat& seat);
  void hear(std::size_t rank);
  [[noreturn]] void fail();
  void tell_late_comers();

  std::size_t parts() const { return ceil_div(seats_.size(), wire::Ranks::kMost); }  // of the list of ranks
  std::string missing_text() const;
  std::string late_text(const char* what, FunctionRef<bool(const Seat&)> is_late) const;

  const JoinRequest request_;
  const Deadline own_deadline_;
  Roll roll_;
  std::optional<Lobby> lobby_;  // until all have come
  std::uint64_t strangers_ = 0;
  std::vector<Seat> seats_;
  std::vector<Descriptor> turned_away_;  // ours, but there is no seat for them; they get the verdict
  std::size_t wanted_ = 1;               // messages that each rank is to get
  int segment_ = -1;
};

}  // namespace zerocomm::boot
