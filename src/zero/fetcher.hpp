// Which units of stage 3 are gathered, where in the arena, what to drop and what to fetch ahead. Pure.
//
// The arena has a fixed number of bytes; units are placed in it first-fit at aligned offsets. A unit is absent,
// fetching, or resident; a resident unit that nobody holds may be dropped when room is needed, farthest next use first
// (by the recorded order of the pass, else least recently used). Persistent units live outside the arena and are never
// dropped but by drop_all. A unit of no bytes is always resident. Every named pass has its own recorded order; after a
// surprise the position re-synchronises at the next match instead of throwing the record away. Nothing is allocated
// after the constructor but the texts of errors.
#pragma once

#include "shard/layout.hpp"
#include "zero/arena.hpp"
#include "zero/trace.hpp"

#include <zerocomm/zero.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zerocomm::zero {

struct FetcherConfig {
  std::size_t arena_bytes = 0;
  std::size_t max_held_bytes = 0;  // persistent units do not count; 0: the arena
  std::size_t alignment_bytes = 64;
  std::int32_t prefetch = 0;  // most units ahead; negative: none; 0: as the arena allows
  bool drop_released = false;
};

enum class Need : std::uint8_t {
  resident,  // it is there
  fetch,     // the caller fetches it now to `offset_bytes`, then calls landed
  busy,      // another thread is fetching it: wait for landed
  retry,     // other threads' fetches take the room: wait until one has landed, then acquire again; nothing is pinned
};

struct Plan {
  zc_status status = ZC_OK;
  std::string text;
  Need need = Need::resident;
  std::size_t unit = 0;
  std::size_t offset_bytes = 0;  // in the arena; for persistent units in their own memory
  // Units dropped to make room (for poison and statistics) with their last places; valid until the fetcher's next call.
  std::span<const std::size_t> dropped;
  std::span<const std::size_t> dropped_offset_bytes;
};

// The smallest arena in which every unit can be acquired alone, with the owners of its ties.
std::size_t least_arena_bytes(const shard::Layout& layout, std::size_t alignment_bytes);

class Fetcher {
 public:
  // Throws BUDGET with the least that is needed if a unit of a stage 3 layout could never be acquired.
  Fetcher(const shard::Layout& layout, const FetcherConfig& config);

  void begin_pass(std::string_view name);
  void end_pass();

  // Record and advance the trace: the unit that the caller asked for, after the acquires of what it needs.
  void visit(std::size_t unit);

  // Pin one storing unit (the driver calls it for every entry of shard::Unit::needs). BUDGET at once when held bytes
  // would exceed the limit or no contiguous room is left; then nothing is pinned or dropped.
  Plan acquire(std::size_t unit);

  // The fetch of acquire or prefetch has finished. ok = false forgets the unit and its pins: whoever waits for it finds
  // it not resident, holds nothing, and acquires again.
  void landed(std::size_t unit, bool ok);

  // Unpin. With drop_released it is dropped at its last release: `dropped` tells. STATE if it was not held.
  Plan release(std::size_t unit);

  // The next unit worth fetching ahead now, with its place, if there is room without touching held or sooner-needed
  // units. It counts as fetching until landed. Never more than FetcherConfig::prefetch units are ahead of the caller.
  std::optional<Plan> prefetch();
  std::optional<Plan> prefetch(std::size_t unit);  // by hand; nullopt if there is no room or it is there already

  // Forget every unit; STATE while one is held or fetching. Returns what was dropped, persistent included.
  Plan drop_all();

  // Forget what is neither held, fetching nor persistent. A unit that needs several (ties) can meet BUDGET because one
  // of them lies in the middle of the arena. Then release what was pinned for it, wait until nothing is being fetched,
  // call this, and acquire all its needs before the fetcher is used for anything else. With nothing else held that
  // succeeds.
  Plan drop_unheld();

  std::size_t held_units() const { return held_units_; }
  std::size_t held_bytes() const { return held_bytes_; }
  std::size_t resident_bytes() const { return resident_bytes_; }  // arena and persistent, fetching included
  bool any_fetching() const { return fetching_units_ != 0; }
  bool resident(std::size_t unit) const;
  bool fetching(std::size_t unit) const { return units_[unit].state == State::fetching; }
  std::size_t offset_bytes(std::size_t unit) const;

  struct Counters {
    std::uint64_t hits = 0, late_hits = 0, misses = 0, prefetches = 0, wasted = 0, evictions = 0;
    std::size_t peak_bytes = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  enum class State : std::uint8_t { absent, fetching, resident };
  struct UnitState {
    State state = State::absent;
    std::uint32_t holds = 0;
    std::size_t bytes = 0;
    std::size_t offset_bytes = 0;
    bool persistent = false;
    bool ahead = false;   // fetched ahead and not yet acquired
    bool hinted = false;  // and by hand, in this pass
    std::uint64_t last_use = 0;
  };
  enum class Purpose : std::uint8_t { acquire, follow_trace, hint };

  bool must_stay(const UnitState& unit, Purpose purpose) const;
  void measure_distances();
  std::span<const ArenaBlock> list_blocks(Purpose purpose);
  bool place(std::size_t unit, Purpose purpose, Plan& plan);
  void pin(std::size_t unit);
  void forget(std::size_t unit);
  void drop(std::size_t unit, Plan& plan);
  Plan start_plan(std::size_t unit);
  std::optional<Plan> start_ahead(std::size_t unit, Purpose purpose);
  Plan refuse_room(std::size_t unit);

  const shard::Layout* layout_;
  FetcherConfig config_;
  std::vector<UnitState> units_;
  std::vector<std::size_t> placed_;  // units in the arena, by rising offset
  TraceTable traces_;
  Trace* trace_ = nullptr;
  std::uint64_t clock_ = 0;
  std::size_t held_units_ = 0;
  std::size_t held_bytes_ = 0;
  std::size_t resident_bytes_ = 0;
  std::size_t fetching_units_ = 0;
  Counters counters_;
  // Room for results, so that no call allocates.
  std::vector<std::uint64_t> distances_;
  std::vector<ArenaBlock> blocks_;
  std::vector<std::size_t> dropped_, dropped_offset_bytes_;
};

}  // namespace zerocomm::zero
