// Where elements lie and who owns them, over random models and under both placements.
#include "property/shard/random_model.hpp"

#include "shard/ownership.hpp"
#include "shard/unit_partition.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace zerocomm::shard {
namespace {

RC_GTEST_PROP(PlacementProperty, blocks_tile_the_shards_of_all_ranks, ()) {
  const Layout layout = random_model().make();
  std::vector<std::vector<int>> hits;
  for (const Buffer& buffer : layout.buffers)
    hits.emplace_back(buffer.shard_count * static_cast<std::size_t>(layout.ranks), 0);
  for (const Block& block : layout.blocks) {
    RC_ASSERT(block.real_count <= block.count);
    RC_ASSERT(block.count <= block.padded_count);
    std::size_t done = 0;
    for (std::int32_t rank = 0; rank < layout.ranks; ++rank) {
      const OwnedRange owned = owned_in_block(block, rank, 0, block.padded_count);
      if (owned.count == 0) continue;
      RC_ASSERT(owned.offset == done);  // in rank order
      done += owned.count;
      const std::size_t start = layout.buffers[block.buffer].shard_count * static_cast<std::size_t>(rank);
      for (std::size_t i = 0; i < owned.count; ++i) {
        RC_ASSERT(owner_of(block, owned.offset + i) == rank);
        RC_ASSERT(place_in_shard(block, rank, owned.offset + i) == owned.shard_offset + i);
        ++hits[block.buffer].at(start + owned.shard_offset + i);
      }
    }
    RC_ASSERT(done == block.padded_count);
  }
  for (const std::vector<int>& of_buffer : hits)
    RC_ASSERT(std::all_of(of_buffer.begin(), of_buffer.end(), [](int count) { return count == 1; }));
}

RC_GTEST_PROP(PlacementProperty, full_copies_hold_every_block_in_one_run, ()) {
  const Layout layout = random_model().make();
  std::vector<std::size_t> end(layout.buffers.size(), 0);
  for (const Block& block : layout.blocks) {
    if (block.padded_count == 0) continue;
    RC_ASSERT(place_in_buffer(block, layout.ranks, 0) == end[block.buffer]);
    end[block.buffer] += block.padded_count;
  }
  for (std::size_t b = 0; b < layout.buffers.size(); ++b)
    RC_ASSERT(end[b] == layout.buffers[b].shard_count * static_cast<std::size_t>(layout.ranks));
}

RC_GTEST_PROP(PlacementProperty, flat_placement_pads_a_buffer_once, ()) {
  LayoutBuilder builder = random_model();
  builder.placement = ZC_PLACEMENT_FLAT;
  const Layout layout = builder.make();
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    std::size_t end = 0;
    for (const Block& block : layout.blocks) {
      const std::size_t step = layout.alignment_bytes;  // in elements it is at most that
      if (block.buffer != b || block.real_count == 0) continue;
      RC_ASSERT(block.cut_offset >= end);
      RC_ASSERT(block.cut_offset < end + step);
      end = block.cut_offset + block.real_count;
    }
    const std::size_t step = layout.alignment_bytes, ranks = static_cast<std::size_t>(layout.ranks);
    RC_ASSERT(layout.buffers[b].shard_count * ranks <= end + (ranks + 1) * step);
  }
}

RC_GTEST_PROP(PlacementProperty, buckets_do_not_depend_on_the_placement, ()) {
  LayoutBuilder builder = random_model();
  builder.placement = ZC_PLACEMENT_PER_UNIT;
  const Layout one = builder.make();
  builder.placement = ZC_PLACEMENT_FLAT;
  const Layout other = builder.make();
  RC_ASSERT(one.buckets.size() == other.buckets.size());
  for (std::size_t k = 0; k < one.buckets.size(); ++k) {
    RC_ASSERT(one.buckets[k].uses == other.buckets[k].uses);
    RC_ASSERT(one.buckets[k].padded_count == other.buckets[k].padded_count);
    for (const std::size_t i : one.buckets[k].uses) RC_ASSERT(one.uses[i].bucket_offset == other.uses[i].bucket_offset);
  }
}

