// Gradients: reports, slots, arrivals, and the reduction of complete buckets by whoever is inside the library.
#include "engine/engine.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace zerocomm::engine {
namespace {

constexpr std::size_t kMostRanks = 1024;

bool adds_to_shards(std::uint32_t phase) { return phase == ZC_PHASE_MIDDLE || phase == ZC_PHASE_LAST; }
bool ends_step(std::uint32_t phase) { return phase == ZC_PHASE_ONLY || phase == ZC_PHASE_LAST; }

}  // namespace

bool Engine::pass_reduces(zc_phase phase) const { return !plan_.wire_is_f32 || ends_step(phase); }

// Under the lock.
void Engine::open_gradient_pass(zc_phase phase) {
  reducer_.begin(shared_passes_.load());
  std::fill(gradients_.begin(), gradients_.end(), nullptr);
  std::fill(slot_of_bucket_.begin(), slot_of_bucket_.end(), zero::kNoSlot);
  for (std::size_t i = 0; i < words_.report_words(); ++i) store_word(rank_, words_.reported(64 * i), 0);
  store_word(rank_, Words::pass(), publication_.gradient_passes());
  passes_in_step_.store(publication_.passes_in_step());
  pass_phase_.store(pass_reduces(phase) ? phase : ZC_PHASE_NONE);
}

zc_status Engine::report(std::size_t use, const void* gradient, bool absent) {
  ZC_REQUIRE(use < layout_.uses.size(), ZC_ARGUMENT, "rank %d: use %zu of a layout with %zu", rank_, use,
             layout_.uses.size());
  const bool empty = layout_.uses[use].in_tensor.count == 0;
  ZC_REQUIRE(absent || gradient != nullptr || empty, ZC_ARGUMENT, "rank %d: the gradient of tensor %s is NULL", rank_,
             layout_.tensors[layout_.uses[use].tensor].name.c_str());
  ZC_TRY(zc_comm_status(comm_));
  {
    const std::lock_guard lock(mutex_);
    std::string text;
    const zc_status status = absent ? reducer_.absent(use, &text) : reducer_.ready(use, &text);
    if (status != ZC_OK) return fail(status, "rank %d: %s", rank_, text.c_str());
    gradients_[use] = gradient;
    note_call();
    if (!empty) zc_window_add(window_.get(), rank_, words_.reported(use), std::uint64_t{1} << use % 64, nullptr);
  }
  pump();
  return check_failure();
}

zc_status Engine::grad_ready(std::size_t use, const void* gradient) { return report(use, gradient, false); }
zc_status Engine::grad_absent(std::size_t use) { return report(use, nullptr, true); }

zc_status Engine::grad_buffer(std::size_t use, void** gradient) {
  ZC_REQUIRE(use < layout_.uses.size() && gradient != nullptr, ZC_ARGUMENT,
             "rank %d: use %zu of a layout with %zu, or gradient is NULL", rank_, use, layout_.uses.size());
  const shard::Use& wanted = layout_.uses[use];
  ZC_REQUIRE(wanted.bucket != shard::kNoIndex, ZC_ARGUMENT, "rank %d: tensor %s has no gradient", rank_,
             layout_.tensors[wanted.tensor].name.c_str());
  ZC_REQUIRE(plan_.own_slots && !plan_.wire_is_f32 && wanted.stored == use && wanted.parts.size() == 1, ZC_UNSUPPORTED,
             "rank %d: no full-size gradient buffer for tensor %s: that takes stage 1, an untied tensor and passes "
             "that are not added up first",
             rank_, layout_.tensors[wanted.tensor].name.c_str());
  const zc_dtype dtype = layout_.buffers[layout_.buckets[wanted.bucket].buffer].gradient_dtype;
  *gradient = own(plan_.slot_bytes_at[wanted.bucket] + wanted.bucket_offset * zc_dtype_bytes(dtype));
  return ZC_OK;
}

// Does whatever can be done now: hands over complete buckets, reduces slices. Any thread, no waiting.
void Engine::pump() noexcept {
  if (pass_phase_.load() == ZC_PHASE_NONE || load_word(rank_, Words::failure()) != 0) return;
  while (grant_one() || reduce_one()) {
  }
}

// Under the lock: frees own slots whose buckets are reduced.
void Engine::observe_completed() {
  const std::uint64_t passes = shared_passes_.load() + 1;
  for (std::size_t bucket = 0; bucket < layout_.buckets.size(); ++bucket) {
    if (reducer_.reduced(bucket)) continue;
    const std::uint64_t completed = load_word(words_.home(bucket), words_.completed(bucket));
    if (completed < passes) continue;
    const std::uint32_t slot = slot_of_bucket_[bucket];
    if (slot != zero::kNoSlot) {
      --slots_in_use_;
      if (!plan_.own_slots) fill(own(plan_.slot_bytes_at[slot]), plan_.ledger.slot_bytes / plan_.slots);
    }
    reducer_.observe(bucket, completed);
    ++buckets_reduced_;
    if (!in_end_) ++buckets_before_end_;
  }
}

