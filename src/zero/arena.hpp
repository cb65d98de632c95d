// Where in the arena a unit goes, and which units have to leave for it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace zerocomm::zero {

struct ArenaBlock {
  std::size_t offset_bytes = 0;
  std::size_t bytes = 0;
  std::uint64_t distance = 0;  // to the unit's next use; a larger one leaves first; 0: must stay
  std::size_t unit = 0;
};

// The place of `bytes` bytes among `blocks` (by rising offset). Only blocks with a distance above `floor` may be
// overlapped, and the caller drops those. Free room is taken first, at the lowest offset; else the place whose soonest
// needed block is needed latest.
std::optional<std::size_t> find_room(std::span<const ArenaBlock> blocks, std::size_t arena_bytes, std::size_t bytes,
                                     std::size_t alignment_bytes, std::uint64_t floor);

}  // namespace zerocomm::zero
