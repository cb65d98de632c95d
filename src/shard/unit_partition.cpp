// Cutting a unit into the shards of one rank, and finding it in whole flat buffers.
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

void view_unit(const Layout& layout, std::size_t unit_index, const void* const* buffers, const void** tensors,
               std::size_t tensor_capacity) {
  ZC_REQUIRE(unit_index < layout.units.size(), ZC_ARGUMENT, "unit %zu of %zu", unit_index, layout.units.size());
  ZC_REQUIRE(layout.placement == ZC_PLACEMENT_FLAT, ZC_UNSUPPORTED,
             "the layout cuts every unit by itself: the shards of all ranks end to end are no whole buffers; "
             "ZC_PLACEMENT_FLAT makes a layout where they are");
  const Unit& unit = layout.units[unit_index];
  ZC_REQUIRE(tensors != nullptr && tensor_capacity >= unit.uses.size(), ZC_ARGUMENT,
             "unit '%s' has %zu tensors, and there is room for %zu", unit.name.c_str(), unit.uses.size(),
             tensors == nullptr ? 0 : tensor_capacity);
  const auto stored_of = [&](std::size_t i) -> const Use& { return layout.uses[layout.uses[i].stored]; };
  for (const std::size_t i : unit.uses) {
    const Use& stored = stored_of(i);
    if (stored.in_tensor.count == 0) continue;
    const std::size_t buffer = layout.blocks[stored.block].buffer;
    ZC_REQUIRE(buffers != nullptr && buffers[buffer] != nullptr, ZC_ARGUMENT,
               "tensor '%s' of unit '%s' lies in buffer %zu, which is NULL",
               layout.tensors[layout.uses[i].tensor].name.c_str(), unit.name.c_str(), buffer);
  }
  for (std::size_t position = 0; position < unit.uses.size(); ++position) {
    const Use& stored = stored_of(unit.uses[position]);
    tensors[position] = nullptr;
    if (stored.in_tensor.count == 0) continue;
    const Block& block = layout.blocks[stored.block];
    tensors[position] =
        static_cast<const char*>(buffers[block.buffer]) +
        place_in_buffer(block, layout.ranks, stored.block_offset) * zc_dtype_bytes(layout.buffers[block.buffer].dtype);
  }
}

}  // namespace zerocomm::shard
