// Forward and backward of the simple layers. Sums run in a fixed order (tokens ascending), so equal inputs give
// equal bits wherever they are computed.
#include "ops.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "exponential.hpp"

namespace gpt {
namespace {

constexpr float kLayerNormEpsilon = 1e-5F;
constexpr float kGeluScale = 1.5957691216F;  // 2 sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715F;
constexpr std::size_t kLanes = 16;

// Sum of f(i) over i in lanes i mod 16, then lane after lane: an order that is fixed and that vectors can follow.
template <class Term>
[[gnu::always_inline]] inline float lane_sum(std::size_t count, Term term) {
  float lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) lanes[lane] += term(i);
  float sum = lanes[0];
  for (std::size_t lane = 1; lane < kLanes; ++lane) sum += lanes[lane];
  return sum;
}

// 1 / (1 + exp(-2 u)) with 2 u = 2 sqrt(2/pi) (x + 0.044715 x^3); gelu is x times this, as (1 + tanh u) / 2 equals it.
inline float gelu_gate(float x) { return 1.0F / (1.0F + exponential(-kGeluScale * (x + kGeluCubic * x * x * x))); }

}  // namespace

void embed(std::span<const std::uint8_t> tokens, const float* table, float* x, std::size_t width) {
  for (std::size_t n = 0; n < tokens.size(); ++n) std::copy_n(table + tokens[n] * width, width, x + n * width);
}

void embed_backward(std::span<const std::uint8_t> tokens, const float* grad_x, float* grad_table,
                    std::size_t vocabulary, std::size_t width) {
  std::fill_n(grad_table, vocabulary * width, 0.0F);
  for (std::size_t n = 0; n < tokens.size(); ++n)
    add_residual(grad_table + tokens[n] * width, grad_x + n * width, width);
}

void add_positions(const float* table, float* x, std::size_t token_count, std::size_t context, std::size_t width) {
  for (std::size_t n = 0; n < token_count; ++n) add_residual(x + n * width, table + (n % context) * width, width);
}

void add_positions_backward(const float* grad_x, float* grad_table, std::size_t token_count, std::size_t context,
                            std::size_t width) {
  std::fill_n(grad_table, context * width, 0.0F);
  for (std::size_t n = 0; n < token_count; ++n) {
    add_residual(grad_table + (n % context) * width, grad_x + n * width, width);
  }
}

void layer_norm(const float* x, const float* weight, const float* bias, float* y, float* normalised, float* rstd,
                std::size_t token_count, std::size_t width) {
  const float inverse_width = 1.0F / static_cast<float>(width);
  for (std::size_t n = 0; n < token_count; ++n, x += width, y += width, normalised += width) {
    const float mean = lane_sum(width, [&](std::size_t i) { return x[i]; }) * inverse_width;
    const float variance =
        lane_sum(width, [&](std::size_t i) { return (x[i] - mean) * (x[i] - mean); }) * inverse_width;
    rstd[n] = 1.0F / std::sqrt(variance + kLayerNormEpsilon);
    for (std::size_t i = 0; i < width; ++i) {
      normalised[i] = (x[i] - mean) * rstd[n];
      y[i] = normalised[i] * weight[i] + bias[i];
    }
  }
}

void layer_norm_backward(const float* grad_y, const float* normalised, const float* rstd, const float* weight,
                         float* grad_x, float* grad_weight, float* grad_bias, std::size_t token_count,
                         std::size_t width) {
  const float inverse_width = 1.0F / static_cast<float>(width);
  std::fill_n(grad_weight, width, 0.0F);
  std::fill_n(grad_bias, width, 0.0F);
  for (std::size_t n = 0; n < token_count; ++n, grad_y += width, normalised += width, grad_x += width) {
    // With g = grad_y * weight: grad_x = rstd (g - mean(g) - normalised * mean(g * normalised)).
    const float mean = lane_sum(width, [&](std::size_t i) { return grad_y[i] * weight[i]; }) * inverse_width;
    const float slope =
        lane_sum(width, [&](std::size_t i) { return grad_y[i] * weight[i] * normalised[i]; }) * inverse_width;
    for (std::size_t i = 0; i < width; ++i) {
      grad_x[i] += rstd[n] * (grad_y[i] * weight[i] - mean - normalised[i] * slope);
      grad_weight[i] += grad_y[i] * normalised[i];
      grad_bias[i] += grad_y[i];
    }
  }
}

void dense(Gemm& gemm, DenseShape shape, const float* x, const float* weight, const float* bias, float* y) {
  for (std::size_t n = 0; n < shape.token_count; ++n) std::copy_n(bias, shape.out, y + n * shape.out);
  gemm(shape.token_count, shape.out, shape.in, rows_of(x, shape.in), rows_of(weight, shape.in).transposed(), y,
       shape.out, Add::yes);
}

void dense_backward(Gemm& gemm, DenseShape shape, const float* grad_y, const float* x, const float* weight,
                    float* grad_x, float* grad_weight, float* grad_bias) {
  const MatrixView grad_rows = rows_of(grad_y, shape.out);
  gemm(shape.token_count, shape.in, shape.out, grad_rows, rows_of(weight, shape.in), grad_x, shape.in);
  gemm(shape.out, shape.in, shape.token_count, grad_rows.transposed(), rows_of(x, shape.in), grad_weight, shape.in);
  std::fill_n(grad_bias, shape.out, 0.0F);
  for (std::size_t n = 0; n < shape.token_count; ++n) add_residual(grad_bias, grad_y + n * shape.out, shape.out);
}

void gelu(const float* x, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = x[i] * gelu_gate(x[i]);
}

void gelu_backward(const float* x, const float* grad_y, float* grad_x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float gate = gelu_gate(x[i]);
    const float slope = kGeluScale * (1.0F + 3.0F * kGeluCubic * x[i] * x[i]);
    grad_x[i] = grad_y[i] * (gate + x[i] * gate * (1.0F - gate) * slope);
  }
}

void add_residual(float* x, const float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x[i] += y[i];
}

double softmax_cross_entropy(float* logits, std::span<const std::uint8_t> targets, std::size_t vocabulary) {
  const float inverse_count = 1.0F / static_cast<float>(targets.size());
  double loss = 0.0;
  for (const std::uint8_t target : targets) {
    const float largest = *std::max_element(logits, logits + vocabulary);
    const double shifted_target = static_cast<double>(logits[target]) - static_cast<double>(largest);
    for (std::size_t v = 0; v < vocabulary; ++v) logits[v] = exponential(logits[v] - largest);
    const float sum = lane_sum(vocabulary, [&](std::size_t v) { return logits[v]; });
    loss += std::log(static_cast<double>(sum)) - shifted_target;
    const float scale = inverse_count / sum;
    for (std::size_t v = 0; v < vocabulary; ++v) logits[v] *= scale;
    logits[target] -= inverse_count;
    logits += vocabulary;
  }
  return loss / static_cast<double>(targets.size());
}

}  // namespace gpt
