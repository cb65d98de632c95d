// Conversion at the seam: bf16 parameters are widened one unit at a time, bf16 gradients rounded once.
#include "parameters.hpp"

#include <algorithm>

#include "bf16.hpp"

namespace gpt {
namespace {

std::size_t unit_elements(const Manifest& manifest, const Unit& unit) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < unit.tensor_count; ++i) total += manifest.tensors[unit.first_tensor + i].count;
  return total;
}

std::size_t largest_unit_elements(const Manifest& manifest) {
  std::size_t largest = 0;
  for (const Unit& unit : manifest.units) largest = std::max(largest, unit_elements(manifest, unit));
  return largest;
}

// Elements of the tensors of the same unit that stand before this one.
std::size_t offset_in_unit(const Manifest& manifest, std::size_t tensor) {
  std::size_t offset = 0;
  const Unit& unit = manifest.units[manifest.tensors[tensor].unit];
  for (std::size_t i = unit.first_tensor; i < tensor; ++i) offset += manifest.tensors[i].count;
  return offset;
}

}  // namespace

HeldUnit::HeldUnit(const Manifest& manifest, Dtype dtype) : manifest_(manifest), dtype_(dtype) {
  std::size_t most_tensors = 0;
  for (const Unit& unit : manifest.units) most_tensors = std::max(most_tensors, unit.tensor_count);
  borrowed_.resize(most_tensors);
  pointers_.resize(most_tensors);
  if (dtype == Dtype::bf16) copy_.resize(largest_unit_elements(manifest));
}

const float* const* HeldUnit::widened(std::size_t unit) {
  const Unit& held = manifest_.units[unit];
  float* next = copy_.data();
  for (std::size_t i = 0; i < held.tensor_count; ++i) {
    if (dtype_ == Dtype::f32) {
      pointers_[i] = static_cast<const float*>(borrowed_[i]);
    } else {
      const std::size_t count = manifest_.tensors[held.first_tensor + i].count;
      bf16_to_float(static_cast<const std::uint16_t*>(borrowed_[i]), next, count);
      pointers_[i] = next;
      next += count;
    }
  }
  return pointers_.data();
}

Gradients::Gradients(const Manifest& manifest, Dtype dtype) : manifest_(manifest), dtype_(dtype) {
  for (const Tensor& tensor : manifest.tensors) {
    if (dtype == Dtype::f32) full_.emplace_back(tensor.count);
    if (dtype == Dtype::bf16) rounded_.emplace_back(tensor.count);
  }
  if (dtype == Dtype::bf16) scratch_.resize(largest_unit_elements(manifest));
}

float* Gradients::working(std::size_t tensor) {
  if (dtype_ == Dtype::f32) return full_[tensor].data();
  return scratch_.data() + offset_in_unit(manifest_, tensor);
}

void Gradients::hand_over(const ParamSource& source, std::size_t unit) {
  const Unit& done = manifest_.units[unit];
  for (std::size_t tensor = done.first_tensor + done.tensor_count; tensor-- > done.first_tensor;) {
    if (dtype_ == Dtype::f32) {
      source.grad_ready(tensor, full_[tensor].data());
    } else {
      float_to_bf16(working(tensor), rounded_[tensor].data(), rounded_[tensor].size());
      source.grad_ready(tensor, rounded_[tensor].data());
    }
  }
}

std::size_t Gradients::buffer_bytes() const {
  std::size_t bytes = scratch_.size() * sizeof(float);
  for (const std::vector<float>& gradient : full_) bytes += gradient.size() * sizeof(float);
  for (const std::vector<std::uint16_t>& gradient : rounded_) bytes += gradient.size() * sizeof(std::uint16_t);
  return bytes;
}

}  // namespace gpt
