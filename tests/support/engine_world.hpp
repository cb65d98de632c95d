// Training without a model: one rank's engine over a list of tensors, with synthetic gradients and a simple optimizer.
//
// Gradients are slices of one table of floats whose f32 sums round, so that every change of their order shows. A test
// makes a WorldSetup, and on each rank a RankEngine: load(), any number of step(), digest(). Link zc_capi and
// zc_manifest.
#pragma once

#include "base/half.hpp"
#include "cli/manifest.hpp"
#include "support/exact_data.hpp"
#include "support/rank_threads.hpp"

#include <zerocomm/zerocomm.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace zerocomm::test {

// The model tests/data/<name>.json.
inline cli::Manifest data_model(const std::string& name) {
  return cli::read_manifest(std::string(ZC_PROJECT_DIR) + "/tests/data/" + name + ".json");
}

// tests/data/odd.json with a giant of 32,023 elements instead of a million: faster, and still larger than a bucket of
// 64 KiB.
inline cli::Manifest odd_with_short_giant() {
  cli::Manifest model = data_model("odd");
  for (cli::ManifestUse& use : model.uses)
    if (model.tensors[use.tensor].name == "big") model.tensors[use.tensor].count = use.slice.count = 31 * 1033;
  return model;
}

// A model by hand: every tensor is used once, whole, in the order given.
inline cli::Manifest hand_model(std::vector<cli::ManifestTensor> tensors) {
  cli::Manifest model;
  model.name = "hand";
  for (std::size_t i = 0; i < tensors.size(); ++i) model.uses.push_back({i, {0, tensors[i].count}, tensors[i].unit});
  model.tensors = std::move(tensors);
  return model;
}

// What a world depends on. struct_size, ranks and uses are filled in by it.
struct WorldSetup {
  cli::Manifest model;
  std::int32_t ranks = 1;
  zc_layout_config layout{};
  zc_zero_config zero{};
  zc_dtype gradient_dtype = ZC_DTYPE_NONE;  // of every trainable tensor; default: its own
  std::uint64_t seed = 1;
  bool shuffle = true;        // every rank reports its gradients in an order of its own
  bool some_absent = false;   // some uses have no gradient in some passes
  bool grad_buffers = false;  // write gradients straight into the library's buffers where it has them
  double clip = 0;            // most norm of the gradients; 0: no norm is asked for
};

inline constexpr float kMomentum = 0.9f, kLearningRate = 0.01f;

// The longest slice that the table gives.
inline constexpr std::size_t kLongestSlice = 1'100'000;

// `count` pseudo-random elements of a float dtype, up to 2^9 in magnitude, with a few zeros and -0. Equal keys give
// equal elements; the memory lives as long as the program.
inline const void* slice_of_table(std::uint64_t key, zc_dtype dtype, std::size_t count) {
  constexpr std::size_t kTable = kLongestSlice + 200'000;
  struct Table {
    std::vector<float> f32 = std::vector<float>(kTable);
    std::vector<std::uint16_t> f16 = std::vector<std::uint16_t>(kTable), bf16 = std::vector<std::uint16_t>(kTable);
    Table() {
      for (std::size_t i = 0; i < kTable; ++i) {
        const std::uint64_t draw = mix(77, i);
        const double significand = 1 + static_cast<double>(draw >> 41) * 0x1p-23;
        float value = static_cast<float>(std::ldexp(significand, static_cast<int>(draw % 17) - 8));
        if (draw / 17 % 64 == 0) value = 0;
        f32[i] = (draw >> 20 & 1) != 0 ? -value : value;
        f16[i] = f16_from_float(f32[i]);
        bf16[i] = bf16_from_float(f32[i]);
      }
    }
  };
  static const Table table;
  RANK_CHECK(count <= kLongestSlice, "%zu elements", count);
  const std::size_t first = mix(key, 5) % (kTable - count);
  if (dtype == ZC_DTYPE_F16) return table.f16.data() + first;
  if (dtype == ZC_DTYPE_BF16) return table.bf16.data() + first;
  RANK_CHECK(dtype == ZC_DTYPE_F32, "gradients of dtype %s", zc_dtype_name(dtype));
  return table.f32.data() + first;
}

