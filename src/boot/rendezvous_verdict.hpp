// What makes a joining fail, in words. Pure.
#pragma once

#include "boot/rendezvous_wire.hpp"

#include <optional>
#include <string>
#include <vector>

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
// Which host it is on is no matter of this.
std::optional<Error> disagreement(const wire::Hello& theirs, const JoinRequest& request, const Identity& own,
                                  const Identity* seated);

// Whether two ranks can share memory: the same running kernel, network namespace and IPC namespace, as far as they
// know.
bool same_host(const Identity& a, const Identity& b) noexcept;

// The ranks of one host, not yet known to share it: UNSUPPORTED if the IPC namespaces differ.
std::optional<Error> other_ipc(const Identity& theirs, const Identity& own);

// UNSUPPORTED with who is where, if these are on several hosts.
std::optional<Error> several_hosts(const std::vector<Identity>& ranks);

// The other side speaks another version of the joining.
Error other_version(std::int32_t pid, std::uint32_t version, std::int32_t own_pid);

}  // namespace zerocomm::boot
