// Initial values, compared or broadcast; and one whole tensor back to one rank.
#include "base/math.hpp"
#include "engine/engine.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace zerocomm::engine {
namespace {

constexpr std::size_t kStagingBytes = std::size_t{1} << 20;

bool is_float(zc_dtype dtype) {
  return dtype == ZC_DTYPE_F64 || dtype == ZC_DTYPE_F32 || dtype == ZC_DTYPE_F16 || dtype == ZC_DTYPE_BF16;
}

std::uint64_t hash_bytes(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t hash = 0x243f6a8885a308d3ULL ^ bytes;
  for (; bytes >= 8; at += 8, bytes -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    hash = (hash ^ word) * 0x9fb21c651e98df25ULL;
    hash ^= hash >> 29;
  }
  for (; bytes > 0; ++at, --bytes) hash = (hash ^ *at) * 0x100000001b3ULL;
  return hash ^ hash >> 32;
}

}  // namespace

zc_dtype Engine::given_dtype(std::size_t use, zc_dtype dtype) const {
  const zc_dtype stored = layout_.buffers[layout_.blocks[layout_.uses[use].block].buffer].dtype;
  return dtype == ZC_DTYPE_F32 && is_float(stored) ? ZC_DTYPE_F32 : stored;
}

// Puts elements [first, first + count) of a use where this rank stores them.
zc_status Engine::store_use(std::size_t use_index, std::size_t first, std::size_t count, const std::byte* data,
                            zc_dtype dtype) {
  const shard::Use& use = layout_.uses[use_index];
  const shard::Block& block = layout_.blocks[use.block];
  const shard::Buffer& buffer = layout_.buffers[block.buffer];
  const Part owned = owned_part(use, rank_);
  const auto overlap = [&](const Part& part) {
    const std::size_t low = std::max(first, part.offset), high = std::min(first + count, part.offset + part.count);
    return low < high ? Part{low, high - low} : Part{};
  };
  const auto put = [&](const Part& part, std::byte* to, zc_dtype to_dtype) {
    return zc_cast(data + (part.offset - first) * zc_dtype_bytes(dtype), dtype, to, to_dtype, part.count);
  };
  const Part stored = overlap(plan_.full_parameters ? Part{0, use.in_tensor.count} : owned);
  if (stored.count != 0) ZC_TRY(put(stored, own_parameter(block, use.block_offset + stored.offset), buffer.dtype));
  if (!has_master(buffer)) return ZC_OK;
  const Part mastered = overlap(layout_.stage == ZC_STAGE_0 ? Part{0, use.in_tensor.count} : owned);
  if (mastered.count == 0) return ZC_OK;
  return put(mastered, reinterpret_cast<std::byte*>(master_at(use_index, mastered.offset)), ZC_DTYPE_F32);
}

// All ranks bring the same unit, dtype and root; without a root, the same data.
zc_status Engine::compare_load(std::size_t unit, const void* const* full, zc_dtype dtype, std::int32_t root) {
  constexpr std::size_t kHead = 3;
  std::vector<std::uint64_t> mine{unit, static_cast<std::uint64_t>(dtype), static_cast<std::uint64_t>(root + 1)};
  const shard::Unit& wanted = layout_.units[unit];
  for (const std::size_t index : wanted.uses) {
    const shard::Use& use = layout_.uses[index];
    const bool compared = root == ZC_NONE && use.stored == index && use.in_tensor.count != 0;
    mine.push_back(
        compared ? hash_bytes(full[use.position], use.in_tensor.count * zc_dtype_bytes(given_dtype(index, dtype))) : 0);
  }
  // Ranks may disagree about the unit, and so about how many digests there are: the heads are compared first.
  std::vector<std::uint64_t> all(kHead * static_cast<std::size_t>(ranks_));
  const zc_coll_options options = control();
  ZC_TRY(zc_all_gather(comm_, mine.data(), all.data(), kHead, ZC_DTYPE_I64, &options));
  constexpr std::array<const char*, kHead> kNames = {"unit", "dtype", "root (plus 1)"};
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != all[i % kHead])
      return fail(ZC_MISMATCH, "zc_zero_load: %s is %llu on rank 0 and %llu on rank %zu", kNames[i % kHead],
                  static_cast<unsigned long long>(all[i % kHead]), static_cast<unsigned long long>(all[i]), i / kHead);
  if (root != ZC_NONE) return ZC_OK;
  all.resize(mine.size() * static_cast<std::size_t>(ranks_));
  ZC_TRY(zc_all_gather(comm_, mine.data(), all.data(), mine.size(), ZC_DTYPE_I64, &options));
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != all[i % mine.size()])
      return fail(ZC_MISMATCH, "zc_zero_load: rank 0 and rank %zu bring different values for tensor %s",
                  i / mine.size(),
                  layout_.tensors[layout_.uses[wanted.uses[i % mine.size() - kHead]].tensor].name.c_str());
  return ZC_OK;
}

