// Causal multi-head self-attention: token t of a row sees tokens 0..t of the same row.
#pragma once

#include <cstddef>
#include <vector>

#include "config.hpp"
#include "gemm.hpp"

namespace gpt {

// Shapes, with B rows of T tokens, N = B T, h heads of width w = d / h:
//   qkv            [N, 3 d]     per token: queries of all heads, then keys, then values
//   probabilities  [B, h, T, T] kept for backward; zero right of the diagonal
//   y              [N, d]       heads side by side
class Attention {
 public:
  Attention(const Config& config, std::size_t batch) : config_(config), batch_(batch), scores_(square()) {}

  std::size_t probability_count() const { return batch_ * config_.heads * square(); }
  std::size_t buffer_bytes() const { return scores_.size() * sizeof(float); }

  void forward(Gemm& gemm, const float* qkv, float* probabilities, float* y) const;
  // Overwrites grad_qkv[N, 3 d].
  void backward(Gemm& gemm, const float* grad_y, const float* qkv, const float* probabilities, float* grad_qkv);

 private:
  std::size_t square() const { return config_.context * config_.context; }

  Config config_;
  std::size_t batch_;
  std::vector<float> scores_;  // gradient of one head's scores
};

}  // namespace gpt
