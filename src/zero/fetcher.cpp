// Residency of gathered units: pins, places, victims, fetching ahead. docs/protocol.md, "Fetching", says what holds.
#include "zero/fetcher.hpp"

#include "base/check.hpp"
#include "base/math.hpp"

#include <algorithm>
#include <limits>

namespace zerocomm::zero {
namespace {

constexpr std::size_t kMostNames = 8;          // passes with a trace of their own
constexpr std::size_t kMostVisitsPerUnit = 8;  // recorded in one pass, on average
constexpr std::uint64_t kNotExpected = std::numeric_limits<std::uint64_t>::max() / 2;

std::size_t most_visits(const shard::Layout& layout) { return kMostVisitsPerUnit * layout.units.size() + 64; }

// Bytes that the needs of a unit take when they lie end to end.
std::size_t packed_bytes(const shard::Layout& layout, const shard::Unit& unit, std::size_t alignment_bytes) {
  std::size_t end = 0;
  for (const std::size_t need : unit.needs)
    if (const shard::Unit& other = layout.units[need]; !other.persistent && other.gathered_bytes > 0)
      end = checked_add(round_up(end, alignment_bytes), other.gathered_bytes);
  return end;
}

std::size_t bytes_to_hold(const shard::Layout& layout, const shard::Unit& unit) {
  return packed_bytes(layout, unit, 1);
}

}  // namespace

std::size_t least_arena_bytes(const shard::Layout& layout, std::size_t alignment_bytes) {
  std::size_t least = 0;
  for (const shard::Unit& unit : layout.units) least = std::max(least, packed_bytes(layout, unit, alignment_bytes));
  return least;
}

Fetcher::Fetcher(const shard::Layout& layout, const FetcherConfig& config)
    : layout_(&layout),
      config_(config),
      units_(layout.units.size()),
      traces_(kMostNames, most_visits(layout)),
      distances_(layout.units.size()) {
  if (config_.max_held_bytes == 0) config_.max_held_bytes = config_.arena_bytes;
  std::size_t persistent_end = 0;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    const shard::Unit& unit = layout.units[u];
    if (layout.stage == ZC_STAGE_3) {
      const std::size_t room = packed_bytes(layout, unit, config_.alignment_bytes);
      ZC_REQUIRE(room <= config_.arena_bytes, ZC_BUDGET,
                 "unit '%s' and the owners of its ties need %zu bytes gathered at once, the budget leaves %zu",
                 unit.name.c_str(), room, config_.arena_bytes);
      ZC_REQUIRE(bytes_to_hold(layout, unit) <= config_.max_held_bytes, ZC_BUDGET,
                 "unit '%s' and the owners of its ties hold %zu bytes, max_held_bytes allows %zu", unit.name.c_str(),
                 bytes_to_hold(layout, unit), config_.max_held_bytes);
    }
    units_[u].bytes = unit.gathered_bytes;
    units_[u].persistent = unit.persistent;
    if (units_[u].bytes == 0) units_[u].state = State::resident;
    if (!unit.persistent) continue;
    units_[u].offset_bytes = round_up(persistent_end, config_.alignment_bytes);
    persistent_end = checked_add(units_[u].offset_bytes, unit.gathered_bytes);
  }
  placed_.reserve(units_.size());
  blocks_.reserve(units_.size());
  dropped_.reserve(units_.size());
  dropped_offset_bytes_.reserve(units_.size());
}

void Fetcher::begin_pass(std::string_view name) {
  trace_ = &traces_.find(name);
  trace_->begin();
}

void Fetcher::end_pass() {
  if (trace_ != nullptr) trace_->end();
  trace_ = nullptr;
  for (UnitState& unit : units_) unit.hinted = false;
}

void Fetcher::visit(std::size_t unit) {
  if (trace_ != nullptr) trace_->visit(unit);
}

// Sets distances_: 1 for what the next expected visit needs, and so on to the end of the pass and over to its
// beginning, as if it came again. What the pass does not use comes after all that, the least recently used last.
void Fetcher::measure_distances() {
  for (std::size_t u = 0; u < units_.size(); ++u) distances_[u] = kNotExpected + (clock_ - units_[u].last_use);
  if (trace_ == nullptr) return;
  const std::span<const std::uint32_t> order = trace_->order();
  for (std::size_t steps = order.size(); steps-- > 0;) {
    const std::size_t visited = order[(trace_->position() + steps) % order.size()];
    for (const std::size_t need : layout_->units[visited].needs) distances_[need] = steps + 1;
  }
}

