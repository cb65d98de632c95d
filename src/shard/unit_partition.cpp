// Cutting a unit into the shards of one rank.
#include "shard/unit_partition.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <cstring>

namespace zerocomm::shard {
namespace {

// The part of a stored use that lies in one rank's shard of its block, in elements from the start of the block.
struct Overlap {
  std::size_t begin = 0, end = 0;
};

Overlap overlap(const Use& use, const Block& block, std::size_t rank) {
  const std::size_t begin = std::max(use.block_offset, block.shard_count * rank);
  const std::size_t end = std::min(use.block_offset + use.in_tensor.count, block.shard_count * (rank + 1));
  return {begin, std::max(begin, end)};
}

void check_pointers(const Layout& layout, std::size_t rank, const Unit& unit, const void* const* full,
                    void* const* shards) {
  for (const std::size_t b : unit.blocks) {
    const Block& block = layout.blocks[b];
    ZC_REQUIRE(block.shard_count == 0 || (shards != nullptr && shards[block.buffer] != nullptr), ZC_ARGUMENT,
               "unit '%s' lies in buffer %zu, whose shard is NULL", unit.name.c_str(), block.buffer);
  }
  for (std::size_t position = 0; position < unit.uses.size(); ++position) {
    const std::size_t i = unit.uses[position];
    const Use& use = layout.uses[i];
    if (use.stored != i) continue;
    const Overlap owned = overlap(use, layout.blocks[use.block], rank);
    ZC_REQUIRE(owned.begin == owned.end || (full != nullptr && full[position] != nullptr), ZC_ARGUMENT,
               "rank %zu owns %zu elements of tensor '%s', use %zu of unit '%s', which is NULL", rank,
               owned.end - owned.begin, layout.tensors[use.tensor].name.c_str(), position, unit.name.c_str());
  }
}

}  // namespace

void partition_unit(const Layout& layout, std::int32_t rank, std::size_t unit_index, const void* const* full,
                    void* const* shards) {
  ZC_REQUIRE(rank >= 0 && rank < layout.ranks, ZC_ARGUMENT, "rank %d of a layout of %d ranks", rank, layout.ranks);
  ZC_REQUIRE(unit_index < layout.units.size(), ZC_ARGUMENT, "unit %zu of %zu", unit_index, layout.units.size());
  const Unit& unit = layout.units[unit_index];
  const auto mine = static_cast<std::size_t>(rank);
  check_pointers(layout, mine, unit, full, shards);
  for (const std::size_t b : unit.blocks) {
    const Block& block = layout.blocks[b];
    const std::size_t bytes = zc_dtype_bytes(layout.buffers[block.buffer].dtype);
    if (block.shard_count > 0)
      std::memset(static_cast<char*>(shards[block.buffer]) + block.shard_offset * bytes, 0, block.shard_count * bytes);
  }
  for (std::size_t position = 0; position < unit.uses.size(); ++position) {
    const std::size_t i = unit.uses[position];
    const Use& use = layout.uses[i];
    if (use.stored != i) continue;
    const Block& block = layout.blocks[use.block];
    const Overlap owned = overlap(use, block, mine);
    if (owned.begin == owned.end) continue;
    const std::size_t bytes = zc_dtype_bytes(layout.buffers[block.buffer].dtype);
    const std::size_t place = block.shard_offset + owned.begin - block.shard_count * mine;
    std::memcpy(static_cast<char*>(shards[block.buffer]) + place * bytes,
                static_cast<const char*>(full[position]) + (owned.begin - use.block_offset) * bytes,
                (owned.end - owned.begin) * bytes);
  }
}

}  // namespace zerocomm::shard
