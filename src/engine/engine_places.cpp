// Where elements of a use lie: in replicas, shards, slots and gathered units.
#include "engine/engine.hpp"
#include "shard/ownership.hpp"

namespace zerocomm::engine {

using shard::kNoIndex;

Part Engine::owned_part(const shard::Use& use, std::int32_t rank) const {
  const shard::OwnedRange owned = shard::owned_in_use(layout_.blocks[use.block], use, rank);
  return {owned.offset, owned.count};
}

// Element of a block in a full replica of its buffer, or in the shard of `rank`, which must hold it.
std::size_t Engine::place(const shard::Block& block, std::int32_t rank, std::size_t block_offset, bool full) const {
  return full ? shard::place_in_buffer(block, ranks_, block_offset) : shard::place_in_shard(block, rank, block_offset);
}

// Offset of an element of a block in the part of `rank` of the window of its buffer's parameters.
std::size_t Engine::parameter_at(const shard::Block& block, std::int32_t rank, std::size_t block_offset) const {
  return plan_.parameter_bytes_at[block.buffer] +
         place(block, rank, block_offset, plan_.full_parameters) * zc_dtype_bytes(layout_.buffers[block.buffer].dtype);
}

// The same for masters, which lie in the engine's window and are cut in every stage but 0.
std::size_t Engine::master_bytes_at(const shard::Block& block, std::int32_t rank, std::size_t block_offset) const {
  return plan_.master_bytes_at[block.buffer] +
         place(block, rank, block_offset, layout_.stage == ZC_STAGE_0) * sizeof(float);
}

// Offset in the window part of `rank`, who owns the element, of its reduced gradient.
std::size_t Engine::gradient_bytes_at(std::size_t use_index, std::int32_t rank, std::size_t use_offset) const {
  const shard::Use& use = layout_.uses[use_index];
  const shard::Block& block = layout_.blocks[use.block];
  const std::size_t base = plan_.gradient_bytes_at[block.buffer];
  if (base == kNoIndex) return plan_.slot_bytes_at[use.bucket] + (use.bucket_offset + use_offset) * sizeof(float);
  return base + place(block, rank, use.block_offset + use_offset, plan_.full_gradients) * sizeof(float);
}

std::byte* Engine::own_parameter(const shard::Block& block, std::size_t block_offset) const {
  return parameters_[block.buffer].own + parameter_at(block, rank_, block_offset);
}

float* Engine::gradient_at(std::size_t use, std::size_t use_offset) const {
  return reinterpret_cast<float*>(own(gradient_bytes_at(use, rank_, use_offset)));
}

float* Engine::master_at(std::size_t use_index, std::size_t use_offset) const {
  const shard::Use& use = layout_.uses[use_index];
  return reinterpret_cast<float*>(
      own(master_bytes_at(layout_.blocks[use.block], rank_, use.block_offset + use_offset)));
}

// The gathered memory of a stored unit: persistent units first, then the arena.
std::byte* Engine::gathered(std::size_t unit, std::size_t offset_bytes) const {
  std::byte* const memory = gathered_memory_.data();
  return layout_.units[unit].persistent ? memory + offset_bytes : memory + plan_.persistent_bytes + offset_bytes;
}

// What acquire gives out for a use: its storage, in the replica, in the shards of all ranks, or among the gathered
// units.
const void* Engine::use_address(std::size_t use_index) const {
  const shard::Use& stored = layout_.uses[layout_.uses[use_index].stored];
  if (stored.in_tensor.count == 0) return nullptr;
  const shard::Block& block = layout_.blocks[stored.block];
  if (plan_.full_parameters) return own_parameter(block, stored.block_offset);
  if (plan_.views)
    return parameters_[block.buffer].all + shard::place_in_buffer(block, ranks_, stored.block_offset) *
                                               zc_dtype_bytes(layout_.buffers[block.buffer].dtype);
  return gathered(block.unit, fetcher_.offset_bytes(block.unit)) + block.unit_offset_bytes +
         stored.block_offset * zc_dtype_bytes(layout_.buffers[block.buffer].dtype);
}

// Copies what `owner` owns of a block, up to its last real element, to its place in a copy of the block: one read.
zc_status Engine::read_owned(const shard::Block& block, std::int32_t owner, std::byte* to_block) const {
  const shard::OwnedRange owned = shard::owned_in_block(block, owner, 0, block.real_count);
  if (owned.count == 0) return ZC_OK;
  const std::size_t element_bytes = zc_dtype_bytes(layout_.buffers[block.buffer].dtype);
  return zc_window_read(parameters_[block.buffer].window, owner, parameter_at(block, owner, owned.offset),
                        to_block + owned.offset * element_bytes, owned.count * element_bytes, 0, nullptr);
}

std::uint64_t Engine::load_word(std::int32_t rank, std::size_t word) const {
  std::uint64_t value = 0;
  zc_window_load(window_.get(), rank, word, &value);  // rank and word are the engine's own: it cannot fail
  return value;
}

void Engine::store_word(std::int32_t rank, std::size_t word, std::uint64_t value) const {
  zc_window_store(window_.get(), rank, word, value);
}

}  // namespace zerocomm::engine
