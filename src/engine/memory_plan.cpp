#include "engine/memory_plan.hpp"

#include "base/math.hpp"

#include <algorithm>

namespace zerocomm::engine {
namespace {

using shard::kNoIndex;

// Hands out consecutive aligned places.
class Places {
 public:
  explicit Places(std::size_t alignment_bytes) : alignment_bytes_(std::max<std::size_t>(alignment_bytes, 64)) {}
  std::size_t take(std::size_t bytes) {
    const std::size_t at = round_up(end_, alignment_bytes_);
    end_ = checked_add(at, bytes);
    return at;
  }
  std::size_t end() const { return end_; }

 private:
  std::size_t alignment_bytes_;
  std::size_t end_ = 0;
};

// Bytes of the units that acquiring `unit` needs gathered, persistent ones not counted.
std::size_t needed_bytes(const shard::Layout& layout, const shard::Unit& unit) {
  std::size_t bytes = 0;
  for (const std::size_t need : unit.needs)
    if (!layout.units[need].persistent) bytes = checked_add(bytes, layout.units[need].gathered_bytes);
  return bytes;
}

void plan_states(const shard::Layout& layout, const Kind& kind, bool own_shards, MemoryPlan& plan, Places& places) {
  const auto ranks = static_cast<std::size_t>(layout.ranks);
  for (const shard::Buffer& buffer : layout.buffers) {
    const std::size_t full_count = checked_mul(ranks, buffer.shard_count);
    const std::size_t parameter_bytes =
        !kind.parameters
            ? 0
            : checked_mul(plan.full_parameters ? full_count : buffer.shard_count, zc_dtype_bytes(buffer.dtype));
    plan.parameter_bytes_at.push_back(plan.parameters_apart ? 0 : places.take(parameter_bytes));
    (own_shards ? plan.ledger.parameter_bytes : plan.caller_parameter_bytes) += parameter_bytes;

    const bool own_gradients = buffer.trainable && !(plan.reduce_in_place && wire_dtype(plan, buffer) == ZC_DTYPE_F32);
    const std::size_t gradient_bytes =
        checked_mul(plan.full_gradients ? full_count : buffer.shard_count, sizeof(float));
    plan.gradient_bytes_at.push_back(own_gradients ? places.take(gradient_bytes) : kNoIndex);
    if (own_gradients) plan.ledger.gradient_bytes += gradient_bytes;

    const bool master = kind.parameters && has_master(buffer);
    const std::size_t master_bytes =
        checked_mul(layout.stage == ZC_STAGE_0 ? full_count : buffer.shard_count, sizeof(float));
    plan.master_bytes_at.push_back(master ? places.take(master_bytes) : kNoIndex);
    if (master) plan.ledger.master_bytes += master_bytes;
  }
}

void plan_slots(const shard::Layout& layout, std::int32_t wanted_slots, MemoryPlan& plan, Places& places) {
  const auto bytes_of = [&](const shard::Bucket& bucket) {
    return checked_mul(bucket.padded_count, zc_dtype_bytes(wire_dtype(plan, layout.buffers[bucket.buffer])));
  };
  if (plan.own_slots) {
    plan.slots = static_cast<std::uint32_t>(layout.buckets.size());
    for (const shard::Bucket& bucket : layout.buckets) {
      plan.slot_bytes_at.push_back(places.take(bytes_of(bucket)));
      plan.ledger.gradient_bytes += bytes_of(bucket);
    }
    return;
  }
  std::size_t largest_bytes = 0;
  for (const shard::Bucket& bucket : layout.buckets) largest_bytes = std::max(largest_bytes, bytes_of(bucket));
  plan.slots =
      static_cast<std::uint32_t>(std::min<std::size_t>(static_cast<std::size_t>(wanted_slots), layout.buckets.size()));
  for (std::uint32_t slot = 0; slot < plan.slots; ++slot) plan.slot_bytes_at.push_back(places.take(largest_bytes));
  plan.ledger.slot_bytes = plan.slots * largest_bytes;
}

void plan_budget(const shard::Layout& layout, const zc_zero_config& config, MemoryPlan& plan) {
  std::size_t all_bytes = 0, most_needed_bytes = 0;
  const bool gathers = !plan.full_parameters && !plan.views;
  if (gathers) {
    for (const shard::Unit& unit : layout.units) {
      std::size_t& group_bytes = unit.persistent ? plan.persistent_bytes : all_bytes;
      group_bytes = checked_add(group_bytes, round_up(unit.gathered_bytes, gathered_alignment_bytes(layout)));
      most_needed_bytes = std::max(most_needed_bytes, needed_bytes(layout, unit));
    }
  }
  plan.max_held_bytes = config.max_held_bytes != 0 ? config.max_held_bytes : most_needed_bytes;
  const std::size_t fixed_bytes = plan.ledger.slot_bytes + plan.persistent_bytes;
  const std::size_t least_bytes = fixed_bytes + (gathers ? std::max(plan.max_held_bytes, most_needed_bytes) : 0);
  plan.budget_bytes = config.budget_bytes != 0 ? config.budget_bytes : std::max(least_bytes, fixed_bytes + all_bytes);
  ZC_REQUIRE(plan.budget_bytes >= least_bytes, ZC_BUDGET,
             "a budget of %zu bytes was given, and at least %zu are needed: %zu for %u gradient slots, %zu for "
             "persistent units, "
             "%zu for units held at once",
             plan.budget_bytes, least_bytes, plan.ledger.slot_bytes, plan.slots, plan.persistent_bytes,
             least_bytes - fixed_bytes);
  ZC_REQUIRE(!gathers || plan.max_held_bytes >= most_needed_bytes, ZC_BUDGET,
             "max_held_bytes is %zu, and one unit needs %zu", plan.max_held_bytes, most_needed_bytes);
  plan.arena_bytes = gathers ? std::min(plan.budget_bytes - fixed_bytes, std::max(all_bytes, plan.max_held_bytes)) : 0;
  plan.gathered_bytes = plan.persistent_bytes + plan.arena_bytes;
  const bool caller = config.gather_allocator.allocate != nullptr;
  (caller ? plan.ledger.caller_gather_bytes : plan.ledger.gather_bytes) = plan.gathered_bytes;
}

void check_views(const shard::Layout& layout, const zc_zero_config& config, const Kind& kind, bool own_shards) {
  if (config.shared_views == 0) return;
  const bool flat = layout.placement == ZC_PLACEMENT_FLAT;
  ZC_REQUIRE(layout.stage == ZC_STAGE_3 && flat && own_shards, ZC_UNSUPPORTED,
             "%s_config.shared_views needs stage 3, flat placement and shards of the library; this is stage %d, %s "
             "placement, shards of the %s",
             kind.prefix, layout.stage == ZC_STAGE_0 ? 0 : static_cast<int>(layout.stage), flat ? "flat" : "per-unit",
             own_shards ? "library" : "caller");
  const char* const idle = config.max_held_bytes != 0                    ? "max_held_bytes"
                           : config.prefetch != 0                        ? "prefetch"
                           : config.drop_released != 0                   ? "drop_released"
                           : config.gather_allocator.allocate != nullptr ? "gather_allocator"
                                                                         : nullptr;
  ZC_REQUIRE(idle == nullptr, ZC_ARGUMENT, "%s_config.%s is about gathered units, and with shared_views there are none",
             kind.prefix, idle);
}

}  // namespace

std::size_t gathered_alignment_bytes(const shard::Layout& layout) {
  return std::max<std::size_t>(layout.alignment_bytes, 8);
}

zc_dtype wire_dtype(const MemoryPlan& plan, const shard::Buffer& buffer) {
  return plan.wire_is_f32 ? ZC_DTYPE_F32 : buffer.gradient_dtype;
}

bool has_master(const shard::Buffer& buffer) { return buffer.trainable && buffer.dtype != ZC_DTYPE_F32; }

MemoryPlan plan_memory(const shard::Layout& layout, const zc_zero_config& config, const Kind& kind, bool own_shards) {
  for (const shard::Buffer& buffer : layout.buffers)
    ZC_REQUIRE(!buffer.trainable || buffer.shard_gradient_dtype == ZC_DTYPE_F32, ZC_UNSUPPORTED,
               "shard gradients of dtype %s: engines reduce into f32", zc_dtype_name(buffer.shard_gradient_dtype));
  check_views(layout, config, kind, own_shards);
  MemoryPlan plan;
  plan.views = config.shared_views != 0;
  const bool add_first = config.accumulation == ZC_ACCUMULATE_FIRST && config.micro_steps > 1;
  plan.full_parameters = layout.stage != ZC_STAGE_3;
  plan.parameters_apart = !own_shards || (layout.placement == ZC_PLACEMENT_FLAT && !plan.full_parameters);
  plan.full_gradients = layout.stage == ZC_STAGE_0;
  plan.own_slots = layout.stage == ZC_STAGE_1 || add_first;
  plan.wire_is_f32 = add_first;
  plan.reduce_in_place = layout.stage == ZC_STAGE_1 && (add_first || config.micro_steps == 1);
  Places places(layout.alignment_bytes);
  plan_states(layout, kind, own_shards, plan, places);
  plan_slots(layout, config.gradient_slots, plan, places);
  plan.window_bytes = places.end();
  plan_budget(layout, config, plan);
  return plan;
}

}  // namespace zerocomm::engine
