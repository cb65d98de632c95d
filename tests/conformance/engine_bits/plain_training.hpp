// The training of an engine world without an engine: whole tensors, one thread, the sums written out as the promise
// says.
//
// Models whose uses are whole tensors only.
#pragma once

#include "support/engine_world.hpp"

namespace zerocomm::test {

class PlainTraining {
 public:
  // `first`: passes of a rank are added up in f32 before ranks are.
  PlainTraining(const WorldSetup& setup, std::size_t passes, bool first)
      : setup_(setup), passes_(passes), first_(first && passes > 1), model_(setup.model) {
    for (std::size_t i = 0; i < model_.tensors.size(); ++i) {
      const cli::ManifestTensor& tensor = model_.tensors[i];
      State state;
      for (std::size_t use = 0; use < model_.uses.size(); ++use)
        if (owner_of(model_.uses[use].tensor) == i) state.parts.push_back(use);
      if (tensor.tied_to.empty()) {
        const float* value = initial_value(setup, i, tensor.count);
        state.master.assign(value, value + tensor.count);
        state.momentum.assign(tensor.count, 0.0f);
        store(tensor, state);
      }
      states_.push_back(std::move(state));
    }
  }

  WorldResult train(std::size_t steps) {
    for (std::size_t step = 0; step < steps; ++step) one_step(step);
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const cli::ManifestTensor& tensor = model_.tensors[i];
      const State& state = states_[owner_of(i)];
      result_.parameters = digest_bytes(result_.parameters, state.stored.data(), state.stored.size());
      if (!tensor.frozen && tensor.dtype != ZC_DTYPE_F32)
        result_.parameters = digest_bytes(result_.parameters, state.master.data(), tensor.count * sizeof(float));
    }
    return result_;
  }

 private:
  struct State {
    std::vector<std::size_t> parts;  // uses whose gradients are added up, in list order
    std::vector<float> master, momentum, gradient;
    std::vector<std::byte> stored;
  };

  std::size_t owner_of(std::size_t tensor) const {
    const std::string& name = model_.tensors[tensor].tied_to;
    if (name.empty()) return tensor;
    for (std::size_t i = 0; i < tensor; ++i)
      if (model_.tensors[i].name == name) return i;
    throw RankFailure("tied to nothing: " + name);
  }

  static void store(const cli::ManifestTensor& tensor, State& state) {
    state.stored.resize(tensor.count * zc_dtype_bytes(tensor.dtype));
    if (tensor.count == 0) return;
    if (tensor.dtype == ZC_DTYPE_F32)
      return void(std::memcpy(state.stored.data(), state.master.data(), state.stored.size()));
    for (std::size_t i = 0; i < tensor.count; ++i)
      store_element(tensor.dtype, static_cast<double>(state.master[i]), state.stored.data() + 2 * i);
  }

  // What one rank brings for a tensor in one pass: its parts, added in f32 and, unless that is where sums are kept,
  // rounded to the type in which gradients travel.
  std::vector<float> contribution(std::size_t step, std::size_t micro_batch, std::size_t tensor) const {
    const zc_dtype own = model_.tensors[tensor].dtype;
    const zc_dtype dtype = setup_.gradient_dtype != ZC_DTYPE_NONE ? setup_.gradient_dtype : own;
    const std::size_t count = model_.tensors[tensor].count;
    std::vector<float> sum(count);
    bool first_part = true;
    for (const std::size_t use : states_[tensor].parts) {
      const auto* part =
          static_cast<const std::byte*>(synthetic_gradient(setup_, step, micro_batch, use, dtype, count));
      for (std::size_t i = 0; i < count; ++i) {
        const float value =
            part == nullptr ? 0.0f : static_cast<float>(load_element(dtype, part + i * zc_dtype_bytes(dtype)));
        sum[i] = first_part ? value : sum[i] + value;
      }
      first_part = false;
    }
    if (dtype == ZC_DTYPE_F32 || first_) return sum;
    std::byte rounded[8];
    for (float& value : sum) {
      store_element(dtype, static_cast<double>(value), rounded);
      value = static_cast<float>(load_element(dtype, rounded));
    }
    return sum;
  }

  static void add(std::vector<float>& sum, std::vector<float>&& more, bool is_first) {
    if (is_first) return void(sum = std::move(more));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + more[i];
  }

  std::vector<float> reduced(std::size_t step, std::size_t tensor) const {
    const auto ranks = static_cast<std::size_t>(setup_.ranks);
    std::vector<float> result, inner;
    for (std::size_t outer = 0; outer < (first_ ? ranks : passes_); ++outer) {
      for (std::size_t i = 0; i < (first_ ? passes_ : ranks); ++i)
        add(inner, contribution(step, first_ ? outer * passes_ + i : i * passes_ + outer, tensor), i == 0);
      add(result, std::move(inner), outer == 0);
      inner.clear();
    }
    const auto divisor = static_cast<float>(ranks * passes_);
    for (float& value : result) value = value / divisor;
    return result;
  }

  void one_step(std::size_t step) {
    for (std::size_t pass = 0; pass < passes_; ++pass) see();
    zc_exact_sum squares{};
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (!trained(i)) continue;
      states_[i].gradient = reduced(step, i);
      RANK_OK(zc_exact_sum_add_squares(&squares, states_[i].gradient.data(), states_[i].gradient.size(), ZC_DTYPE_F32));
    }
    float factor = 1;
    if (setup_.clip != 0) {
      zc_norm norm{};
      norm.struct_size = sizeof norm;
      RANK_OK(zc_exact_sum_round(&squares, &norm));
      if (norm.norm > setup_.clip) factor = static_cast<float>(setup_.clip / norm.norm);
      result_.norm = norm.norm;
    }
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (!trained(i)) continue;
      State& state = states_[i];
      for (std::size_t k = 0; k < state.master.size(); ++k)
        update_element(state.gradient[k] * factor, state.momentum[k], state.master[k]);
      store(model_.tensors[i], state);
    }
  }

  bool trained(std::size_t tensor) const {
    return model_.tensors[tensor].tied_to.empty() && !model_.tensors[tensor].frozen;
  }

  // What a forward pass is given: units by first appearance, their uses in list order.
  void see() {
    std::vector<std::string> units;
    for (const cli::ManifestUse& use : model_.uses)
      if (std::find(units.begin(), units.end(), use.unit) == units.end()) units.push_back(use.unit);
    for (const std::string& unit : units)
      for (const cli::ManifestUse& use : model_.uses) {
        if (use.unit != unit) continue;
        const State& state = states_[owner_of(use.tensor)];
        result_.seen = digest_bytes(result_.seen, state.stored.data(), state.stored.size());
      }
  }

  const WorldSetup& setup_;
  const std::size_t passes_;
  const bool first_;
  const cli::Manifest model_;
  std::vector<State> states_;
  WorldResult result_{1, 1, 0};
};

}  // namespace zerocomm::test
