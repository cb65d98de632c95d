// Memory and traffic of a stage as closed formulas, one term per state and buffer.
#include "shard/estimate.hpp"

#include "base/math.hpp"
#include "shard/layout_totals.hpp"
#include "shard/ownership.hpp"
#include "shard/stage_table.hpp"

namespace zerocomm::shard {
namespace {

constexpr std::size_t kAdamMomentBytes = 8;
constexpr std::size_t kF32Bytes = 4;

// One buffer as the formulas see it. Counts are elements; padded ones are never below real ones.
struct Part {
  zc_dtype dtype = ZC_DTYPE_NONE;
  zc_dtype gradient_dtype = ZC_DTYPE_NONE;
  zc_dtype shard_gradient_dtype = ZC_DTYPE_NONE;
  bool trainable = true;
  std::size_t full = 0, full_real = 0;    // whole buffer
  std::size_t shard = 0, shard_real = 0;  // this rank's
  std::size_t slots = 0;                  // all buckets, padding included
  std::size_t fetched = 0;                // received when every unit is gathered once, but for persistent ones
  std::size_t kept = 0;                   // received when the persistent ones are
};

struct Model {
  const StageRow* row = nullptr;
  std::size_t ranks = 1;
  std::size_t moment_bytes = 0;
  std::size_t micro_steps = 1;
  bool accumulate_first = false;

  // Gradients are added up on the rank itself, in f32, before anything is reduced.
  bool accumulates_locally() const { return accumulate_first && micro_steps > 1; }
  std::size_t reductions() const { return accumulate_first ? 1 : micro_steps; }
};

Model read_model(std::int32_t ranks, zc_stage stage, const zc_estimate_config& config) {
  ZC_REQUIRE(ranks >= 1, ZC_ARGUMENT, "ranks is %d; at least 1 is needed", ranks);
  ZC_REQUIRE(config.micro_steps >= 0, ZC_ARGUMENT, "micro_steps is %d; at least 1 is needed", config.micro_steps);
  Model model;
  model.row = &stage_row(stage);
  model.ranks = static_cast<std::size_t>(ranks);
  model.moment_bytes = config.moment_bytes_per_element;
  if (model.moment_bytes == 0) model.moment_bytes = kAdamMomentBytes;
  if (model.moment_bytes == ZC_ESTIMATE_NO_MOMENTS) model.moment_bytes = 0;
  model.micro_steps = config.micro_steps == 0 ? 1 : static_cast<std::size_t>(config.micro_steps);
  model.accumulate_first = config.accumulate_first != 0;
  return model;
}

// Adds `padded` elements to a figure, and those that are not real to the padding.
void add_state(zc_estimate& sum, std::size_t& figure, std::size_t padded, std::size_t real, std::size_t bytes) {
  figure = checked_add(figure, checked_mul(padded, bytes));
  sum.padding_bytes = checked_add(sum.padding_bytes, checked_mul(padded - real, bytes));
}

void add_gradients(zc_estimate& sum, const Model& model, const Part& part) {
  const std::size_t reduced_bytes = zc_dtype_bytes(part.shard_gradient_dtype);
  std::size_t& figure = sum.gradient_bytes;
  if (model.row->optimizer == Home::replicated) {  // reduced gradients of everything, on every rank
    add_state(sum, figure, part.full, part.full_real, reduced_bytes);
  } else if (model.row->gradients == Home::cut) {
    add_state(sum, figure, part.shard, part.shard_real, reduced_bytes);
  } else {  // the rank keeps its own gradients; the reduced range goes back into them where it fits
    if (!model.accumulates_locally())
      add_state(sum, figure, part.slots, part.full_real, zc_dtype_bytes(part.gradient_dtype));
    const zc_dtype sent = model.accumulates_locally() ? ZC_DTYPE_F32 : part.gradient_dtype;
    const bool in_place = sent == part.shard_gradient_dtype && model.reductions() == 1;
    if (!in_place) add_state(sum, figure, part.shard, part.shard_real, reduced_bytes);
  }
  if (model.accumulates_locally()) add_state(sum, figure, part.slots, part.full_real, kF32Bytes);
}

void add_memory(zc_estimate& sum, const Model& model, const Part& part) {
  const bool cut_parameters = model.row->parameters == Home::cut;
  add_state(sum, sum.parameter_bytes, cut_parameters ? part.shard : part.full,
            cut_parameters ? part.shard_real : part.full_real, zc_dtype_bytes(part.dtype));
  if (!part.trainable) return;
  add_gradients(sum, model, part);
  const bool cut_state = model.row->optimizer == Home::cut;
  const std::size_t state = cut_state ? part.shard : part.full, real = cut_state ? part.shard_real : part.full_real;
  if (zc_dtype_bytes(part.dtype) < kF32Bytes) add_state(sum, sum.master_bytes, state, real, kF32Bytes);
  add_state(sum, sum.moment_bytes, real, real, model.moment_bytes);
}

void add_traffic(zc_estimate& sum, const Model& model, const Part& part) {
  const auto add = [&](std::size_t& figure, std::size_t elements, std::size_t bytes) {
    figure = checked_add(figure, elements);
    sum.logical_bytes = checked_add(sum.logical_bytes, checked_mul(elements, bytes));
  };
  const std::size_t foreign = part.full_real - part.shard_real;
  if (model.row->parameters == Home::cut)
    add(sum.gather_elements, checked_add(checked_mul(2 * model.micro_steps, part.fetched), part.kept),
        zc_dtype_bytes(part.dtype));
  if (!part.trainable) return;
  const std::size_t sent_bytes = model.accumulates_locally() ? kF32Bytes : zc_dtype_bytes(part.gradient_dtype);
  const std::size_t reductions = model.reductions();
  add(sum.reduce_elements, checked_mul(reductions, checked_mul(model.ranks - 1, part.shard_real)), sent_bytes);
  if (model.row->optimizer == Home::replicated)
    add(sum.reduce_elements, checked_mul(reductions, foreign), zc_dtype_bytes(part.shard_gradient_dtype));
  else if (model.row->parameters == Home::replicated)
    add(sum.gather_elements, foreign, zc_dtype_bytes(part.dtype));
}

void add_part(zc_estimate& sum, const Model& model, const Part& part) {
  add_memory(sum, model, part);
  add_traffic(sum, model, part);
}

zc_estimate finish(zc_estimate sum) {
  sum.struct_size = sizeof sum;
  sum.state_bytes = checked_add(checked_add(sum.parameter_bytes, sum.gradient_bytes),
                                checked_add(sum.master_bytes, sum.moment_bytes));
  return sum;
}

// One part per buffer.
std::vector<Part> read_parts(const Layout& layout, std::int32_t rank) {
  std::vector<Part> parts;
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    Part part;
    part.dtype = buffer.dtype;
    part.gradient_dtype = buffer.gradient_dtype;
    part.shard_gradient_dtype = buffer.shard_gradient_dtype;
    part.trainable = buffer.trainable;
    part.full = checked_mul(static_cast<std::size_t>(layout.ranks), buffer.shard_count);
    part.full_real = buffer.count;
    part.shard = buffer.shard_count;
    part.shard_real = owned_count(layout, static_cast<std::size_t>(rank), b);
    part.fetched = part.full_real - part.shard_real;
    parts.push_back(part);
  }
  for (const Bucket& bucket : layout.buckets)
    parts[bucket.buffer].slots = checked_add(parts[bucket.buffer].slots, bucket.padded_count);
  // Persistent units are fetched once for every generation.
  for (std::size_t i = 0; i < layout.uses.size(); ++i) {
    const Use& use = layout.uses[i];
    if (use.stored != i || !layout.units[use.unit].persistent) continue;
    const Block& block = layout.blocks[use.block];
    const std::size_t foreign = use.in_tensor.count - owned_in_use(block, use, rank).count;
    parts[block.buffer].fetched -= foreign;
    parts[block.buffer].kept += foreign;
  }
  return parts;
}

}  // namespace