bool Engine::grant_one() {
  zero::Grant grant;
  zc_phase phase{};
  {
    const std::lock_guard lock(mutex_);
    if (pass_phase_.load() == ZC_PHASE_NONE) return false;
    observe_completed();
    const std::optional<zero::Grant> next = reducer_.next();
    if (!next) return false;
    grant = *next;
    if (plan_.wire_is_f32) grant.slot = static_cast<std::uint32_t>(grant.bucket);  // it may hold earlier passes
    slot_of_bucket_[grant.bucket] = grant.slot;
    if (grant.slot != zero::kNoSlot) ++slots_in_use_;
    note_memory();
    phase = pass_phase_.load();
    ++copies_;
  }
  if (grant.slot != zero::kNoSlot) {
    copy_in(grant.bucket, grant.slot, plan_.wire_is_f32 && phase == ZC_PHASE_LAST);
    if (config_.pre_reduce != nullptr) show_pieces(grant.bucket, grant.slot);
  }
  store_word(rank_, words_.arrived(grant.bucket),
             pack_arrival({shared_passes_.load() + 1, static_cast<std::uint32_t>(passes_in_step_.load()),
                           static_cast<std::uint32_t>(phase), grant.slot}));
  const std::lock_guard lock(mutex_);
  if (--copies_ == 0) landed_.notify_all();
  return true;
}

// Fills a slot with this rank's contribution, or adds it to what the slot holds.
void Engine::copy_in(std::size_t bucket_index, std::uint32_t slot, bool accumulate) {
  const shard::Bucket& bucket = layout_.buckets[bucket_index];
  const zc_dtype wire = wire_dtype(plan_, layout_.buffers[bucket.buffer]);
  for (const std::size_t use : bucket.uses) {
    add_parts(use, own(plan_.slot_bytes_at[slot] + layout_.uses[use].bucket_offset * zc_dtype_bytes(wire)), wire,
              accumulate);
    const std::vector<std::size_t>& parts = layout_.uses[use].parts;
    const bool brings =
        std::any_of(parts.begin(), parts.end(), [this](auto part) { return gradients_[part] != nullptr; });
    brought_[use] = brings || (accumulate && brought_[use] != 0);
  }
}

// Before the arrival is announced: nobody else reads the slot yet.
void Engine::show_pieces(std::size_t bucket_index, std::uint32_t slot) const {
  const shard::Bucket& bucket = layout_.buckets[bucket_index];
  for (const std::size_t index : bucket.uses) {
    if (brought_[index] == 0) continue;
    const shard::Use& use = layout_.uses[index];
    zc_gradient_piece piece{};
    piece.struct_size = sizeof piece;
    piece.use = index;
    piece.tensor = use.tensor;
    piece.tensor_offset = use.in_tensor.offset;
    piece.count = use.in_tensor.count;
    piece.dtype = wire_dtype(plan_, layout_.buffers[bucket.buffer]);
    piece.data = own(plan_.slot_bytes_at[slot] + use.bucket_offset * zc_dtype_bytes(piece.dtype));
    config_.pre_reduce(config_.pre_reduce_context, &piece);
  }
}

// The sum of a use's parts (itself and its ties), in list order; absent ones are zeros.
void Engine::add_parts(std::size_t use_index, std::byte* to, zc_dtype wire, bool accumulate) {
  const shard::Use& use = layout_.uses[use_index];
  const zc_dtype dtype = layout_.buffers[layout_.blocks[use.block].buffer].gradient_dtype;
  const std::size_t count = use.in_tensor.count;
  if (use.parts.size() == 1 && !accumulate && dtype == wire) {
    const void* gradient = gradients_[use_index];
    if (gradient == nullptr)
      std::memset(to, 0, count * zc_dtype_bytes(wire));
    else if (gradient != to)
      std::memcpy(to, gradient, count * zc_dtype_bytes(wire));
    return;
  }
  constexpr std::size_t kFewParts = 16, kBlock = 512;
  const auto add = [&](const void* const* inputs, std::size_t inputs_count, void* sum, std::size_t elements,
                       zc_dtype in, zc_dtype out, bool onto) {
    if (zc_reduce_local(inputs, inputs_count, sum, elements, in, out, ZC_OP_SUM, onto) != ZC_OK) record_engine_defect();
  };
  std::array<const void*, kFewParts> inputs{};
  const std::size_t few = std::min(kFewParts, use.parts.size());
  if (few == use.parts.size()) {
    for (std::size_t i = 0; i < few; ++i) inputs[i] = gradients_[use.parts[i]];
    return add(inputs.data(), few, to, count, dtype, wire, accumulate);
  }
  // Many parts: one after the other onto sums in f32, so that there is one order and one rounding.
  std::array<float, kBlock> sums;
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t block = std::min(kBlock, count - first);
    const auto from = [&](std::size_t part) -> const void* {
      const auto* gradient = static_cast<const std::byte*>(gradients_[use.parts[part]]);
      return gradient == nullptr ? nullptr : gradient + first * zc_dtype_bytes(dtype);
    };
    for (std::size_t part = 0; part < use.parts.size(); ++part) {
      const void* input = from(part);
      add(&input, 1, sums.data(), block, dtype, ZC_DTYPE_F32, part != 0);
    }
    const void* sum = sums.data();
    add(&sum, 1, to + first * zc_dtype_bytes(wire), block, ZC_DTYPE_F32, wire, accumulate);
  }
}