zc_status Engine::broadcast_use(std::size_t use_index, const void* data, zc_dtype dtype, std::int32_t root,
                                std::byte* staging) {
  const std::size_t count = layout_.uses[use_index].in_tensor.count, most = kStagingBytes / zc_dtype_bytes(dtype);
  const zc_coll_options options = control();
  for (std::size_t first = 0; first < count; first += most) {
    const std::size_t chunk = std::min(most, count - first), chunk_bytes = chunk * zc_dtype_bytes(dtype);
    if (rank_ == root)
      std::memcpy(staging, static_cast<const std::byte*>(data) + first * zc_dtype_bytes(dtype), chunk_bytes);
    ZC_TRY(zc_broadcast(comm_, staging, chunk, dtype, root, &options));
    ZC_TRY(store_use(use_index, first, chunk, staging, dtype));
  }
  return ZC_OK;
}

zc_status Engine::load(std::size_t unit, const void* const* full, zc_dtype dtype, std::int32_t root) {
  ZC_REQUIRE(unit < layout_.units.size(), ZC_ARGUMENT, "rank %d: unit %zu of a layout with %zu units", rank_, unit,
             layout_.units.size());
  ZC_REQUIRE(dtype == ZC_DTYPE_NONE || dtype == ZC_DTYPE_F32, ZC_ARGUMENT,
             "rank %d: values are given in storage dtypes or in f32, not in %s", rank_, zc_dtype_name(dtype));
  ZC_REQUIRE(root >= ZC_NONE && root < ranks_, ZC_ARGUMENT, "rank %d: root %d is neither a rank nor ZC_NONE", rank_,
             root);
  const bool brings = root == ZC_NONE || root == rank_;
  for (const std::size_t index : layout_.units[unit].uses) {
    const shard::Use& use = layout_.uses[index];
    ZC_REQUIRE(!brings || use.stored != index || use.in_tensor.count == 0 ||
                   (full != nullptr && full[use.position] != nullptr),
               ZC_ARGUMENT, "rank %d: full[%zu] (tensor %s) is NULL", rank_, use.position,
               layout_.tensors[use.tensor].name.c_str());
  }
  {
    const std::lock_guard lock(mutex_);
    ZC_REQUIRE(held_units() == 0, ZC_STATE, "rank %d: zc_zero_load while %zu units are held", rank_, held_units());
    ZC_REQUIRE(!publication_.pass_open() && (publication_.update_open() || publication_.published().generation == 0),
               ZC_STATE, "rank %d: zc_zero_load before the first publish, or between update_begin and publish; %s",
               rank_, publication_.pass_open() ? "a pass is open" : "generation 1 was published");
  }
  ZC_TRY(compare_load(unit, full, dtype, root));
  std::vector<std::byte> staging(root == ZC_NONE ? 0 : kStagingBytes);
  for (const std::size_t index : layout_.units[unit].uses) {
    const shard::Use& use = layout_.uses[index];
    if (use.stored != index || use.in_tensor.count == 0) continue;
    const void* data = brings ? full[use.position] : nullptr;
    if (root == ZC_NONE)
      ZC_TRY(store_use(index, 0, use.in_tensor.count, static_cast<const std::byte*>(data), given_dtype(index, dtype)));
    else
      ZC_TRY(broadcast_use(index, data, given_dtype(index, dtype), root, staging.data()));
  }
  // Nobody reads this unit before every owner has stored it, and nobody keeps what it gathered before.
  const zc_coll_options options = control();
  ZC_TRY(zc_barrier(comm_, &options));
  const std::lock_guard lock(mutex_);
  if (!plan_.full_parameters) poison_dropped(fetcher_.drop_all());
  return ZC_OK;
}

