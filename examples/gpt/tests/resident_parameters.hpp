// A trainer's other half for tests: every parameter lies in this process, gradients are summed over micro-batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "adamw.hpp"
#include "bf16.hpp"
#include "model.hpp"

namespace gpt {

class ResidentParameters {
 public:
  ResidentParameters(const Manifest& manifest, Dtype dtype, std::uint64_t seed) : manifest_(manifest), dtype_(dtype) {
    for (std::size_t i = 0; i < manifest.tensors.size(); ++i) {
      values.emplace_back(manifest.tensors[i].count);
      initialise(manifest, i, seed, 0, values[i]);
      gradients.emplace_back(manifest.tensors[i].count, 0.0F);
      bf16_.emplace_back(manifest.tensors[i].count);
    }
  }

  // Adds weight * gradient to `gradients` and writes down who was called with what.
  ParamSource source(float weight = 1.0F) {
    ParamSource source;
    source.acquire = [this](std::size_t unit, std::span<const void*> tensors) {
      events.push_back("acquire " + manifest_.units[unit].name);
      for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i] = stored(manifest_.units[unit].first_tensor + i);
    };
    source.release = [this](std::size_t unit) { events.push_back("release " + manifest_.units[unit].name); };
    source.grad_ready = [this, weight](std::size_t tensor, const void* gradient) {
      events.push_back("gradient " + manifest_.tensors[tensor].name);
      handed_over.push_back(gradient);
      std::vector<float>& sum = gradients[tensor];
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * element(gradient, i);
    };
    return source;
  }

  // The gradient of the storage: a tied tensor's part added to its owner's.
  std::vector<float> total_gradient(std::size_t tensor) const {
    std::vector<float> total = gradients[tensor];
    for (std::size_t i = 0; i < manifest_.tensors.size(); ++i) {
      if (manifest_.tensors[i].tied_to != tensor) continue;
      for (std::size_t k = 0; k < total.size(); ++k) total[k] += gradients[i][k];
    }
    return total;
  }

  float element(const void* data, std::size_t index) const {
    if (dtype_ == Dtype::f32) return static_cast<const float*>(data)[index];
    return bf16_to_float(static_cast<const std::uint16_t*>(data)[index]);
  }

  void clear_gradients() {
    for (std::vector<float>& gradient : gradients) gradient.assign(gradient.size(), 0.0F);
  }

  std::vector<std::vector<float>> values;     // per tensor, f32 master values; those of a tied tensor are not used
  std::vector<std::vector<float>> gradients;  // per tensor, tied parts apart
  std::vector<std::string> events;
  std::vector<const void*> handed_over;

 private:
  const void* stored(std::size_t tensor) {
    if (dtype_ == Dtype::f32) return values[tensor].data();
    float_to_bf16(values[tensor].data(), bf16_[tensor].data(), values[tensor].size());
    return bf16_[tensor].data();
  }

  const Manifest& manifest_;
  Dtype dtype_;
  std::vector<std::vector<std::uint16_t>> bf16_;
};

}  // namespace gpt
