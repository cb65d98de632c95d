// One row of the main job: train with some ranks at some stage, and report what came out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "memory.hpp"
#include "sharded_model.hpp"
#include "text.hpp"

namespace gpt {

struct JobOptions {
  ShardedOptions model;
  std::int32_t ranks = 4;
  std::size_t steps = 20;
};

// Bytes are those of one rank; traffic is that of one step.
struct Row {
  zc_stage stage = ZC_STAGE_NONE;
  std::int32_t ranks = 0;
  double loss_first = 0;
  double loss_last = 0;
  std::string weights_hash;  // the same on all ranks
  std::uint64_t state_bytes = 0, state_bytes_formula = 0;
  std::uint64_t logical_bytes = 0, logical_bytes_formula = 0;
  std::uint64_t moved_bytes = 0;
  std::uint64_t gathered_peak_bytes = 0, budget_bytes = 0, budget_peak_bytes = 0;
  std::uint64_t parameter_bytes = 0;     // of the whole model
  std::uint64_t buckets_before_end = 0;  // of all ranks
  std::size_t clipped_steps = 0, skipped_steps = 0;
  double step_ms = 0;            // median
  std::optional<Memory> memory;  // of ranks that are processes
};

// Called after every step.
using Progress = std::function<void(std::size_t step, double loss, double norm)>;

// What one rank does; all ranks of the communicator call it. `private_before` is private_bytes() from just before
// zc_comm_create; without it memory is not measured.
Row run_rank(zc_comm* comm, const JobOptions& options, const Text& text, const Progress& progress,
             std::optional<std::uint64_t> private_before);

}  // namespace gpt
