// The steps of make_layout, in the order in which it takes them. Each fills its own part of the layout.
#pragma once

#include "base/math.hpp"
#include "shard/ownership.hpp"

#include <vector>

namespace zerocomm::shard {

// Checks the arguments; fills configuration, tensors, and of every use: tensor and slice.
// Returns the unit name of every use. The names are the caller's memory.
std::vector<const char*> read_arguments(Layout& layout, const zc_tensor* tensors, std::size_t tensor_count,
                                        const zc_layout_config& config);

// Units in order of first appearance; positions of uses.
void add_units(Layout& layout, const std::vector<const char*>& unit_names);

// The slices of every tensor must cover it once. Ties find the slice that they share; fills stored, parts, needs.
void join_ties(Layout& layout);

// Buffers, blocks, places of uses in blocks and of blocks in shards; persistence. The only code that pads parameters.
void add_blocks(Layout& layout, zc_dtype shard_gradient_dtype);

// Buckets, their slots and runs. The only code that pads gradients.
void add_buckets(Layout& layout);

// What every rank owns.
void add_pieces(Layout& layout);

// 64 bits of everything that ranks must agree on.
std::uint64_t layout_hash(const Layout& layout);

// Elements of `bytes` bytes each between aligned addresses.
constexpr std::size_t alignment_count(std::size_t alignment_bytes, std::size_t bytes) {
  return alignment_bytes > bytes ? alignment_bytes / bytes : 1;
}

// A part of a use that one rank owns.
struct OwnedRun {
  std::int32_t owner = 0;
  std::size_t use_offset = 0;
  std::size_t shard_offset = 0;  // in the owner's shard of the buffer
  std::size_t count = 0;
};

// Calls visit(OwnedRun) for every rank that owns elements of a stored use, by rising rank.
template <class Visit>
void for_each_run(const Use& use, const Block& block, Visit&& visit) {
  std::size_t done = 0;
  while (done < use.in_tensor.count) {
    const std::int32_t owner = owner_of(block, use.block_offset + done);
    const OwnedRange owned = owned_in_use(block, use, owner);
    visit(OwnedRun{owner, owned.offset, owned.shard_offset, owned.count});
    done += owned.count;
  }
}

}  // namespace zerocomm::shard
