// Cutting a unit into the shards of one rank.
#include "shard/unit_partition.hpp"

#include "base/check.hpp"
#include "shard/ownership.hpp"

#include <cstring>

namespace zerocomm::shard {
namespace {

void check_pointers(const Layout& layout, std::int32_t rank, const Unit& unit, const void* const* full,
                    void* const* shards) {
  for (const std::size_t b : unit.blocks) {
    const Block& block = layout.blocks[b];
    const bool owns = owned_in_block(block, rank, 0, block.padded_count).count != 0;
    ZC_REQUIRE(!owns || (shards != nullptr && shards[block.buffer] != nullptr), ZC_ARGUMENT,
               "rank %d owns elements of unit '%s' in buffer %zu, whose shard is NULL", rank, unit.name.c_str(),
               block.buffer);
  }
  for (std::size_t position = 0; position < unit.uses.size(); ++position) {
    const std::size_t i = unit.uses[position];
    const Use& use = layout.uses[i];
    if (use.stored != i) continue;
    const OwnedRange owned = owned_in_use(layout.blocks[use.block], use, rank);
    ZC_REQUIRE(owned.count == 0 || (full != nullptr && full[position] != nullptr), ZC_ARGUMENT,
               "rank %d owns %zu elements of tensor '%s', use %zu of unit '%s', which is NULL", rank, owned.count,
               layout.tensors[use.tensor].name.c_str(), position, unit.name.c_str());
  }
}

}  // namespace

void partition_unit(const Layout& layout, std::int32_t rank, std::size_t unit_index, const void* const* full,
                    void* const* shards) {
  ZC_REQUIRE(rank >= 0 && rank < layout.ranks, ZC_ARGUMENT, "rank %d of a layout of %d ranks", rank, layout.ranks);
  ZC_REQUIRE(unit_index < layout.units.size(), ZC_ARGUMENT, "unit %zu of %zu", unit_index, layout.units.size());
  const Unit& unit = layout.units[unit_index];
  check_pointers(layout, rank, unit, full, shards);
  for (const std::size_t b : unit.blocks) {
    const Block& block = layout.blocks[b];
    const std::size_t bytes = zc_dtype_bytes(layout.buffers[block.buffer].dtype);
    const OwnedRange owned = owned_in_block(block, rank, 0, block.padded_count);
    if (owned.count > 0)
      std::memset(static_cast<char*>(shards[block.buffer]) + owned.shard_offset * bytes, 0, owned.count * bytes);
  }
  for (std::size_t position = 0; position < unit.uses.size(); ++position) {
    const std::size_t i = unit.uses[position];
    const Use& use = layout.uses[i];
    if (use.stored != i) continue;
    const Block& block = layout.blocks[use.block];
    const OwnedRange owned = owned_in_use(block, use, rank);
    if (owned.count == 0) continue;
    const std::size_t bytes = zc_dtype_bytes(layout.buffers[block.buffer].dtype);
    std::memcpy(static_cast<char*>(shards[block.buffer]) + owned.shard_offset * bytes,
                static_cast<const char*>(full[position]) + owned.offset * bytes, owned.count * bytes);
  }
}

}  // namespace zerocomm::shard
