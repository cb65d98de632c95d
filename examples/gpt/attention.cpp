// Attention head by head. The rows of a head are strided views into qkv, so nothing is copied or transposed.
#include "attention.hpp"

#include <algorithm>
#include <cmath>

#include "exponential.hpp"

namespace gpt {
namespace {

// Where one head of one batch row lies.
struct Head {
  std::size_t qkv;  // offset of its queries; keys and values follow at +d and +2d
  std::size_t y;
  std::size_t probabilities;
};

template <class Visit>
void for_each_head(const Config& config, std::size_t batch, Visit visit) {
  for (std::size_t row = 0; row < batch; ++row) {
    for (std::size_t head = 0; head < config.heads; ++head) {
      const std::size_t token = row * config.context;
      const std::size_t column = head * config.head_width();
      visit(Head{token * 3 * config.width + column, token * config.width + column,
                 (row * config.heads + head) * config.context * config.context});
    }
  }
}

// Softmax of scale * scores[0..t] for every row t; the rest of the row becomes zero.
void causal_softmax(float* scores, std::size_t context, float scale) {
  for (std::size_t t = 0; t < context; ++t, scores += context) {
    const std::size_t seen = t + 1;
    const float largest = *std::max_element(scores, scores + seen);
    for (std::size_t i = 0; i < seen; ++i) scores[i] = exponential(scale * (scores[i] - largest));
    float sum = 0.0F;
    for (std::size_t i = 0; i < seen; ++i) sum += scores[i];
    for (std::size_t i = 0; i < seen; ++i) scores[i] /= sum;
    std::fill(scores + seen, scores + context, 0.0F);
  }
}

// Turns the gradient of the probabilities into that of the unscaled scores.
void causal_softmax_backward(float* grad, const float* probabilities, std::size_t context, float scale) {
  for (std::size_t t = 0; t < context; ++t, grad += context, probabilities += context) {
    const std::size_t seen = t + 1;
    float dot = 0.0F;
    for (std::size_t i = 0; i < seen; ++i) dot += grad[i] * probabilities[i];
    for (std::size_t i = 0; i < seen; ++i) grad[i] = scale * probabilities[i] * (grad[i] - dot);
    std::fill(grad + seen, grad + context, 0.0F);
  }
}

float score_scale(const Config& config) { return 1.0F / std::sqrt(static_cast<float>(config.head_width())); }

}  // namespace

void Attention::forward(Gemm& gemm, const float* qkv, float* probabilities, float* y) const {
  const std::size_t T = config_.context, d = config_.width, w = config_.head_width();
  for_each_head(config_, batch_, [&](const Head& head) {
    const MatrixView query = rows_of(qkv + head.qkv, 3 * d);
    const MatrixView key = rows_of(qkv + head.qkv + d, 3 * d);
    const MatrixView value = rows_of(qkv + head.qkv + 2 * d, 3 * d);
    float* p = probabilities + head.probabilities;
    gemm(T, T, w, query, key.transposed(), p, T);
    causal_softmax(p, T, score_scale(config_));
    gemm(T, w, T, rows_of(p, T), value, y + head.y, d);
  });
}

void Attention::backward(Gemm& gemm, const float* grad_y, const float* qkv, const float* probabilities,
                         float* grad_qkv) {
  const std::size_t T = config_.context, d = config_.width, w = config_.head_width();
  float* grad_scores = scores_.data();
  for_each_head(config_, batch_, [&](const Head& head) {
    const MatrixView query = rows_of(qkv + head.qkv, 3 * d);
    const MatrixView key = rows_of(qkv + head.qkv + d, 3 * d);
    const MatrixView value = rows_of(qkv + head.qkv + 2 * d, 3 * d);
    const MatrixView out = rows_of(grad_y + head.y, d);
    const float* p = probabilities + head.probabilities;
    float* grad_query = grad_qkv + head.qkv;
    gemm(T, T, w, out, value.transposed(), grad_scores, T);
    gemm(T, w, T, rows_of(p, T).transposed(), out, grad_query + 2 * d, 3 * d);
    causal_softmax_backward(grad_scores, p, T, score_scale(config_));
    gemm(T, w, T, rows_of(grad_scores, T), key, grad_query, 3 * d);
    gemm(T, w, T, rows_of(grad_scores, T).transposed(), query, grad_query + d, 3 * d);
  });
}

}  // namespace gpt
