// The value behind zc_layout: tensors, uses, units, buffers, blocks, buckets. Pure data; layout.h explains the words.
//
// Offsets and counts are elements unless the name says bytes. Every vector is in the order in which layout.h numbers
// it.
#pragma once

#include <zerocomm/layout.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace zerocomm::shard {

inline constexpr std::size_t kNoIndex = static_cast<std::size_t>(-1);

struct Tensor {
  std::string name;
  std::size_t count = 0;
  zc_dtype dtype = ZC_DTYPE_NONE;
  zc_dtype gradient_dtype = ZC_DTYPE_NONE;  // NONE if frozen
  bool trainable = true;
  std::int32_t group = 0;
  std::size_t owner = 0;  // the tensor whose storage this is: itself unless tied
};

struct Use {
  std::size_t tensor = 0;  // as listed
  std::size_t stored = 0;  // the use that owns the storage: itself unless tied
  std::size_t unit = 0;
  std::size_t position = 0;  // among the uses of the unit
  zc_span in_tensor{};
  std::size_t block = kNoIndex;   // of the stored use
  std::size_t block_offset = 0;   // of the stored use, in its block
  std::size_t bucket = kNoIndex;  // of the stored use; kNoIndex if frozen or empty
  std::size_t bucket_offset = 0;
  std::vector<std::size_t>
      parts;  // stored trainable uses: itself, then its ties in list order (their gradients are added in this order)
};

// One unit's elements of one buffer. ownership.hpp says who owns which.
struct Block {
  std::size_t unit = 0;
  std::size_t buffer = 0;
  std::size_t real_count = 0;  // up to its last real element: tensors and alignment gaps
  std::size_t count = 0;       // when gathered. Per unit: with its tail padding, ranks * shard_count; flat: real_count
  std::size_t padded_count = 0;  // what it takes of its buffer. Flat: up to the next block, or to the buffer's end
  std::size_t shard_count = 0;  // elements that each rank owns of the cut. Per unit: of this block; flat: of the buffer
  std::size_t shard_offset = 0;       // of the cut in every rank's shard of the buffer; flat: 0
  std::size_t cut_offset = 0;         // of this block in the cut; per unit: 0
  std::size_t unit_offset_bytes = 0;  // of this block in the unit's gathered memory
};

struct Unit {
  std::string name;
  std::vector<std::size_t> uses;
  std::vector<std::size_t> blocks;
  std::vector<std::size_t>
      needs;  // units whose storage must be gathered for this one: itself if it stores anything, and owners of its ties
  std::size_t gathered_bytes = 0;  // its own blocks
  bool persistent = false;
};

struct Buffer {
  zc_dtype dtype = ZC_DTYPE_NONE;
  zc_dtype gradient_dtype = ZC_DTYPE_NONE;
  zc_dtype shard_gradient_dtype = ZC_DTYPE_NONE;
  bool trainable = true;
  std::int32_t group = 0;
  std::size_t count = 0;        // real elements over all ranks
  std::size_t shard_count = 0;  // per rank
};

// A run of a bucket that one rank owns. Runs of a bucket are ordered by bucket_offset and cover its real elements.
struct BucketRun {
  std::size_t bucket_offset = 0;
  std::size_t count = 0;
  std::int32_t owner = 0;
  std::size_t shard_offset = 0;  // in the owner's shard of the buffer
  std::size_t use = 0;           // stored use
  std::size_t use_offset = 0;    // first element in the use
};

struct Bucket {
  std::size_t buffer = 0;
  std::vector<std::size_t> uses;  // stored uses, in bucket order (reverse order of use)
  std::vector<BucketRun> runs;
  std::size_t count = 0;         // real elements
  std::size_t padded_count = 0;  // elements of its slot
};

struct Layout {
  std::int32_t ranks = 1;
  zc_stage stage = ZC_STAGE_NONE;
  zc_placement placement = ZC_PLACEMENT_PER_UNIT;
  std::size_t alignment_bytes = 64;
  std::size_t bucket_bytes = 0;
  std::size_t persistent_bytes = 0;
  std::vector<Tensor> tensors;
  std::vector<Use> uses;
  std::vector<Unit> units;
  std::vector<Buffer> buffers;
  std::vector<Block> blocks;
  std::vector<Bucket> buckets;
  std::vector<std::vector<std::vector<zc_piece>>> pieces;  // [rank][buffer]
  std::uint64_t hash = 0;
};

// The one function that makes layouts. Throws Error as zc_layout_create documents.
Layout make_layout(const zc_tensor* tensors, std::size_t tensor_count, const zc_layout_config& config);

}  // namespace zerocomm::shard
