// Setting an engine up: options, memory, agreement of the ranks.
#include "base/config.hpp"
#include "base/math.hpp"
#include "engine/engine.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace zerocomm::engine {
namespace {

void require_ok(zc_status status) {
  if (status != ZC_OK) throw Error(status, zc_last_error());
}

std::int32_t rank_of(const zc_comm* comm) {
  std::int32_t rank = 0;
  require_ok(zc_comm_rank(comm, &rank));
  return rank;
}

std::int32_t size_of(const zc_comm* comm) {
  std::int32_t ranks = 0;
  require_ok(zc_comm_size(comm, &ranks));
  return ranks;
}

std::int64_t deadline_of(const zc_comm* comm) {
  zc_comm_info info{};
  info.struct_size = sizeof info;
  require_ok(zc_comm_get_info(comm, &info));
  return info.deadline_ns;
}

std::unique_ptr<zc_window, Release> make_window(zc_comm* comm, const zc_window_config& config) {
  zc_window* made = nullptr;
  require_ok(zc_window_create(comm, &config, &made));
  return std::unique_ptr<zc_window, Release>(made);
}

std::byte* part_of(zc_window* window, std::int32_t rank) {
  void* memory = nullptr;
  std::size_t bytes = 0;
  require_ok(zc_window_ptr(window, rank, &memory, &bytes));
  return static_cast<std::byte*>(memory);
}

zero::ReducerConfig reducer_config(const zc_zero_config& config, const MemoryPlan& plan) {
  zero::ReducerConfig result;
  result.slots = plan.slots > 0 ? plan.slots : 1;
  result.own_slots = plan.own_slots;
  result.launch_at_end = config.launch == ZC_LAUNCH_END;
  result.absent_is_zero = config.absent == ZC_ABSENT_ZERO;
  return result;
}

zero::FetcherConfig fetcher_config(const shard::Layout& layout, const zc_zero_config& config, const MemoryPlan& plan) {
  zero::FetcherConfig result;
  result.arena_bytes = plan.views ? SIZE_MAX : plan.arena_bytes;  // nothing is placed in it
  result.max_held_bytes = plan.max_held_bytes;
  result.alignment_bytes = gathered_alignment_bytes(layout);
  result.prefetch = config.prefetch;
  result.drop_released = config.drop_released != 0;
  return result;
}

template <class Enumerator>
void check_choice(Enumerator& value, Enumerator fallback, int most, const Kind& kind, const char* name) {
  ZC_REQUIRE(static_cast<int>(value) >= 0 && static_cast<int>(value) <= most, ZC_ARGUMENT,
             "%s_config.%s is %d: not a value of its list", kind.prefix, name, static_cast<int>(value));
  if (static_cast<int>(value) == 0) value = fallback;
}

// Who brings the memory of a fetcher's shards.
enum class Shards : std::uint8_t { library, caller, one_missing };
Shards who_brings(const shard::Layout& layout, const void* const* shards) {
  if (shards == nullptr) return Shards::library;
  for (std::size_t b = 0; b < layout.buffers.size(); ++b)
    if (shards[b] == nullptr && layout.buffers[b].shard_count != 0) return Shards::one_missing;
  return Shards::caller;
}

// What must be equal on all ranks, as numbers with their names.
struct Agreed {
  const char* name;
  std::uint64_t value;
};
constexpr std::size_t kAgreed = 16;
std::array<Agreed, kAgreed> agreed_values(const Kind& kind, std::uint64_t layout_hash, const zc_zero_config& config,
                                          Shards shards) {
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  return {{{"the object (1 a reducer, 2 a fetcher, 3 an engine)", number(kind.gradients) + 2 * number(kind.parameters)},
           {"layout hash", layout_hash},
           {"shards (0 the library's, 1 the caller's, 2 one is NULL)", number(shards)},
           {"budget_bytes", config.budget_bytes},
           {"max_held_bytes", config.max_held_bytes},
           {"gradient_slots", number(config.gradient_slots)},
           {"micro_steps", number(config.micro_steps)},
           {"accumulation", number(config.accumulation)},
           {"absent", number(config.absent)},
           {"launch", number(config.launch)},
           {"slices", number(config.slices)},
           {"prefetch", number(config.prefetch)},
           {"drop_released", number(config.drop_released)},
           {"poison", number(config.poison)},
           {"shared_views", number(config.shared_views)},
           {"gradient_divisor", std::bit_cast<std::uint64_t>(config.gradient_divisor)}}};
}

}  // namespace

