// Placement by comparison of all places that begin at the start of the arena or right behind a block: any other place
// can slide down to one of these without touching a further block.
#include "zero/arena.hpp"

#include "base/math.hpp"

#include <algorithm>
#include <limits>

namespace zerocomm::zero {
namespace {

struct Cost {
  std::uint64_t soonest = std::numeric_limits<std::uint64_t>::max();  // least distance among the blocks that leave
  std::size_t dropped_bytes = 0;
};

bool better(const Cost& a, const Cost& b) {
  return a.soonest != b.soonest ? a.soonest > b.soonest : a.dropped_bytes < b.dropped_bytes;
}

Cost cost_of(std::span<const ArenaBlock> blocks, std::size_t begin, std::size_t end) {
  Cost cost;
  for (const ArenaBlock& block : blocks) {
    if (block.offset_bytes >= end) break;
    if (block.offset_bytes + block.bytes <= begin) continue;
    cost.soonest = std::min(cost.soonest, block.distance);
    cost.dropped_bytes += block.bytes;
  }
  return cost;
}

}  // namespace

std::optional<std::size_t> find_room(std::span<const ArenaBlock> blocks, std::size_t arena_bytes, std::size_t bytes,
                                     std::size_t alignment_bytes, std::uint64_t floor) {
  std::optional<std::size_t> best;
  Cost best_cost;
  const auto consider = [&](std::size_t offset, std::span<const ArenaBlock> from) {
    if (offset > arena_bytes || bytes > arena_bytes - offset) return;
    const Cost cost = cost_of(from, offset, offset + bytes);
    if (cost.soonest <= floor || (best.has_value() && !better(cost, best_cost))) return;
    best = offset;
    best_cost = cost;
  };
  consider(0, blocks);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    consider(round_up(blocks[i].offset_bytes + blocks[i].bytes, alignment_bytes), blocks.subspan(i + 1));
  return best;
}

}  // namespace zerocomm::zero