// Whether all ranks have brought this bucket for this pass. Disagreement about the phase fails the engine on all ranks.
bool Engine::runnable(std::size_t bucket, std::uint64_t passes, Arrival* arrivals) const {
  for (std::int32_t rank = 0; rank < ranks_; ++rank) {
    arrivals[rank] = unpack_arrival(load_word(rank, words_.arrived(bucket)));
    if (arrivals[rank].passes != passes) return false;
  }
  for (std::int32_t rank = 1; rank < ranks_; ++rank) {
    if (arrivals[rank].phase == arrivals[0].phase && arrivals[rank].step == arrivals[0].step) continue;
    fail_on_all_ranks(bucket + 1);
    return false;
  }
  return true;
}

bool Engine::claim(std::size_t bucket, std::size_t slice, std::uint64_t passes) const {
  const std::int32_t home = words_.home(bucket);
  const std::uint64_t seen = load_word(home, words_.claim(bucket, slice));
  if (claimed_passes(seen) >= passes) return false;
  std::uint64_t before = 0;
  zc_window_compare_swap(window_.get(), home, words_.claim(bucket, slice), seen, pack_claim(passes, rank_), &before);
  return before == seen;
}

// Takes one slice of a complete bucket and reduces it. A slice that was claimed is finished before this returns.
bool Engine::reduce_one() {
  const std::uint64_t passes = shared_passes_.load() + 1;
  const auto ranks = static_cast<std::size_t>(ranks_);
  std::array<Arrival, kMostRanks> arrivals;
  for (std::size_t bucket = 0; bucket < layout_.buckets.size(); ++bucket) {
    if (load_word(words_.home(bucket), words_.completed(bucket)) >= passes ||
        !runnable(bucket, passes, arrivals.data()))
      continue;
    for (std::size_t step = 0; step < ranks; ++step) {
      const std::size_t slice = (static_cast<std::size_t>(rank_) + step) % ranks;  // the own shard first
      if (step != 0 && config_.slices == ZC_SLICES_STATIC) break;
      if (!claim(bucket, slice, passes)) continue;
      // A slice that failed is not counted, so that nobody takes the bucket for reduced.
      if (!reduce_slice(bucket, slice, arrivals.data())) return false;
      (step == 0 ? slices_own_ : slices_helped_).fetch_add(1);
      std::uint64_t before = 0;
      zc_window_add(window_.get(), words_.home(bucket), words_.stored(bucket), 1, &before);
      if (before + 1 == passes * ranks) store_word(words_.home(bucket), words_.completed(bucket), passes);
      return true;
    }
  }
  return false;
}

// Sums what the owner of a slice is to get over all ranks, in rank order, into the owner's memory (stage 0:
// everybody's).
bool Engine::reduce_slice(std::size_t bucket_index, std::size_t slice, const Arrival* arrivals) {
  const shard::Bucket& bucket = layout_.buckets[bucket_index];
  const zc_dtype wire = wire_dtype(plan_, layout_.buffers[bucket.buffer]);
  const std::uint32_t phase = arrivals[0].phase;
  const double passes_in_step =
      plan_.wire_is_f32 || phase != ZC_PHASE_ONLY ? static_cast<double>(passes_in_step_.load()) : 1.0;
  const double divisor =
      config_.gradient_divisor != 0 ? config_.gradient_divisor : static_cast<double>(ranks_) * passes_in_step;
  std::array<std::int64_t, kMostRanks> sources;
  for (const shard::BucketRun& run : bucket.runs) {
    if (run.owner != static_cast<std::int32_t>(slice)) continue;
    for (std::int32_t rank = 0; rank < ranks_; ++rank) {
      const std::uint32_t slot = arrivals[rank].slot;
      sources[static_cast<std::size_t>(rank)] =
          slot == zero::kNoSlot
              ? ZC_NONE
              : static_cast<std::int64_t>(plan_.slot_bytes_at[slot] + run.bucket_offset * zc_dtype_bytes(wire));
    }
    zc_window_reduction reduction{};
    reduction.struct_size = sizeof reduction;
    reduction.source_bytes = sources.data();
    reduction.count = run.count;
    reduction.dtype = wire;
    reduction.output_dtype = ZC_DTYPE_F32;
    reduction.accumulate = !plan_.wire_is_f32 && adds_to_shards(phase);
    reduction.divisor = ends_step(phase) && divisor != 1 ? divisor : 0;
    reduction.destination = plan_.full_gradients ? ZC_NONE : run.owner;
    reduction.destination_bytes = gradient_bytes_at(run.use, run.owner, run.use_offset);
    if (zc_window_reduce(window_.get(), &reduction) == ZC_OK) continue;
    record_engine_defect();
    return false;
  }
  return true;
}

}  // namespace zerocomm::engine
