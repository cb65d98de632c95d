// What makes a joining fail, in words. Pure.
#pragma once

#include "boot/rendezvous_wire.hpp"

#include <optional>
#include <string>

namespace zerocomm::boot {

// "rank 2 (pid 123)"
std::string rank_text(const Identity& identity);

// "rank 1, rank 3, ... and 20 more"
class RankList {
 public:
  void add(const std::string& name);
  std::string text() const;

 private:
  std::string text_;
  std::size_t count_ = 0, more_ = 0;
};

// What a rank says against what rank 0 says; nothing if they agree. `seated`: who came as that rank before, or NULL.
std::optional<Error> disagreement(const wire::Hello& theirs, const JoinRequest& request, const Identity& own,
                                  const Identity* seated);

// The other side speaks another version of the joining.
Error other_version(std::int32_t pid, std::uint32_t version, std::int32_t own_pid);

}  // namespace zerocomm::boot