// Gradient of one use in one micro-batch of one step, or NULL if it has none. Micro-batches of a step are numbered over
// all ranks, so that any cut over ranks and passes can train on the same ones.
inline const void* synthetic_gradient(const WorldSetup& setup, std::size_t step, std::size_t micro_batch,
                                      std::size_t use, zc_dtype dtype, std::size_t count) {
  const std::uint64_t key = mix(mix(mix(setup.seed, step), micro_batch), use);
  if (setup.some_absent && key % 5 == 0) return nullptr;
  return slice_of_table(key, dtype, count);
}

// Value of an untied tensor before the first step, in f32.
inline const float* initial_value(const WorldSetup& setup, std::size_t tensor, std::size_t count) {
  return static_cast<const float*>(slice_of_table(mix(~setup.seed, tensor), ZC_DTYPE_F32, count));
}

// One element of the optimizer.
inline void update_element(float gradient, float& momentum, float& parameter) {
  momentum = kMomentum * momentum + gradient;
  parameter = parameter - kLearningRate * momentum;
}

inline std::uint64_t digest_bytes(std::uint64_t digest, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  std::uint64_t word = 0;
  for (; bytes >= 8; at += 8, bytes -= 8) {
    std::memcpy(&word, at, 8);
    digest = (digest ^ word) * 0x9e3779b97f4a7c15ULL;
    digest ^= digest >> 29;
  }
  word = bytes;
  if (bytes != 0) std::memcpy(&word, at, bytes);
  return mix(digest, word);
}

// Creates the layout of a setup. The caller destroys it.
inline zc_layout* make_world_layout(const WorldSetup& setup) {
  cli::TensorList list = cli::tensor_list(setup.model);
  for (zc_tensor& tensor : list.tensors)
    if (!tensor.frozen) tensor.gradient_dtype = setup.gradient_dtype;
  zc_layout_config config = setup.layout;
  config.struct_size = sizeof config;
  config.ranks = setup.ranks;
  config.uses = list.uses.data();
  config.use_count = list.uses.size();
  zc_layout* layout = nullptr;
  RANK_OK(zc_layout_create(list.tensors.data(), list.tensors.size(), &config, &layout));
  return layout;
}

// One rank's engine. Every call throws RankFailure if the library refuses. Poison is on.
class RankEngine {
 public:
  RankEngine(zc_comm* comm, const WorldSetup& setup) : setup_(setup) {
    RANK_OK(zc_comm_rank(comm, &rank_));
    layout_ = make_world_layout(setup);
    info_.struct_size = sizeof info_;
    RANK_OK(zc_layout_get_info(layout_, &info_));
    uses_.resize(info_.use_count);
    for (std::size_t i = 0; i < info_.use_count; ++i) {
      uses_[i].struct_size = sizeof(zc_use_info);
      RANK_OK(zc_layout_get_use(layout_, i, &uses_[i]));
    }
    zc_zero_config config = setup.zero;
    config.struct_size = sizeof config;
    config.poison = 1;
    RANK_OK(zc_zero_create(comm, layout_, &config, &zero_));
    RANK_OK(zc_zero_pieces(zero_, &pieces_, &piece_count_, &state_count_));
    momentum_.assign(state_count_, 0.0f);
  }
  ~RankEngine() {
    zc_zero_destroy(zero_);
    zc_layout_destroy(layout_);
  }
  RankEngine(const RankEngine&) = delete;
  RankEngine& operator=(const RankEngine&) = delete;

  zc_zero* zero() const { return zero_; }
  const zc_layout* layout() const { return layout_; }
  const zc_layout_info& info() const { return info_; }
  const zc_use_info& use(std::size_t index) const { return uses_[index]; }
  std::int32_t rank() const { return rank_; }
  std::size_t state_count() const { return state_count_; }

