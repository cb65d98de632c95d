// Where elements of a use lie: in replicas, shards, slots and gathered units.
#include "engine/engine.hpp"

#include <algorithm>

namespace zerocomm::engine {

using shard::kNoIndex;

Part Engine::owned_part(const shard::Use& use, std::int32_t rank) const {
  const shard::Block& block = layout_.blocks[use.block];
  const std::size_t low = static_cast<std::size_t>(rank) * block.shard_count, high = low + block.shard_count;
  const std::size_t first = std::max(use.block_offset, low),
                    last = std::min(use.block_offset + use.in_tensor.count, high);
  return first < last ? Part{first - use.block_offset, last - first} : Part{};
}

// Offset in the window part of `rank` of an element of a block: in the full replica, or in that rank's shard, which
// must hold it.
std::size_t Engine::parameter_at(const shard::Block& block, std::int32_t rank, std::size_t block_offset) const {
  const std::size_t element =
      plan_.full_parameters ? static_cast<std::size_t>(ranks_) * block.shard_offset + block_offset
                            : block.shard_offset + block_offset - static_cast<std::size_t>(rank) * block.shard_count;
  return plan_.parameter_bytes_at[block.buffer] + element * zc_dtype_bytes(layout_.buffers[block.buffer].dtype);
}

// The same for masters, which are cut in every stage but 0.
std::size_t Engine::master_bytes_at(const shard::Block& block, std::int32_t rank, std::size_t block_offset) const {
  const std::size_t element =
      layout_.stage == ZC_STAGE_0
          ? static_cast<std::size_t>(ranks_) * block.shard_offset + block_offset
          : block.shard_offset + block_offset - static_cast<std::size_t>(rank) * block.shard_count;
  return plan_.master_bytes_at[block.buffer] + element * sizeof(float);
}

// Offset in the window part of `rank`, who owns the element, of its reduced gradient.
std::size_t Engine::gradient_bytes_at(std::size_t use_index, std::int32_t rank, std::size_t use_offset) const {
  const shard::Use& use = layout_.uses[use_index];
  const shard::Block& block = layout_.blocks[use.block];
  const std::size_t base = plan_.gradient_bytes_at[block.buffer];
  if (base == kNoIndex) return plan_.slot_bytes_at[use.bucket] + (use.bucket_offset + use_offset) * sizeof(float);
  const std::size_t block_offset = use.block_offset + use_offset;
  const std::size_t element =
      plan_.full_gradients ? static_cast<std::size_t>(ranks_) * block.shard_offset + block_offset
                           : block.shard_offset + block_offset - static_cast<std::size_t>(rank) * block.shard_count;
  return base + element * sizeof(float);
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
  auto* memory = static_cast<std::byte*>(gathered_memory_.get());
  return layout_.units[unit].persistent ? memory + offset_bytes : memory + plan_.persistent_bytes + offset_bytes;
}

// What acquire gives out for a use: its storage, in the replica or among the gathered units.
const void* Engine::use_address(std::size_t use_index) const {
  const shard::Use& stored = layout_.uses[layout_.uses[use_index].stored];
  if (stored.in_tensor.count == 0) return nullptr;
  const shard::Block& block = layout_.blocks[stored.block];
  if (plan_.full_parameters) return own(parameter_at(block, rank_, stored.block_offset));
  return gathered(block.unit, fetcher_.offset_bytes(block.unit)) + block.unit_offset_bytes +
         stored.block_offset * zc_dtype_bytes(layout_.buffers[block.buffer].dtype);
}

std::size_t Engine::real_count(std::size_t block_index, std::int32_t rank) const {
  std::size_t end = 0;
  const shard::Block& block = layout_.blocks[block_index];
  for (const std::size_t index : layout_.units[block.unit].uses) {
    const shard::Use& use = layout_.uses[index];
    if (use.stored == index && use.block == block_index) end = std::max(end, use.block_offset + use.in_tensor.count);
  }
  const std::size_t low = static_cast<std::size_t>(rank) * block.shard_count;
  return end > low ? std::min(end - low, block.shard_count) : 0;
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
