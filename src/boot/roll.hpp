// The roll of a joining, kept by rank 0: who has come, whether they agree, and whose deadline counts. It knows no
// socket: all ways to meet share its decisions.
#pragma once

#include "boot/rendezvous.hpp"
#include "boot/rendezvous_wire.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"

#include <optional>
#include <string>
#include <vector>

namespace zerocomm::boot {

// The first error that anybody finds becomes the verdict for all.
class Roll {
 public:
  // `hash` is what the ranks of this job say in their hello. `one_host`: who cannot share memory with rank 0 makes it
  // fail.
  Roll(const JoinRequest& request, const Identity& own, const Deadline& deadline, std::uint64_t hash, bool one_host);

  enum class Place : std::uint8_t {
    none,   // a stranger, who gets no word
    seat,   // a rank that was still missing
    aside,  // of this job, but there is no seat for it; it gets the verdict
  };
  Place call(const wire::Hello& hello);

  // After the verdict: whether this caller is to be told it. Tells each process once; one that comes again waits for a
  // new rank 0.
  enum class Late : std::uint8_t { stranger, told_before, tell };
  Late call_late(const wire::Hello& hello);

  void settle(Error error);
  const std::optional<Error>& verdict() const noexcept { return verdict_; }

  bool is_here(std::size_t rank) const noexcept { return here_[rank]; }
  bool all_here() const noexcept { return missing_ == 0; }
  std::size_t ranks() const noexcept { return here_.size(); }
  const std::vector<Identity>& identities() const noexcept { return identities_; }
  const Identity& identity(std::size_t rank) const noexcept { return identities_[rank]; }

  // Of the earliest deadline of all who have come.
  std::int64_t left_ns() const noexcept { return earliest_.left_ns(); }
  std::string within() const;  // "within 0.3 s, the deadline of rank 2"
  // `where` completes "2 of 3 came to ...".
  std::string missing_text(const std::string& where, std::size_t strangers) const;

 private:
  const JoinRequest request_;
  const std::uint64_t hash_;
  const bool one_host_;
  Deadline earliest_;
  std::int64_t earliest_ns_;  // as asked, by
  std::int32_t earliest_rank_ = 0;
  std::vector<Identity> identities_;
  std::vector<bool> here_;
  std::size_t missing_;
  std::optional<Error> verdict_;
};

}  // namespace zerocomm::boot
