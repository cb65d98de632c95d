#include "sharded_model.hpp"

#include <algorithm>

#include "bf16.hpp"
#include "blake2b.hpp"

namespace gpt {
namespace {

zc_dtype library_dtype(Dtype dtype) { return dtype == Dtype::f32 ? ZC_DTYPE_F32 : ZC_DTYPE_BF16; }

zc_phase phase_of(std::size_t micro_step, std::size_t micro_steps) {
  if (micro_steps == 1) return ZC_PHASE_ONLY;
  if (micro_step == 0) return ZC_PHASE_FIRST;
  return micro_step + 1 == micro_steps ? ZC_PHASE_LAST : ZC_PHASE_MIDDLE;
}

}  // namespace

ShardedModel::ShardedModel(zc_comm* comm, const ShardedOptions& options)
    : options_(options), model_(options.config, options.batch, options.dtype) {
  std::int32_t ranks = 0;
  check(zc_comm_size(comm, &ranks));
  make_layout(ranks);
  make_engine(comm);

  // The model asks for units and hands over gradients; the engine has both under the same numbers.
  source_.acquire = [this](std::size_t unit, std::span<const void*> tensors) {
    check(zc_zero_acquire(zero_.get(), unit, tensors.data(), tensors.size(), nullptr));
  };
  source_.release = [this](std::size_t unit) { check(zc_zero_release(zero_.get(), unit, nullptr)); };
  source_.grad_ready = [this](std::size_t tensor, const void* gradient) {
    check(zc_zero_grad_ready(zero_.get(), tensor, gradient, nullptr));
  };
  load_initial_weights();
}

// 1. Describe the tensors, once.
void ShardedModel::make_layout(std::int32_t ranks) {
  const Manifest& manifest = model_.manifest();
  std::vector<zc_tensor> tensors;
  std::size_t largest_count = 0;
  for (const Tensor& tensor : manifest.tensors) {
    largest_count = std::max(largest_count, tensor.count);
    zc_tensor described{};
    described.struct_size = sizeof described;
    described.name = tensor.name.c_str();
    described.unit = manifest.units[tensor.unit].name.c_str();
    described.count = tensor.count;
    described.dtype = library_dtype(options_.dtype);
    described.tied_to = tensor.tied_to ? manifest.tensors[*tensor.tied_to].name.c_str() : nullptr;
    tensors.push_back(described);
  }
  zc_layout_config config{};
  config.struct_size = sizeof config;
  config.ranks = ranks;
  config.stage = options_.stage;
  config.bucket_bytes =
      largest_count * element_bytes(options_.dtype);  // no larger than they must be: two are in flight
  zc_layout* layout = nullptr;
  check(zc_layout_create(tensors.data(), tensors.size(), &config, &layout));
  layout_.reset(layout);
}

// 2. Make the engine; it allocates everything here. The optimizer's own state is ours: two moments per owned element.
void ShardedModel::make_engine(zc_comm* comm) {
  zc_zero_config config{};
  config.struct_size = sizeof config;
  config.micro_steps = options_.accumulate;
  config.drop_released = 1;  // fetch at every use, as the formulas of ZeRO count it
  config.budget_bytes = options_.budget_bytes;
  if (options_.stage == ZC_STAGE_3) {
    zc_layout_info layout{};
    layout.struct_size = sizeof layout;
    check(zc_layout_get_info(layout_.get(), &layout));
    // The matrix that input and output share is held throughout a pass, the unit at hand beside it.
    zc_unit_info wte{};
    wte.struct_size = sizeof wte;
    check(zc_layout_get_unit(layout_.get(), 0, &wte));
    config.max_held_bytes = layout.largest_unit_bytes + wte.gathered_bytes;
    config.gradient_slots = 2;
    const std::size_t least_bytes = config.max_held_bytes + 2 * layout.largest_bucket_bytes;
    if (config.budget_bytes == 0) config.budget_bytes = std::max(layout.stored_bytes * 2 / 5, least_bytes);
  }
  zc_zero* zero = nullptr;
  check(zc_zero_create(comm, layout_.get(), &config, &zero));
  zero_.reset(zero);
  const zc_zero_piece* pieces = nullptr;
  std::size_t piece_count = 0, state_count = 0;
  check(zc_zero_pieces(zero_.get(), &pieces, &piece_count, &state_count));
  pieces_ = {pieces, piece_count};
  first_moments_.assign(state_count, 0.0F);
  second_moments_.assign(state_count, 0.0F);
}

// 3. Load the initial weights, one unit at a time. Every rank computes the same numbers, and the library compares them.
void ShardedModel::load_initial_weights() {
  const Manifest& manifest = model_.manifest();
  for (std::size_t u = 0; u < manifest.units.size(); ++u) {
    const Unit& unit = manifest.units[u];
    std::vector<std::vector<float>> values(unit.tensor_count);
    std::vector<const void*> full(unit.tensor_count, nullptr);
    for (std::size_t i = 0; i < unit.tensor_count; ++i) {
      const std::size_t tensor = unit.first_tensor + i;
      if (manifest.tensors[tensor].tied_to) continue;
      values[i].resize(manifest.tensors[tensor].count);
      initialise(manifest, tensor, options_.seed, 0, values[i]);
      full[i] = values[i].data();
    }
    check(zc_zero_load(zero_.get(), u, full.data(), ZC_DTYPE_F32, ZC_NONE));
  }
}

// 4. Run a pass. Forward and backward each visit every unit, as a framework does that hooks its layers.
double ShardedModel::pass(std::span<const std::uint8_t> rows, zc_phase phase) {
  constexpr std::size_t kWte = 0, kWpe = 1;
  const void* tensor = nullptr;
  check(zc_zero_begin(zero_.get(), "train", phase));
  check(zc_zero_acquire(zero_.get(), kWte, &tensor, 1,
                        nullptr));  // input and output use it: held throughout the forward pass
  const double loss = model_.forward(rows, source_);
  check(zc_zero_release(zero_.get(), kWte, nullptr));
  check(zc_zero_acquire(zero_.get(), kWte, &tensor, 1, nullptr));
  model_.backward(source_);
  check(zc_zero_acquire(zero_.get(), kWpe, &tensor, 1, nullptr));
  check(zc_zero_release(zero_.get(), kWpe, nullptr));
  check(zc_zero_release(zero_.get(), kWte, nullptr));
  check(zc_zero_end(zero_.get()));
  return loss;
}

// 5. Update what this rank owns. Only pieces are seen: no padding, no ranks, no stages.
void ShardedModel::update() {
  AdamW adamw = options_.adamw;
  adamw.learning_rate = warmed_up(adamw.learning_rate, steps_ + 1, options_.warm_up_steps);
  for (const zc_zero_piece& piece : pieces_)
    adamw_update(adamw, steps_ + 1, model_.manifest().tensors[piece.tensor].decays(), piece.master, piece.gradient,
                 first_moments_.data() + piece.state_offset, second_moments_.data() + piece.state_offset, piece.count);
}

StepResult ShardedModel::step(const std::vector<std::vector<std::uint8_t>>& micro_batches) {
  StepResult result;
  for (std::size_t i = 0; i < micro_batches.size(); ++i)
    result.losses.push_back(pass(micro_batches[i], phase_of(i, micro_batches.size())));

  zc_norm norm{};
  norm.struct_size = sizeof norm;
  check(zc_zero_norm(zero_.get(), &norm));
  result.norm = norm.norm;
  if (norm.nan_count != 0 || norm.inf_count != 0) {  // all ranks see the same counts, so all of them skip
    check(zc_zero_publish_unchanged(zero_.get()));
    result.skipped = true;
    return result;
  }
  if (options_.clip > 0 && norm.norm > options_.clip) {
    check(zc_zero_scale(zero_.get(), options_.clip / norm.norm));
    result.clipped = true;
  }
  check(zc_zero_update_begin(zero_.get()));
  update();
  check(zc_zero_cast(zero_.get()));
  check(zc_zero_publish(zero_.get(), nullptr));
  ++steps_;
  return result;
}

std::string ShardedModel::weights_hash() {
  Blake2b hash;
  const Manifest& manifest = model_.manifest();
  for (std::size_t t = 0; t < manifest.tensors.size(); ++t) {
    const Tensor& tensor = manifest.tensors[t];
    if (tensor.tied_to) continue;
    std::vector<std::byte> values(tensor.count * element_bytes(options_.dtype));
    check(zc_zero_export(zero_.get(), t, ZC_STATE_PARAMETER, values.data()));
    hash.update(values.data(), values.size());
  }
  return hash.finish_hex();
}

}  // namespace gpt