bool Fetcher::must_stay(const UnitState& unit, Purpose purpose) const {
  if (unit.holds != 0 || unit.state == State::fetching) return true;
  return (purpose == Purpose::follow_trace && unit.hinted) || (purpose == Purpose::hint && unit.ahead);
}

std::span<const ArenaBlock> Fetcher::list_blocks(Purpose purpose) {
  blocks_.clear();
  for (const std::size_t u : placed_)
    blocks_.push_back({units_[u].offset_bytes, units_[u].bytes, must_stay(units_[u], purpose) ? 0 : distances_[u], u});
  return blocks_;
}

// Makes room for an absent unit and marks it as fetching there. False: there is none, and nothing has changed.
bool Fetcher::place(std::size_t unit, Purpose purpose, Plan& plan) {
  UnitState& state = units_[unit];
  if (!state.persistent) {
    std::uint64_t floor = 0;  // an acquire may drop whatever need not stay
    if (purpose != Purpose::acquire) floor = distances_[unit] < kNotExpected ? distances_[unit] : 1;
    const std::optional<std::size_t> offset =
        find_room(list_blocks(purpose), config_.arena_bytes, state.bytes, config_.alignment_bytes, floor);
    if (!offset.has_value()) return false;
    for (const ArenaBlock& block : blocks_) {
      if (block.offset_bytes >= *offset + state.bytes || block.offset_bytes + block.bytes <= *offset) continue;
      ++counters_.evictions;
      drop(block.unit, plan);
    }
    state.offset_bytes = *offset;
    const auto above = [this](std::size_t bytes, std::size_t u) { return bytes < units_[u].offset_bytes; };
    placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), *offset, above), unit);
  }
  state.state = State::fetching;
  ++fetching_units_;
  resident_bytes_ += state.bytes;
  counters_.peak_bytes = std::max(counters_.peak_bytes, resident_bytes_);
  plan.need = Need::fetch;
  plan.offset_bytes = state.offset_bytes;
  return true;
}

void Fetcher::forget(std::size_t unit) {
  UnitState& state = units_[unit];
  state.state = State::absent;
  state.ahead = state.hinted = false;
  resident_bytes_ -= state.bytes;
  if (!state.persistent) placed_.erase(std::find(placed_.begin(), placed_.end(), unit));
}

void Fetcher::drop(std::size_t unit, Plan& plan) {
  if (units_[unit].ahead) ++counters_.wasted;
  dropped_.push_back(unit);
  dropped_offset_bytes_.push_back(units_[unit].offset_bytes);
  forget(unit);
  plan.dropped = dropped_;
  plan.dropped_offset_bytes = dropped_offset_bytes_;
}

Plan Fetcher::start_plan(std::size_t unit) {
  dropped_.clear();
  dropped_offset_bytes_.clear();
  Plan plan;
  plan.unit = unit;
  plan.offset_bytes = units_[unit].offset_bytes;
  return plan;
}

void Fetcher::pin(std::size_t unit) {
  UnitState& state = units_[unit];
  if (state.holds++ == 0) {
    ++held_units_;
    if (!state.persistent) held_bytes_ += state.bytes;
  }
  state.ahead = state.hinted = false;
  state.last_use = ++clock_;
}

// Why no room was found for an acquire: fetches under way, which end by themselves, or what is held.
Plan Fetcher::refuse_room(std::size_t unit) {
  Plan plan;
  plan.unit = unit;
  if (fetching_units_ != 0) {
    blocks_.clear();
    for (const std::size_t u : placed_)
      if (units_[u].holds != 0) blocks_.push_back({units_[u].offset_bytes, units_[u].bytes, 0, u});
    if (find_room(blocks_, config_.arena_bytes, units_[unit].bytes, config_.alignment_bytes, 0).has_value()) {
      plan.need = Need::retry;
      return plan;
    }
  }
  plan.status = ZC_BUDGET;
  plan.text =
      format("unit '%s' needs %zu bytes in one piece; %zu units that hold %zu bytes of %zu leave no such room",
             layout_->units[unit].name.c_str(), units_[unit].bytes, held_units_, held_bytes_, config_.arena_bytes);
  return plan;
}