  // Dtype in which a use's gradient is handed over; NONE: it has none.
  zc_dtype gradient_dtype(std::size_t use) const {
    if (uses_[use].bucket == ZC_NONE) return ZC_DTYPE_NONE;
    zc_buffer_info buffer{};
    buffer.struct_size = sizeof buffer;
    RANK_OK(zc_layout_get_buffer(layout_, uses_[use].buffer, &buffer));
    return buffer.gradient_dtype;
  }

  // Initial values, given in f32.
  void load() {
    for (std::size_t unit = 0; unit < info_.unit_count; ++unit) {
      std::vector<const void*> full;
      for (const std::size_t index : uses_of(unit)) {
        const zc_use_info& use = uses_[index];
        const std::size_t count = setup_.model.tensors[use.stored_tensor].count;
        full.push_back(initial_value(setup_, use.stored_tensor, count) + use.in_tensor.offset);
      }
      RANK_OK(zc_zero_load(zero_, unit, full.data(), ZC_DTYPE_F32, ZC_NONE));
    }
  }

  // Forward and backward over every unit. What acquire gave out goes into seen().
  void pass(std::size_t step, std::size_t micro_batch, zc_phase phase) {
    RANK_OK(zc_zero_begin(zero_, "train", phase));
    for (std::size_t unit = 0; unit < info_.unit_count; ++unit) visit(unit);
    std::vector<std::size_t> order(info_.use_count);
    std::iota(order.rbegin(), order.rend(), std::size_t{0});
    const std::uint64_t key = mix(static_cast<std::uint64_t>(rank_) + 9, step * 64 + micro_batch);
    for (std::size_t i = order.size(); setup_.shuffle && i > 1; --i) std::swap(order[i - 1], order[mix(key, i) % i]);
    std::size_t reported = 0;
    for (std::size_t left = info_.unit_count; left-- > 0;) {
      std::vector<const void*> tensors(uses_of(left).size() + 1);
      RANK_OK(zc_zero_acquire(zero_, left, tensors.data(), tensors.size(), nullptr));
      for (const std::size_t until = order.size() - order.size() * left / info_.unit_count; reported < until;
           ++reported)
        report(step, micro_batch, order[reported]);
      RANK_OK(zc_zero_release(zero_, left, nullptr));
    }
    RANK_OK(zc_zero_end(zero_));
  }

  // Norm and clipping, if asked for, then the update of this rank's pieces.
  void update() {
    if (setup_.clip != 0) {
      norm_.struct_size = sizeof norm_;
      RANK_OK(zc_zero_norm(zero_, &norm_));
      if (norm_.norm > setup_.clip) RANK_OK(zc_zero_scale(zero_, setup_.clip / norm_.norm));
    }
    RANK_OK(zc_zero_update_begin(zero_));
    for (std::size_t i = 0; i < piece_count_; ++i) {
      const zc_zero_piece& piece = pieces_[i];
      float* momentum = momentum_.data() + piece.state_offset;
      for (std::size_t k = 0; k < piece.count; ++k) update_element(piece.gradient[k], momentum[k], piece.master[k]);
    }
    RANK_OK(zc_zero_cast(zero_));
    RANK_OK(zc_zero_publish(zero_, nullptr));
  }

  // One optimizer step of `passes` gradient passes on the micro-batches rank * passes and following.
  void step(std::size_t step, std::size_t passes = 1) {
    for (std::size_t i = 0; i < passes; ++i) {
      const zc_phase phase = passes == 1      ? ZC_PHASE_ONLY
                             : i == 0         ? ZC_PHASE_FIRST
                             : i + 1 < passes ? ZC_PHASE_MIDDLE
                                              : ZC_PHASE_LAST;
      pass(step, static_cast<std::size_t>(rank_) * passes + i, phase);
    }
    update();
  }