zc_zero_config complete_config(const zc_zero_config& config, const Kind& kind) {
  zc_zero_config result = config;
  check_choice(result.accumulation, ZC_ACCUMULATE_REDUCE_EACH, ZC_ACCUMULATE_FIRST, kind, "accumulation");
  check_choice(result.absent, ZC_ABSENT_ERROR, ZC_ABSENT_ZERO, kind, "absent");
  check_choice(result.launch, ZC_LAUNCH_COMPLETE, ZC_LAUNCH_END, kind, "launch");
  check_choice(result.slices, ZC_SLICES_CLAIMED, ZC_SLICES_STATIC, kind, "slices");
  ZC_REQUIRE(result.gradient_slots >= 0 && result.gradient_slots < 0xffff, ZC_ARGUMENT,
             "%s_config.gradient_slots is %d", kind.prefix, result.gradient_slots);
  ZC_REQUIRE(result.micro_steps >= 0, ZC_ARGUMENT, "%s_config.micro_steps is %d", kind.prefix, result.micro_steps);
  ZC_REQUIRE(result.prefetch >= ZC_NONE, ZC_ARGUMENT, "%s_config.prefetch is %d", kind.prefix, result.prefetch);
  ZC_REQUIRE(std::isfinite(result.gradient_divisor) && result.gradient_divisor >= 0, ZC_ARGUMENT,
             "%s_config.gradient_divisor is %g", kind.prefix, result.gradient_divisor);
  ZC_REQUIRE((result.gather_allocator.allocate != nullptr) == (result.gather_allocator.deallocate != nullptr),
             ZC_ARGUMENT, "%s_config.gather_allocator has one of its two functions", kind.prefix);
  if (result.gradient_slots == 0) result.gradient_slots = 2;
  if (result.micro_steps == 0) result.micro_steps = 1;
  if (result.poison == 0) result.poison = static_cast<std::int32_t>(integer_variable("ZC_POISON", 0, 1).value_or(0));
  if (result.poison == ZC_NONE) result.poison = 0;
  return result;
}

Engine::Engine(zc_comm* comm, const shard::Layout& layout, const zc_zero_config& config, const Kind& kind,
               void* const* shards)
    : comm_(comm),
      kind_(kind),
      layout_(layout_of(kind, layout)),
      config_(config),
      rank_(rank_of(comm)),
      ranks_(size_of(comm)),
      deadline_ns_(config.deadline_ns != 0 ? config.deadline_ns : deadline_of(comm)),
      plan_(agreed_plan(layout, shards)),
      words_(layout_),
      gathered_memory_(comm, plan_.gathered_bytes, gathered_alignment_bytes(layout_), config_.gather_allocator,
                       control()),
      publication_(layout_.stage),
      reducer_(layout_, reducer_config(config_, plan_)),
      fetcher_(layout_, fetcher_config(layout_, config_, plan_)),
      holds_(layout_.units.size(), 0),
      failed_fetches_(layout_.units.size(), 0),
      gradients_(layout_.uses.size(), nullptr),
      slot_of_bucket_(layout_.buckets.size(), zero::kNoSlot),
      brought_(layout_.uses.size(), 0) {
  make_windows(shards);
  fill(gathered_memory_.data(), plan_.gathered_bytes);
  for (std::size_t slot = 0; slot < plan_.slot_bytes_at.size() && !plan_.own_slots; ++slot)
    fill(own(plan_.slot_bytes_at[slot]), plan_.ledger.slot_bytes / plan_.slots);
  list_pieces();
  count_logical_bytes();
  zc_progress* progress = nullptr;
  require_ok(zc_progress_add(
      comm_, [](void* engine) { static_cast<Engine*>(engine)->pump(); }, this, &progress));
  progress_.reset(progress);
}

Engine::~Engine() = default;

void Engine::make_windows(void* const* shards) {
  zc_window_config config{};
  config.struct_size = sizeof config;
  config.bytes = plan_.window_bytes;
  config.word_count = words_.count();
  window_ = make_window(comm_, config);
  own_memory_ = part_of(window_.get(), rank_);
  parameters_.assign(layout_.buffers.size(), ParameterHome{window_.get(), own_memory_, nullptr});
  if (!plan_.parameters_apart) return;
  config.word_count = 0;
  config.contiguous = shards == nullptr;  // flat placement: the whole buffer in one run
  for (std::size_t b = 0; b < layout_.buffers.size(); ++b) {
    config.bytes = layout_.buffers[b].shard_count * zc_dtype_bytes(layout_.buffers[b].dtype);
    if (config.bytes == 0) continue;
    if (shards != nullptr) config.memory = shards[b];
    windows_apart_.push_back(make_window(comm_, config));
    zc_window* const window = windows_apart_.back().get();
    parameters_[b] = {window, part_of(window, rank_), plan_.views ? part_of(window, 0) : nullptr};
  }
}

