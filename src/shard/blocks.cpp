// Buffers and blocks: where every element of every parameter lies, and which rank owns it.
#include "shard/build_steps.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace zerocomm::shard {
namespace {

// The buffer of every tensor; buffers are numbered by their first untied tensor.
std::vector<std::size_t> add_buffers(Layout& layout, zc_dtype shard_gradient_dtype) {
  std::map<std::tuple<zc_dtype, zc_dtype, bool, std::int32_t>, std::size_t> by_key;
  std::vector<std::size_t> buffer_of;
  buffer_of.reserve(layout.tensors.size());
  for (std::size_t t = 0; t < layout.tensors.size(); ++t) {
    const Tensor& tensor = layout.tensors[t];
    const auto [entry, is_new] = by_key.emplace(
        std::tuple(tensor.dtype, tensor.gradient_dtype, tensor.trainable, tensor.group), layout.buffers.size());
    if (is_new)
      layout.buffers.push_back(Buffer{tensor.dtype, tensor.gradient_dtype,
                                      tensor.trainable ? shard_gradient_dtype : ZC_DTYPE_NONE, tensor.trainable,
                                      tensor.group, 0, 0});
    Buffer& buffer = layout.buffers[entry->second];
    if (tensor.owner == t) buffer.count = checked_add(buffer.count, tensor.count);
    buffer_of.push_back(entry->second);
  }
  return buffer_of;
}

// Shards start aligned as stored parameters and as reduced gradients.
std::size_t block_alignment(const Layout& layout, const Buffer& buffer) {
  std::size_t bytes = zc_dtype_bytes(buffer.dtype);
  if (buffer.trainable) bytes = std::min(bytes, zc_dtype_bytes(buffer.shard_gradient_dtype));
  return alignment_count(layout.alignment_bytes, bytes);
}

// The unit's block of a buffer, made at its first use.
std::size_t find_block(Layout& layout, std::size_t unit, std::size_t buffer) {
  for (const std::size_t b : layout.units[unit].blocks)
    if (layout.blocks[b].buffer == buffer) return b;
  Block block;
  block.unit = unit;
  block.buffer = buffer;
  layout.units[unit].blocks.push_back(layout.blocks.size());
  layout.blocks.push_back(block);
  return layout.blocks.size() - 1;
}

void place_uses(Layout& layout, std::size_t index, const std::vector<std::size_t>& buffer_of) {
  for (const std::size_t i : layout.units[index].uses) {
    Use& use = layout.uses[i];
    if (use.stored != i) continue;
    use.block = find_block(layout, index, buffer_of[use.tensor]);
    Block& block = layout.blocks[use.block];
    use.block_offset = round_up(block.real_count, block_alignment(layout, layout.buffers[block.buffer]));
    if (use.in_tensor.count > 0) block.real_count = checked_add(use.block_offset, use.in_tensor.count);
  }
}

std::size_t even_shard(const Layout& layout, const Buffer& buffer, std::size_t count) {
  return round_up(ceil_div(count, static_cast<std::size_t>(layout.ranks)), block_alignment(layout, buffer));
}

// Per unit: pads every block to one equal, aligned shard per rank. A rank's shards of all blocks lie end to end.
void cut_blocks(Layout& layout) {
  for (Block& block : layout.blocks) {
    Buffer& buffer = layout.buffers[block.buffer];
    block.shard_count = even_shard(layout, buffer, block.real_count);
    block.count = block.padded_count = checked_mul(block.shard_count, static_cast<std::size_t>(layout.ranks));
    block.shard_offset = buffer.shard_count;
    buffer.shard_count = checked_add(buffer.shard_count, block.shard_count);
  }
}

// Flat: blocks lie end to end, each aligned; every buffer is padded once.
void cut_buffers(Layout& layout) {
  std::vector<std::size_t> end(layout.buffers.size(), 0), last(layout.buffers.size(), kNoIndex);
  for (std::size_t b = 0; b < layout.blocks.size(); ++b) {
    Block& block = layout.blocks[b];
    block.count = block.real_count;
    block.padded_count = round_up(block.real_count, block_alignment(layout, layout.buffers[block.buffer]));
    block.cut_offset = end[block.buffer];
    end[block.buffer] = checked_add(block.cut_offset, block.padded_count);
    if (block.count > 0) last[block.buffer] = b;
  }
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    Buffer& buffer = layout.buffers[b];
    buffer.shard_count = even_shard(layout, buffer, end[b]);
    const std::size_t whole = checked_mul(buffer.shard_count, static_cast<std::size_t>(layout.ranks));
    if (last[b] != kNoIndex) layout.blocks[last[b]].padded_count += whole - end[b];
  }
  for (Block& block : layout.blocks) block.shard_count = layout.buffers[block.buffer].shard_count;
}

void place_blocks(Layout& layout, Unit& unit) {
  for (const std::size_t b : unit.blocks) {
    Block& block = layout.blocks[b];
    const std::size_t bytes = zc_dtype_bytes(layout.buffers[block.buffer].dtype);
    block.unit_offset_bytes = round_up(unit.gathered_bytes, std::max(layout.alignment_bytes, bytes));
    unit.gathered_bytes = checked_add(block.unit_offset_bytes, checked_mul(block.count, bytes));
  }
  unit.persistent =
      layout.stage == ZC_STAGE_3 && layout.persistent_bytes > 0 && unit.gathered_bytes <= layout.persistent_bytes;
}

}  // namespace

void add_blocks(Layout& layout, zc_dtype shard_gradient_dtype) {
  const std::vector<std::size_t> buffer_of = add_buffers(layout, shard_gradient_dtype);
  for (std::size_t u = 0; u < layout.units.size(); ++u) place_uses(layout, u, buffer_of);
  if (layout.placement == ZC_PLACEMENT_FLAT)
    cut_buffers(layout);
  else
    cut_blocks(layout);
  for (Unit& unit : layout.units) place_blocks(layout, unit);
  for (Use& use : layout.uses) {
    use.block = layout.uses[use.stored].block;
    use.block_offset = layout.uses[use.stored].block_offset;
  }
  // Nobody who adds up bytes later can overflow. Eight bytes are the widest element of any state.
  std::size_t all_bytes = 0;
  for (const Block& block : layout.blocks) all_bytes = checked_add(all_bytes, checked_mul(block.padded_count, 8));
}

}  // namespace zerocomm::shard
