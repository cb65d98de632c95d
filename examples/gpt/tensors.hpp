// What the model is made of: an ordered list of tensors, grouped into units.
// This list is what a sharding library is told once; the order is the order in which forward uses the tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config.hpp"

namespace gpt {

enum class Init { zeros, ones, normal };

struct Tensor {
  std::string name;
  std::vector<std::size_t> shape;  // [out, in] for a dense layer
  std::size_t count = 0;           // elements, the product of the shape
  std::size_t unit = 0;            // index into Manifest::units
  Init init = Init::zeros;
  float deviation = 0.0F;              // standard deviation when init is normal
  std::optional<std::size_t> tied_to;  // index of the tensor whose storage this one uses

  bool decays() const { return shape.size() == 2; }  // weight decay is for matrices only
};

// Tensors that are needed at the same moment: gathered together, released together.
struct Unit {
  std::string name;
  std::size_t first_tensor = 0;
  std::size_t tensor_count = 0;
};

struct Manifest {
  std::vector<Tensor> tensors;
  std::vector<Unit> units;  // wte, wpe, h.0.attn, h.0.mlp, ..., ln_f, lm_head

  std::size_t parameter_count() const;  // elements of all tensors, tied ones not counted again
};

Manifest make_manifest(const Config& config);

// Initial values of elements [first, first + values.size()) of one tensor, as GPT-2 has them. They depend on
// (seed, tensor, element) alone, so a rank may ask for its own shard and gets the same numbers.
void initialise(const Manifest& manifest, std::size_t tensor, std::uint64_t seed, std::size_t first,
                std::span<float> values);

}  // namespace gpt
