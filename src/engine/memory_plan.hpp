// Where everything of one engine lies: offsets in the window of every rank, slots, arena, budget. Pure.
//
// All ranks have the same plan, so an offset of one rank is the offset of every rank.
#pragma once

#include "engine/kind.hpp"
#include "shard/layout.hpp"

#include <zerocomm/zero.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zerocomm::engine {

struct MemoryPlan {
  // How gradients travel.
  bool own_slots = false;    // every bucket has its own full-size slot (stage 1, or passes are added up locally first)
  bool wire_is_f32 = false;  // local accumulators are f32 and are what is sent
  bool reduce_in_place = false;  // the reduced gradient lies in the owner's slot
  bool full_gradients = false;   // stage 0: every rank has all reduced gradients
  bool full_parameters = false;  // stages 0 to 2: every rank has all parameters
  bool views = false;            // stage 3 without gathering: all shards of a buffer are one run of shared memory
  bool parameters_apart =
      false;  // flat placement, stage 3, or the caller's: every buffer's shards are a window of their own
  std::uint32_t slots = 0;

  // Offsets in every rank's window part.
  std::vector<std::size_t> parameter_bytes_at;  // by buffer; 0 if they are apart
  std::vector<std::size_t> gradient_bytes_at;   // by buffer; kNoIndex if frozen or reduced in place
  std::vector<std::size_t> master_bytes_at;     // by buffer; kNoIndex if it has none
  std::vector<std::size_t> slot_bytes_at;       // by slot
  std::size_t window_bytes = 0;

  // Memory of gathered units, private to the rank: persistent units first, then the arena.
  std::size_t persistent_bytes = 0;
  std::size_t arena_bytes = 0;
  std::size_t gathered_bytes = 0;  // both
  std::size_t max_held_bytes = 0;
  std::size_t budget_bytes = 0;  // in force

  zc_zero_ledger ledger{};                 // without control_bytes
  std::size_t caller_parameter_bytes = 0;  // shards in the caller's memory
};

// Throws Error: BUDGET with the least that would do; UNSUPPORTED for shard gradients that are not f32, and for views
// that cannot be had; ARGUMENT for views with an option about gathered units.
// `layout` is layout_of the kind. own_shards: false where the caller brings the memory of the parameter shards.
MemoryPlan plan_memory(const shard::Layout& layout, const zc_zero_config& config, const Kind& kind, bool own_shards);

// Start of every gathered unit: any element is aligned there, also when the layout asks for less.
std::size_t gathered_alignment_bytes(const shard::Layout& layout);

// Dtype in which a bucket of this buffer is sent.
zc_dtype wire_dtype(const MemoryPlan& plan, const shard::Buffer& buffer);

// Whether the optimizer works on an f32 copy of this buffer.
bool has_master(const shard::Buffer& buffer);

}  // namespace zerocomm::engine