  // Digest of all parameters and masters as this rank can export them: tensors in model order.
  std::uint64_t digest() {
    std::uint64_t digest = 1;
    for (std::size_t i = 0; i < info_.tensor_count; ++i) {
      const cli::ManifestTensor& tensor = setup_.model.tensors[i];
      std::vector<std::byte> value(tensor.count * sizeof(float));
      RANK_OK(zc_zero_export(zero_, i, ZC_STATE_PARAMETER, value.data()));
      digest = digest_bytes(digest, value.data(), tensor.count * zc_dtype_bytes(tensor.dtype));
      if (tensor.frozen || tensor.dtype == ZC_DTYPE_F32) continue;
      RANK_OK(zc_zero_export(zero_, i, ZC_STATE_MASTER, value.data()));
      digest = digest_bytes(digest, value.data(), value.size());
    }
    return digest;
  }

  // Digest of everything that acquire gave out in forward passes.
  std::uint64_t seen() const { return seen_; }
  const zc_norm& last_norm() const { return norm_; }

 private:
  std::vector<std::size_t> uses_of(std::size_t unit) const {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < uses_.size(); ++i)
      if (uses_[i].unit == unit) result.push_back(i);
    return result;
  }

  void visit(std::size_t unit) {
    const std::vector<std::size_t> uses = uses_of(unit);
    std::vector<const void*> tensors(uses.size() + 1);
    RANK_OK(zc_zero_acquire(zero_, unit, tensors.data(), tensors.size(), nullptr));
    for (std::size_t i = 0; i < uses.size(); ++i)
      seen_ = digest_bytes(
          seen_, tensors[i],
          uses_[uses[i]].in_tensor.count * zc_dtype_bytes(setup_.model.tensors[uses_[uses[i]].tensor].dtype));
    RANK_OK(zc_zero_release(zero_, unit, nullptr));
  }

  void report(std::size_t step, std::size_t micro_batch, std::size_t index) {
    const zc_dtype dtype = gradient_dtype(index);
    if (dtype == ZC_DTYPE_NONE) return;
    const std::size_t count = uses_[index].in_tensor.count;
    const void* gradient = synthetic_gradient(setup_, step, micro_batch, index, dtype, count);
    if (gradient == nullptr) return RANK_OK(zc_zero_grad_absent(zero_, index));
    void* buffer = nullptr;
    if (setup_.grad_buffers && zc_zero_grad_buffer(zero_, index, &buffer) == ZC_OK) {
      std::memcpy(buffer, gradient, count * zc_dtype_bytes(dtype));
      gradient = buffer;
    }
    RANK_OK(zc_zero_grad_ready(zero_, index, gradient, nullptr));
  }

  const WorldSetup& setup_;
  std::int32_t rank_ = 0;
  zc_layout* layout_ = nullptr;
  zc_layout_info info_{};
  std::vector<zc_use_info> uses_;
  zc_zero* zero_ = nullptr;
  const zc_zero_piece* pieces_ = nullptr;
  std::size_t piece_count_ = 0, state_count_ = 0;
  std::vector<float> momentum_;
  zc_norm norm_{};
  std::uint64_t seen_ = 1;
};

// What a world was like in the end.
struct WorldResult {
  std::uint64_t parameters = 0;  // digest()
  std::uint64_t seen = 0;
  double norm = 0;  // of the last step
  friend bool operator==(const WorldResult&, const WorldResult&) = default;
};

// Trains on all ranks; every rank must come to the same result, which is returned.
inline WorldResult train_world(const WorldSetup& setup, std::size_t steps, std::size_t passes = 1) {
  std::vector<WorldResult> results(static_cast<std::size_t>(setup.ranks));
  run_ranks(setup.ranks, [&](zc_comm* comm, std::int32_t rank) {
    RankEngine engine(comm, setup);
    engine.load();
    for (std::size_t step = 0; step < steps; ++step) engine.step(step, passes);
    results[static_cast<std::size_t>(rank)] = {engine.digest(), engine.seen(), engine.last_norm().norm};
  });
  for (const WorldResult& result : results) EXPECT_EQ(result, results[0]);
  return results[0];
}

}  // namespace zerocomm::test