Plan Fetcher::acquire(std::size_t unit) {
  if (unit >= units_.size())
    return {ZC_ARGUMENT, format("unit %zu of a layout with %zu units", unit, units_.size()), {}, unit, 0, {}, {}};
  const UnitState& state = units_[unit];
  Plan plan = start_plan(unit);
  if (state.holds == 0 && !state.persistent && held_bytes_ + state.bytes > config_.max_held_bytes) {
    plan.status = ZC_BUDGET;
    plan.text = format("unit '%s' needs %zu bytes; %zu bytes are held, and max_held_bytes is %zu",
                       layout_->units[unit].name.c_str(), state.bytes, held_bytes_, config_.max_held_bytes);
    return plan;
  }
  if (state.state == State::resident) {
    ++counters_.hits;
  } else if (state.state == State::fetching) {
    ++counters_.late_hits;
    plan.need = Need::busy;
  } else {
    measure_distances();
    if (!place(unit, Purpose::acquire, plan)) return refuse_room(unit);
    ++counters_.misses;
  }
  pin(unit);
  return plan;
}

void Fetcher::landed(std::size_t unit, bool ok) {
  UnitState& state = units_[unit];
  ZC_ASSERT(state.state == State::fetching);
  --fetching_units_;
  if (ok) {
    state.state = State::resident;
    return;
  }
  if (state.holds != 0) {
    --held_units_;
    if (!state.persistent) held_bytes_ -= state.bytes;
    state.holds = 0;
  }
  forget(unit);
}

Plan Fetcher::release(std::size_t unit) {
  if (unit >= units_.size())
    return {ZC_ARGUMENT, format("unit %zu of a layout with %zu units", unit, units_.size()), {}, unit, 0, {}, {}};
  UnitState& state = units_[unit];
  Plan plan = start_plan(unit);
  if (state.holds == 0) {
    plan.status = ZC_STATE;
    plan.text = format("unit '%s' is not held", layout_->units[unit].name.c_str());
    return plan;
  }
  state.last_use = ++clock_;
  if (--state.holds != 0) return plan;
  --held_units_;
  if (!state.persistent) held_bytes_ -= state.bytes;
  if (config_.drop_released && state.state == State::resident && !state.persistent && state.bytes > 0) drop(unit, plan);
  return plan;
}

std::optional<Plan> Fetcher::start_ahead(std::size_t unit, Purpose purpose) {
  Plan plan = start_plan(unit);
  if (!place(unit, purpose, plan)) return std::nullopt;
  ++counters_.prefetches;
  units_[unit].ahead = true;
  units_[unit].hinted = purpose == Purpose::hint;
  units_[unit].last_use = ++clock_;
  return plan;
}

std::optional<Plan> Fetcher::prefetch() {
  if (trace_ == nullptr || config_.prefetch < 0) return std::nullopt;
  measure_distances();
  const std::size_t most = config_.prefetch > 0 ? static_cast<std::size_t>(config_.prefetch) : units_.size();
  const std::span<const std::uint32_t> ahead = trace_->order().subspan(trace_->position());
  std::size_t ahead_count = 0;
  for (std::size_t steps = 0; steps < ahead.size() && ahead_count < most; ++steps) {
    for (const std::size_t need : layout_->units[ahead[steps]].needs) {
      if (distances_[need] != steps + 1) continue;  // seen before
      // What does not fit now stops the search: a unit behind it would only take its room.
      if (units_[need].state == State::absent) return start_ahead(need, Purpose::follow_trace);
      if (units_[need].ahead && ++ahead_count == most) break;
    }
  }
  return std::nullopt;
}

std::optional<Plan> Fetcher::prefetch(std::size_t unit) {
  if (unit >= units_.size() || units_[unit].state != State::absent) return std::nullopt;
  measure_distances();
  return start_ahead(unit, Purpose::hint);
}

Plan Fetcher::drop_all() {
  Plan plan;
  if (held_units_ != 0 || fetching_units_ != 0) {
    plan.status = ZC_STATE;
    plan.text = format("%zu units are held and %zu are being fetched", held_units_, fetching_units_);
    return plan;
  }
  dropped_.clear();
  dropped_offset_bytes_.clear();
  for (std::size_t u = 0; u < units_.size(); ++u)
    if (units_[u].state == State::resident && units_[u].bytes > 0) drop(u, plan);
  return plan;
}

Plan Fetcher::drop_unheld() {
  Plan plan;
  dropped_.clear();
  dropped_offset_bytes_.clear();
  for (std::size_t u = 0; u < units_.size(); ++u) {
    const UnitState& state = units_[u];
    if (state.state != State::resident || state.holds != 0 || state.persistent || state.bytes == 0) continue;
    ++counters_.evictions;
    drop(u, plan);
  }
  return plan;
}

bool Fetcher::resident(std::size_t unit) const { return units_[unit].state == State::resident; }

std::size_t Fetcher::offset_bytes(std::size_t unit) const { return units_[unit].offset_bytes; }

}  // namespace zerocomm::zero
