// The seam between the model and whoever keeps its parameters. The model asks for one unit at a time, right
// before it computes with it, and hands over each gradient as soon as it is complete. A trainer that shards the
// parameters fills in three callbacks; the model does not know where parameters live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tensors.hpp"

namespace gpt {

enum class Dtype { f32, bf16 };  // of parameters and gradients as they cross the seam; the model computes in f32

inline constexpr std::size_t element_bytes(Dtype dtype) { return dtype == Dtype::f32 ? 4 : 2; }

// The callbacks may throw; the pass then ends with that exception and the next forward starts afresh.
struct ParamSource {
  // Fill in one pointer per tensor of the unit, in manifest order; they must stay valid until release.
  std::function<void(std::size_t unit, std::span<const void*> tensors)> acquire;
  std::function<void(std::size_t unit)> release;
  // The gradient of one tensor, in the dtype of the seam. Its memory belongs to the model and keeps its content
  // until the next backward.
  std::function<void(std::size_t tensor, const void* gradient)> grad_ready;
};

// Holds at most one unit, as f32: borrowed pointers for f32, a widened copy (exact) for bf16.
class HeldUnit {
 public:
  HeldUnit(const Manifest& manifest, Dtype dtype);

  // Calls use(pointers), one f32 pointer per tensor of the unit, between acquire and release.
  template <class Use>
  void with(const ParamSource& source, std::size_t unit, Use use) {
    source.acquire(unit, std::span(borrowed_).first(manifest_.units[unit].tensor_count));
    use(widened(unit));
    source.release(unit);
  }

  std::size_t buffer_bytes() const { return copy_.size() * sizeof(float); }

 private:
  const float* const* widened(std::size_t unit);

  const Manifest& manifest_;
  Dtype dtype_;
  std::vector<const void*> borrowed_;
  std::vector<const float*> pointers_;
  std::vector<float> copy_;  // bf16 only: as large as the largest unit
};

// One gradient buffer per tensor, allocated once. For bf16 a unit is computed in f32 and each element is rounded once.
class Gradients {
 public:
  Gradients(const Manifest& manifest, Dtype dtype);

  float* working(std::size_t tensor);  // where to write the f32 gradient

  // Hands over the gradients of a unit whose working gradients are complete, last tensor first.
  void hand_over(const ParamSource& source, std::size_t unit);

  std::size_t buffer_bytes() const;

 private:
  const Manifest& manifest_;
  Dtype dtype_;
  std::vector<std::vector<float>> full_;             // f32: per tensor
  std::vector<std::vector<std::uint16_t>> rounded_;  // bf16: per tensor
  std::vector<float> scratch_;                       // bf16: one unit in f32
};

}  // namespace gpt
