// The layers of the model except attention, each as a forward and a backward function on plain f32 arrays.
// N is the number of tokens in the micro-batch, d the width. Arrays are row-major, one row a token.
// Backward functions overwrite parameter gradients (each is produced once per pass); what they do to the
// gradient of their input is said in their names and comments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gemm.hpp"

namespace gpt {

// x[N, d] = table[V, d] row tokens[N]; the gradient of the table is [V, d], zero where no token points.
void embed(std::span<const std::uint8_t> tokens, const float* table, float* x, std::size_t width);
void embed_backward(std::span<const std::uint8_t> tokens, const float* grad_x, float* grad_table,
                    std::size_t vocabulary, std::size_t width);

// x[N, d] += table[T, d] row (n mod T); the gradient of the table is [T, d].
void add_positions(const float* table, float* x, std::size_t token_count, std::size_t context, std::size_t width);
void add_positions_backward(const float* grad_x, float* grad_table, std::size_t token_count, std::size_t context,
                            std::size_t width);

// y[N, d] = (x - mean) * rstd * weight[d] + bias[d]; normalised[N, d] and rstd[N] are kept for backward.
void layer_norm(const float* x, const float* weight, const float* bias, float* y, float* normalised, float* rstd,
                std::size_t token_count, std::size_t width);
// Adds to grad_x[N, d]: the residual stream branches before a layer norm, so its gradient is a sum.
void layer_norm_backward(const float* grad_y, const float* normalised, const float* rstd, const float* weight,
                         float* grad_x, float* grad_weight, float* grad_bias, std::size_t token_count,
                         std::size_t width);

// y[N, out] = x[N, in] weight[out, in]^T + bias[out].
struct DenseShape {
  std::size_t token_count;
  std::size_t in;
  std::size_t out;
};
void dense(Gemm& gemm, DenseShape shape, const float* x, const float* weight, const float* bias, float* y);
// Overwrites grad_x[N, in].
void dense_backward(Gemm& gemm, DenseShape shape, const float* grad_y, const float* x, const float* weight,
                    float* grad_x, float* grad_weight, float* grad_bias);

// y[count] = gelu(x), the tanh form of GPT-2. Backward: grad_x may be grad_y.
void gelu(const float* x, float* y, std::size_t count);
void gelu_backward(const float* x, const float* grad_y, float* grad_x, std::size_t count);

// x[count] += y[count]. Its backward is a copy, so it has none.
void add_residual(float* x, const float* y, std::size_t count);

// Mean over N of -log softmax(logits[N, V])[target]. Turns logits into their gradient in place.
double softmax_cross_entropy(float* logits, std::span<const std::uint8_t> targets, std::size_t vocabulary);

}  // namespace gpt
