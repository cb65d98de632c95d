// How much memory can still be taken. A memory cgroup answers a wish beyond its limit with SIGKILL and not with an
// error, so whoever is about to take memory compares first.
#pragma once

#include <cstdint>
#include <string>

namespace zerocomm {

struct MemoryRoom {
  std::uint64_t left_bytes;
  std::string limit_text;  // "memory cgroup /sys/fs/cgroup/job: limit 1048576 bytes, 4096 in use"
};

// The narrowest of: every memory cgroup of this process up to the root (v1 and v2), and what the host has available.
// Page cache that nobody used lately counts as free. A limit that cannot be read does not count. Others take memory at
// the same time, so this is a check against certain death and no reservation.
MemoryRoom memory_room();

// The same where / is the folder `root`, which holds proc/ and the cgroup mounts.
MemoryRoom memory_room_below(const std::string& root);

}  // namespace zerocomm