// Before anything that can fail on one rank alone because its arguments are others: such ranks are told of the
// difference.
MemoryPlan Engine::agreed_plan(const shard::Layout& layout, void* const* shards) const {
  check_agreement(layout.hash, shards);
  ZC_REQUIRE(who_brings(layout_, shards) != Shards::one_missing, ZC_ARGUMENT,
             "rank %d: %s_config.shards has NULL for a buffer that is not empty", rank_, kind_.prefix);
  ZC_REQUIRE(layout_.ranks == ranks_, ZC_ARGUMENT, "rank %d: the layout is for %d ranks, the communicator has %d",
             rank_, layout_.ranks, ranks_);
  return plan_memory(layout_, config_, kind_, shards == nullptr);
}

void Engine::check_agreement(std::uint64_t layout_hash, const void* const* shards) const {
  const auto mine = agreed_values(kind_, layout_hash, config_, who_brings(layout_, shards));
  std::array<std::uint64_t, kAgreed> values{};
  for (std::size_t i = 0; i < kAgreed; ++i) values[i] = mine[i].value;
  std::vector<std::uint64_t> all(kAgreed * static_cast<std::size_t>(ranks_));
  const zc_coll_options options = control();
  require_ok(zc_all_gather(comm_, values.data(), all.data(), kAgreed, ZC_DTYPE_I64, &options));
  for (std::int32_t rank = 1; rank < ranks_; ++rank)
    for (std::size_t i = 0; i < kAgreed; ++i) {
      const std::uint64_t theirs = all[static_cast<std::size_t>(rank) * kAgreed + i];
      ZC_REQUIRE(theirs == all[i], ZC_MISMATCH, "%s_create: %s is %llu on rank 0 and %llu on rank %d", kind_.prefix,
                 mine[i].name, static_cast<unsigned long long>(all[i]), static_cast<unsigned long long>(theirs), rank);
    }
}

void Engine::list_pieces() {
  const auto add = [&](std::size_t use_index, std::size_t use_offset, std::size_t count) {
    const shard::Use& use = layout_.uses[use_index];
    const shard::Block& block = layout_.blocks[use.block];
    zc_zero_piece piece{};
    piece.tensor = use.tensor;
    piece.tensor_offset = use.in_tensor.offset + use_offset;
    piece.count = count;
    piece.buffer = block.buffer;
    piece.state_offset = state_count_;
    piece.gradient = gradient_at(use_index, use_offset);
    if (kind_.parameters) piece.parameter = own_parameter(block, use.block_offset + use_offset);
    piece.master = kind_.parameters && has_master(layout_.buffers[block.buffer]) ? master_at(use_index, use_offset)
                                                                                 : static_cast<float*>(piece.parameter);
    pieces_.push_back(piece);
    state_count_ += count;
  };
  for (std::size_t index = 0; index < layout_.uses.size(); ++index) {
    const shard::Use& use = layout_.uses[index];
    if (use.stored != index || use.in_tensor.count == 0) continue;
    const shard::Block& block = layout_.blocks[use.block];
    if (!layout_.buffers[block.buffer].trainable) continue;
    if (layout_.stage == ZC_STAGE_0) {
      add(index, 0, use.in_tensor.count);
    } else if (const Part part = owned_part(use, rank_); part.count != 0) {
      add(index, part.offset, part.count);
    }
  }
}

void Engine::count_logical_bytes() {
  unit_logical_bytes_.assign(layout_.units.size(), 0);
  for (std::size_t index = 0; index < layout_.uses.size(); ++index) {
    const shard::Use& use = layout_.uses[index];
    if (use.stored != index || use.in_tensor.count == 0) continue;
    const shard::Buffer& buffer = layout_.buffers[layout_.blocks[use.block].buffer];
    const std::size_t owned_count = owned_part(use, rank_).count, other_count = use.in_tensor.count - owned_count;
    unit_logical_bytes_[use.unit] += other_count * zc_dtype_bytes(buffer.dtype);
    if (!buffer.trainable) continue;
    publish_logical_bytes_ += other_count * zc_dtype_bytes(buffer.dtype);
    reduce_logical_bytes_ +=
        static_cast<std::size_t>(ranks_ - 1) * owned_count * zc_dtype_bytes(wire_dtype(plan_, buffer));
    if (plan_.full_gradients) reduce_logical_bytes_ += other_count * sizeof(float);
  }
}

void Engine::fill(void* memory, std::size_t bytes) const {
  if (config_.poison != 0 && bytes != 0) std::memset(memory, 0xff, bytes);  // NaN in every float type
}

}  // namespace zerocomm::engine