// The elements of every stored use, as bytes that depend on tensor and place.
std::vector<unsigned char> use_bytes(const Layout& layout, std::size_t use) {
  const zc_span slice = layout.uses[use].in_tensor;
  const std::size_t bytes = zc_dtype_bytes(layout.tensors[layout.uses[use].tensor].dtype);
  std::vector<unsigned char> data(slice.count * bytes);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<unsigned char>(1 + (layout.uses[use].tensor * 31 + (slice.offset * bytes + i) * 7) % 251);
  return data;
}

using Shards = std::vector<std::vector<std::vector<unsigned char>>>;  // [rank][buffer]

// Shards of all ranks, cut unit by unit into memory that held something else.
Shards cut_all(const Layout& layout) {
  Shards shards(layout.pieces.size());
  for (std::size_t r = 0; r < shards.size(); ++r) {
    std::vector<void*> pointers;
    for (const Buffer& buffer : layout.buffers)
      shards[r].emplace_back(buffer.shard_count * zc_dtype_bytes(buffer.dtype), 0xee);
    for (auto& shard : shards[r]) pointers.push_back(shard.data());
    for (std::size_t u = 0; u < layout.units.size(); ++u) {
      std::vector<std::vector<unsigned char>> full;
      std::vector<const void*> full_pointers;
      for (const std::size_t i : layout.units[u].uses) full.push_back(use_bytes(layout, i));
      for (const auto& data : full) full_pointers.push_back(data.data());
      partition_unit(layout, static_cast<std::int32_t>(r), u, full_pointers.data(), pointers.data());
    }
  }
  return shards;
}

void put_use(const Layout& layout, std::size_t use, std::size_t element, std::vector<unsigned char>& to) {
  const std::vector<unsigned char> data = use_bytes(layout, use);
  const std::size_t bytes = zc_dtype_bytes(layout.tensors[layout.uses[use].tensor].dtype);
  std::copy(data.begin(), data.end(), to.begin() + static_cast<std::ptrdiff_t>(element * bytes));
}

RC_GTEST_PROP(PlacementProperty, parts_of_all_ranks_give_the_unit_back_and_padding_is_zero, ()) {
  LayoutBuilder builder = random_model();
  builder.placement = ZC_PLACEMENT_PER_UNIT;
  const Layout layout = builder.make();
  const Shards shards = cut_all(layout);
  for (std::size_t b = 0; b < layout.blocks.size(); ++b) {
    const Block& block = layout.blocks[b];
    const std::size_t bytes = zc_dtype_bytes(layout.buffers[block.buffer].dtype);
    std::vector<unsigned char> whole, wanted(block.count * bytes, 0);
    for (const auto& of_rank : shards) {
      const auto begin = of_rank[block.buffer].begin() + static_cast<std::ptrdiff_t>(block.shard_offset * bytes);
      whole.insert(whole.end(), begin, begin + static_cast<std::ptrdiff_t>(block.shard_count * bytes));
    }
    for (const std::size_t i : layout.units[block.unit].uses)
      if (is_stored(layout, i) && layout.uses[i].block == b) put_use(layout, i, layout.uses[i].block_offset, wanted);
    RC_ASSERT(whole == wanted);
  }
}

RC_GTEST_PROP(PlacementProperty, flat_shards_laid_end_to_end_are_all_units_in_order_and_padding_is_zero, ()) {
  LayoutBuilder builder = random_model();
  builder.placement = ZC_PLACEMENT_FLAT;
  const Layout layout = builder.make();
  const Shards shards = cut_all(layout);
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    std::vector<unsigned char> whole;
    for (const auto& of_rank : shards) whole.insert(whole.end(), of_rank[b].begin(), of_rank[b].end());
    std::vector<unsigned char> wanted(whole.size(), 0);
    std::size_t end = 0;
    for (const Unit& unit : layout.units)
      for (const std::size_t i : unit.uses) {
        const Use& use = layout.uses[i];
        if (!is_stored(layout, i) || layout.blocks[use.block].buffer != b || use.in_tensor.count == 0) continue;
        const std::size_t place = layout.blocks[use.block].cut_offset + use.block_offset;
        RC_ASSERT(place >= end);
        end = place + use.in_tensor.count;
        put_use(layout, i, place, wanted);
      }
    RC_ASSERT(whole == wanted);
  }
}

}  // namespace
}  // namespace zerocomm::shard
