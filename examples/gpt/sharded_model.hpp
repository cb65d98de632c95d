// The model on the library's engine: everything that a framework has to do to train with ZeRO, stages 0 to 3.
//
// This is the file to read. One object per rank; all ranks make the same calls. The same code runs at every stage: the
// stage is a number in the layout, and the library decides what is cut, gathered and reduced.
#pragma once

#include <zerocomm/zerocomm.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "adamw.hpp"
#include "checked.hpp"
#include "model.hpp"

namespace gpt {

struct ShardedOptions {
  Config config;
  Dtype dtype = Dtype::f32;
  std::size_t batch = 4;  // rows of one micro-batch
  zc_stage stage = ZC_STAGE_3;
  std::int32_t accumulate = 1;  // micro-batches of this rank in a step
  std::size_t budget_bytes =
      0;  // 0: at stage 3, two fifths of the parameters, or the least that a very small model needs
  std::uint64_t seed = 1;
  AdamW adamw;
  std::size_t warm_up_steps = 0;
  double clip = 1.0;  // largest norm of the gradient; 0: no clipping
};

// What one optimizer step did.
struct StepResult {
  std::vector<double> losses;  // of this rank's micro-batches, in order
  double norm = 0;
  bool clipped = false;
  bool skipped = false;  // the gradient was not finite
};

class ShardedModel {
 public:
  ShardedModel(zc_comm* comm, const ShardedOptions& options);
  ShardedModel(const ShardedModel&) = delete;
  ShardedModel& operator=(const ShardedModel&) = delete;

  // One optimizer step on accumulate micro-batches of batch rows each.
  StepResult step(const std::vector<std::vector<std::uint8_t>>& micro_batches);

  // BLAKE2b-128 over the elements of all parameters in the order of the manifest. One rank may call it alone.
  std::string weights_hash();

  const zc_layout* layout() const { return layout_.get(); }
  zc_zero* engine() const { return zero_.get(); }
  std::size_t moment_bytes() const { return (first_moments_.size() + second_moments_.size()) * sizeof(float); }
  std::size_t buffer_bytes() const { return model_.buffer_bytes() + moment_bytes(); }  // ours, not the library's

 private:
  void make_layout(std::int32_t ranks);
  void make_engine(zc_comm* comm);
  void load_initial_weights();
  double pass(std::span<const std::uint8_t> rows, zc_phase phase);
  void update();

  ShardedOptions options_;
  Model model_;
  ParamSource source_;
  LayoutHandle layout_;
  ZeroHandle zero_;
  std::span<const zc_zero_piece> pieces_;
  std::vector<float> first_moments_, second_moments_;
  std::size_t steps_ = 0;
};

}  // namespace gpt