zc_estimate estimate_layout(const Layout& layout, std::int32_t rank, const zc_estimate_config& config) {
  ZC_REQUIRE(rank >= 0 && rank < layout.ranks, ZC_ARGUMENT, "rank %d of a layout of %d ranks", rank, layout.ranks);
  const Model model = read_model(layout.ranks, layout.stage, config);
  zc_estimate sum{};
  for (const Part& part : read_parts(layout, rank)) add_part(sum, model, part);
  return finish(sum);
}

zc_estimate estimate_count(std::size_t parameter_count, std::int32_t ranks, zc_stage stage, zc_dtype parameter_dtype,
                           const zc_estimate_config& config) {
  ZC_REQUIRE(zc_dtype_bytes(parameter_dtype) != 0, ZC_ARGUMENT, "dtype %d does not exist",
             static_cast<int>(parameter_dtype));
  ZC_REQUIRE(parameter_dtype == ZC_DTYPE_F32 || parameter_dtype == ZC_DTYPE_F16 || parameter_dtype == ZC_DTYPE_BF16,
             ZC_UNSUPPORTED, "parameters are %s; only f32, f16 and bf16 are trained", zc_dtype_name(parameter_dtype));
  const Model model = read_model(ranks, stage, config);
  Part part;
  part.dtype = part.gradient_dtype = parameter_dtype;
  part.shard_gradient_dtype = ZC_DTYPE_F32;
  part.full = part.full_real = part.slots = parameter_count;
  part.shard = part.shard_real = ceil_div(parameter_count, model.ranks);
  part.fetched = part.full_real - part.shard_real;
  zc_estimate sum{};
  add_part(sum, model, part);
  return finish(sum);
}

}  // namespace zerocomm::shard