zc_status Engine::export_tensor(std::size_t tensor, zc_state state, void* destination) {
  ZC_REQUIRE(tensor < layout_.tensors.size(), ZC_ARGUMENT, "rank %d: tensor %zu of a layout with %zu", rank_, tensor,
             layout_.tensors.size());
  ZC_REQUIRE(state == ZC_STATE_PARAMETER || state == ZC_STATE_MASTER, ZC_ARGUMENT,
             "rank %d: a parameter or a master can be exported, not state %d", rank_, static_cast<int>(state));
  ZC_REQUIRE(destination != nullptr || layout_.tensors[tensor].count == 0, ZC_ARGUMENT, "rank %d: destination is NULL",
             rank_);
  const std::size_t owner = layout_.tensors[tensor].owner;
  std::uint64_t generation = 0;
  {
    const std::lock_guard lock(mutex_);
    const zero::Verdict verdict = publication_.read_outside();
    if (verdict.status != ZC_OK) return record_error(verdict.status, verdict.text.c_str());
    generation = publication_.published().generation;
    ++acquiring_;  // this rank's own update waits for it, and others for this rank
  }
  const Inside inside(acquiring_, mutex_);
  ZC_TRY(wait_for_owners(generation));
  for (std::size_t index = 0; index < layout_.uses.size(); ++index) {
    const shard::Use& use = layout_.uses[index];
    if (use.tensor != owner || use.stored != index || use.in_tensor.count == 0) continue;
    const shard::Block& block = layout_.blocks[use.block];
    const shard::Buffer& buffer = layout_.buffers[block.buffer];
    const bool master = state == ZC_STATE_MASTER && has_master(buffer);
    ZC_REQUIRE(state != ZC_STATE_MASTER || master || buffer.dtype == ZC_DTYPE_F32, ZC_UNSUPPORTED,
               "rank %d: tensor %s is stored as %s and has no f32 master", rank_, layout_.tensors[tensor].name.c_str(),
               zc_dtype_name(buffer.dtype));
    const std::size_t element_bytes = master ? sizeof(float) : zc_dtype_bytes(buffer.dtype);
    const bool whole = master ? layout_.stage == ZC_STAGE_0 : plan_.full_parameters;
    for (std::int32_t rank = whole ? rank_ : 0; rank < (whole ? rank_ + 1 : ranks_); ++rank) {
      const Part part = whole ? Part{0, use.in_tensor.count} : owned_part(use, rank);
      if (part.count == 0) continue;
      const std::size_t at = master ? master_bytes_at(block, rank, use.block_offset + part.offset)
                                    : parameter_at(block, rank, use.block_offset + part.offset);
      auto* to = static_cast<std::byte*>(destination) + (use.in_tensor.offset + part.offset) * element_bytes;
      zc_window* window = master ? window_.get() : parameters_[block.buffer].window;
      ZC_TRY(zc_window_read(window, rank, at, to, part.count * element_bytes, 0, nullptr));
    }
  }
  return ZC_OK;
}

}  // namespace zerocomm::engine
