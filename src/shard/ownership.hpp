// Which rank owns what. Nothing else knows how buffers are cut.
//
// What is cut is one block (per-unit placement) or one whole buffer (flat placement): a block is elements
// [cut_offset, cut_offset + count) of its cut, and rank r owns elements [r, r + 1) * shard_count of that cut, which lie
// in its shard of the buffer from shard_offset on. All elements of a cut lie end to end in a full copy of the buffer.
#pragma once

#include "shard/layout.hpp"

namespace zerocomm::shard {

struct OwnedRange {
  std::size_t offset = 0;        // in the block, or in the use that was asked for
  std::size_t count = 0;         // 0: the rank owns nothing of it
  std::size_t shard_offset = 0;  // in the rank's shard of the buffer
};

// What `rank` owns of elements [first, first + count) of a block.
constexpr OwnedRange owned_in_block(const Block& block, std::int32_t rank, std::size_t first, std::size_t count) {
  const std::size_t low = static_cast<std::size_t>(rank) * block.shard_count, high = low + block.shard_count;
  const std::size_t begin = block.cut_offset + first, end = begin + count;
  const std::size_t owned_begin = begin > low ? begin : low, owned_end = end < high ? end : high;
  if (owned_begin >= owned_end) return {};
  return {owned_begin - block.cut_offset, owned_end - owned_begin, block.shard_offset + owned_begin - low};
}

// What `rank` owns of a stored use of the block; `offset` is an element of the use.
constexpr OwnedRange owned_in_use(const Block& block, const Use& use, std::int32_t rank) {
  OwnedRange owned = owned_in_block(block, rank, use.block_offset, use.in_tensor.count);
  if (owned.count != 0) owned.offset -= use.block_offset;
  return owned;
}

// The rank that owns an element of a block.
constexpr std::int32_t owner_of(const Block& block, std::size_t block_offset) {
  return static_cast<std::int32_t>((block.cut_offset + block_offset) / block.shard_count);
}

// Place of an element of a block in the shard of `rank`, who owns it.
constexpr std::size_t place_in_shard(const Block& block, std::int32_t rank, std::size_t block_offset) {
  return block.shard_offset + block.cut_offset + block_offset - static_cast<std::size_t>(rank) * block.shard_count;
}

// Place of an element of a block in a full copy of its buffer, which has ranks * shard_count elements. Under flat
// placement that is where it lies in the shards of all ranks laid end to end.
constexpr std::size_t place_in_buffer(const Block& block, std::int32_t ranks, std::size_t block_offset) {
  return static_cast<std::size_t>(ranks) * block.shard_offset + block.cut_offset + block_offset;
}

}  // namespace zerocomm::shard
