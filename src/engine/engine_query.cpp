// What a caller may ask of an engine at any time.
#include "engine/engine.hpp"

#include <algorithm>

namespace zerocomm::engine {

using shard::kNoIndex;

zc_coll_options Engine::control() const {
  zc_coll_options options{};
  options.struct_size = sizeof options;
  options.deadline_ns = config_.deadline_ns;
  options.traffic = ZC_TRAFFIC_CONTROL;
  return options;
}

zc_status Engine::pieces(const zc_zero_piece** pieces, std::size_t* piece_count, std::size_t* state_count) const {
  ZC_REQUIRE(pieces != nullptr && piece_count != nullptr && state_count != nullptr, ZC_ARGUMENT,
             "rank %d: an output is NULL", rank_);
  *pieces = pieces_.data();
  *piece_count = pieces_.size();
  *state_count = state_count_;
  return ZC_OK;
}

zc_status Engine::state(zc_state state, std::size_t buffer_index, void** shard, std::size_t* count) const {
  ZC_REQUIRE(buffer_index < layout_.buffers.size() && shard != nullptr && count != nullptr, ZC_ARGUMENT,
             "rank %d: buffer %zu of a layout with %zu, or an output is NULL", rank_, buffer_index,
             layout_.buffers.size());
  const shard::Buffer& buffer = layout_.buffers[buffer_index];
  const bool f32_parameter = buffer.dtype == ZC_DTYPE_F32;
  std::byte* home = own_memory_;
  std::size_t at = kNoIndex;
  if (state == ZC_STATE_PARAMETER || (state == ZC_STATE_MASTER && f32_parameter)) {
    home = parameters_[buffer_index].own;
    if (!plan_.full_parameters)
      at = plan_.parameter_bytes_at[buffer_index];
    else if (layout_.placement == ZC_PLACEMENT_FLAT && layout_.stage != ZC_STAGE_0)  // one run of the replica
      at = plan_.parameter_bytes_at[buffer_index] +
           static_cast<std::size_t>(rank_) * buffer.shard_count * zc_dtype_bytes(buffer.dtype);
  } else if (state == ZC_STATE_MASTER) {
    if (layout_.stage != ZC_STAGE_0) at = plan_.master_bytes_at[buffer_index];
  } else if (state == ZC_STATE_GRADIENT) {
    if (!plan_.full_gradients) at = plan_.gradient_bytes_at[buffer_index];
  } else {
    return fail(ZC_ARGUMENT, "rank %d: state %d is none", rank_, static_cast<int>(state));
  }
  ZC_REQUIRE(at != kNoIndex, ZC_UNSUPPORTED,
             "rank %d: state %d of buffer %zu is no array of its own in this stage; zc_zero_pieces has its addresses",
             rank_, static_cast<int>(state), buffer_index);
  *shard = home + at;
  *count = buffer.shard_count;
  return ZC_OK;
}

zc_status Engine::reduced(std::size_t buffer, float** gradients, std::size_t* count) const {
  ZC_REQUIRE(buffer < layout_.buffers.size() && gradients != nullptr && count != nullptr, ZC_ARGUMENT,
             "rank %d: buffer %zu of a layout with %zu, or an output is NULL", rank_, buffer, layout_.buffers.size());
  ZC_REQUIRE(plan_.gradient_bytes_at[buffer] != kNoIndex, ZC_ARGUMENT,
             "rank %d: buffer %zu is frozen: it has no gradients", rank_, buffer);
  *gradients = reinterpret_cast<float*>(own(plan_.gradient_bytes_at[buffer]));
  *count = layout_.buffers[buffer].shard_count * (plan_.full_gradients ? static_cast<std::size_t>(ranks_) : 1);
  return ZC_OK;
}

zc_status Engine::blockers(std::size_t bucket, std::int32_t rank, std::size_t* uses, std::size_t capacity,
                           std::size_t* count) const {
  ZC_REQUIRE(bucket < layout_.buckets.size() && rank >= 0 && rank < ranks_, ZC_ARGUMENT,
             "rank %d: bucket %zu of %zu, or rank %d of %d", rank_, bucket, layout_.buckets.size(), rank, ranks_);
  ZC_REQUIRE(count != nullptr && (uses != nullptr || capacity == 0), ZC_ARGUMENT, "rank %d: an output is NULL", rank_);
  const std::vector<std::size_t> blocking = blocking_uses(bucket, rank);
  std::copy_n(blocking.begin(), std::min(capacity, blocking.size()), uses);
  *count = blocking.size();
  return ZC_OK;
}

zc_zero_stats Engine::stats() const {
  const std::lock_guard lock(mutex_);
  const zero::Fetcher::Counters& fetched = fetcher_.counters();
  zc_zero_stats stats{};
  stats.hits = fetched.hits;
  stats.late_hits = fetched.late_hits;
  stats.misses = fetched.misses;
  stats.prefetches = fetched.prefetches;
  stats.prefetches_wasted = fetched.wasted;
  stats.evictions = fetched.evictions;
  stats.buckets_reduced = buckets_reduced_;
  stats.buckets_before_end = buckets_before_end_;
  for (const shard::Bucket& bucket : layout_.buckets)
    stats.buckets_padding_bytes +=
        (bucket.padded_count - bucket.count) * zc_dtype_bytes(wire_dtype(plan_, layout_.buffers[bucket.buffer]));
  stats.slices_own = slices_own_.load();
  stats.slices_helped = slices_helped_.load();
  stats.gathered_peak_bytes = fetched.peak_bytes;
  stats.budget_bytes = plan_.budget_bytes;
  stats.budget_peak_bytes = used_peak_bytes_;
  stats.generation = publication_.published().generation;
  stats.gather_logical_bytes = gather_bytes_.load();
  stats.reduce_logical_bytes = reduce_bytes_;
  stats.views = views_.load();
  return stats;
}

zc_zero_ledger Engine::ledger() const {
  zc_zero_ledger ledger = plan_.ledger;
  ledger.control_bytes = (words_.count() + windows_apart_.size()) * sizeof(std::uint64_t);
  ledger.total_bytes = ledger.parameter_bytes + ledger.gradient_bytes + ledger.master_bytes + ledger.slot_bytes +
                       ledger.gather_bytes + ledger.control_bytes;
  return ledger;
}

}  // namespace zerocomm::engine
