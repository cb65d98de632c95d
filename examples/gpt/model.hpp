// GPT-2 over bytes: forward and backward of one micro-batch, unit by unit.
// Usage: Model model(kTiny, 4, Dtype::f32);  loss = model.forward(rows, source);  model.backward(source);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention.hpp"
#include "config.hpp"
#include "gemm.hpp"
#include "ops.hpp"
#include "parameters.hpp"
#include "tensors.hpp"

namespace gpt {

// Everything is allocated by the constructor. One thread at a time; several models are independent of each other.
class Model {
 public:
  Model(const Config& config, std::size_t batch, Dtype dtype);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Manifest& manifest() const { return manifest_; }
  std::size_t batch() const { return batch_; }

  // rows: batch() rows of context + 1 bytes; every byte but the first of a row is to be predicted from those
  // before it. Returns the mean loss in nats per byte. Acquires wte, wpe, h.0.attn, h.0.mlp, ..., ln_f, and wte
  // again, whose storage lm_head uses.
  double forward(std::span<const std::uint8_t> rows, const ParamSource& source);

  // Gradient of the loss of the last forward. Visits the units in reverse order and hands over every tensor once:
  // lm_head.weight (the output's part of the tied matrix) first, wte.weight (the input's part) last. Acquires a
  // unit only where the values are needed; wpe, and wte as an embedding, are not.
  void backward(const ParamSource& source);

  // Memory for activations, gradients and everything else but parameters.
  std::size_t buffer_bytes() const;

 private:
  struct LayerNormKept {
    std::vector<float> normalised, rstd, y;
  };
  struct LayerKept {
    LayerNormKept ln_1, ln_2;
    std::vector<float> qkv, probabilities, heads;  // attention
    std::vector<float> hidden, activated;          // mlp
  };

  LayerNormKept make_layer_norm_kept() const;
  void layer_norm_forward(const float* const* weights, LayerNormKept& kept);
  void layer_norm_backward_into_stream(const float* weight, const LayerNormKept& kept, std::size_t first_tensor);
  void attn_forward(const float* const* weights, LayerKept& kept);
  void mlp_forward(const float* const* weights, LayerKept& kept);
  void attn_backward(const float* const* weights, const LayerKept& kept, std::size_t first_tensor);
  void mlp_backward(const float* const* weights, const LayerKept& kept, std::size_t first_tensor);
  void dense_backward_of(DenseShape shape, const float* grad_y, const std::vector<float>& x, const float* weight,
                         float* grad_x, std::size_t weight_tensor);

  std::size_t token_count() const { return batch_ * config_.context; }

  Config config_;
  std::size_t batch_;
  Manifest manifest_;
  HeldUnit held_;
  Gradients gradients_;
  Gemm gemm_;
  Attention attention_;

  std::vector<std::uint8_t> inputs_, targets_;
  std::vector<float> stream_;  // the residual stream [N, d]; during backward, its gradient
  std::vector<float> narrow_;  // scratch [N, d]
  std::vector<float> wide_;    // scratch [N, 4 d]
  std::vector<float> logits_;  // [N, V]; after the loss, their gradient
  std::vector<LayerKept> layers_;
  LayerNormKept ln_f_;
};

}  // namespace gpt
