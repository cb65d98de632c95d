// The order of units, and within each unit the order of layers. Arithmetic is in ops, attention and gemm.
#include "model.hpp"

#include <algorithm>
#include <stdexcept>

namespace gpt {
namespace {

// Positions in the manifest (tensors.cpp).
constexpr std::size_t kWteUnit = 0;
constexpr std::size_t kWpeUnit = 1;
std::size_t attn_unit(std::size_t layer) { return 2 + 2 * layer; }
std::size_t mlp_unit(std::size_t layer) { return 3 + 2 * layer; }
std::size_t ln_f_unit(const Config& config) { return 2 + 2 * config.layers; }
std::size_t lm_head_unit(const Config& config) { return 3 + 2 * config.layers; }

// Positions of the tensors inside an attn or mlp unit: layer norm, dense in, dense out.
enum : std::size_t { kNormWeight, kNormBias, kInWeight, kInBias, kOutWeight, kOutBias };

}  // namespace

Model::Model(const Config& config, std::size_t batch, Dtype dtype)
    : config_(config),
      batch_(batch),
      manifest_(make_manifest(config)),
      held_(manifest_, dtype),
      gradients_(manifest_, dtype),
      attention_(config, batch),
      inputs_(token_count()),
      targets_(token_count()),
      stream_(token_count() * config.width),
      narrow_(token_count() * config.width),
      wide_(token_count() * 4 * config.width),
      logits_(token_count() * config.vocabulary),
      layers_(config.layers),
      ln_f_(make_layer_norm_kept()) {
  const std::size_t n = token_count();
  const std::size_t d = config.width;
  for (LayerKept& layer : layers_) {
    layer.ln_1 = make_layer_norm_kept();
    layer.ln_2 = make_layer_norm_kept();
    layer.qkv.resize(n * 3 * d);
    layer.probabilities.resize(attention_.probability_count());
    layer.heads.resize(n * d);
    layer.hidden.resize(n * 4 * d);
    layer.activated.resize(n * 4 * d);
  }
}

std::size_t Model::buffer_bytes() const {
  const auto norm_count = [](const LayerNormKept& kept) {
    return kept.normalised.size() + kept.rstd.size() + kept.y.size();
  };
  std::size_t count = stream_.size() + narrow_.size() + wide_.size() + logits_.size() + norm_count(ln_f_);
  for (const LayerKept& layer : layers_)
    count += norm_count(layer.ln_1) + norm_count(layer.ln_2) + layer.qkv.size() + layer.probabilities.size() +
             layer.heads.size() + layer.hidden.size() + layer.activated.size();
  return count * sizeof(float) + inputs_.size() + targets_.size() + held_.buffer_bytes() + gradients_.buffer_bytes() +
         gemm_.buffer_bytes() + attention_.buffer_bytes();
}

double Model::forward(std::span<const std::uint8_t> rows, const ParamSource& source) {
  const std::size_t T = config_.context;
  const std::size_t n = token_count();
  const std::size_t d = config_.width;
  if (rows.size() != batch_ * (T + 1)) throw std::invalid_argument("a micro-batch is batch rows of context + 1 bytes");
  for (std::size_t row = 0; row < batch_; ++row) {
    std::copy_n(rows.data() + row * (T + 1), T, inputs_.data() + row * T);
    std::copy_n(rows.data() + row * (T + 1) + 1, T, targets_.data() + row * T);
  }

  held_.with(source, kWteUnit, [&](const float* const* weights) { embed(inputs_, weights[0], stream_.data(), d); });
  held_.with(source, kWpeUnit,
             [&](const float* const* weights) { add_positions(weights[0], stream_.data(), n, T, d); });
  for (std::size_t i = 0; i < config_.layers; ++i) {
    held_.with(source, attn_unit(i), [&](const float* const* weights) { attn_forward(weights, layers_[i]); });
    held_.with(source, mlp_unit(i), [&](const float* const* weights) { mlp_forward(weights, layers_[i]); });
  }
  held_.with(source, ln_f_unit(config_), [&](const float* const* weights) { layer_norm_forward(weights, ln_f_); });
  held_.with(source, kWteUnit, [&](const float* const* weights) {
    gemm_(n, config_.vocabulary, d, rows_of(ln_f_.y.data(), d), rows_of(weights[0], d).transposed(), logits_.data(),
          config_.vocabulary);
  });
  return softmax_cross_entropy(logits_.data(), targets_, config_.vocabulary);
}

void Model::backward(const ParamSource& source) {
  const std::size_t n = token_count();
  const std::size_t d = config_.width;
  const std::size_t V = config_.vocabulary;

  held_.with(source, kWteUnit, [&](const float* const* weights) {
    const MatrixView grad_logits = rows_of(logits_.data(), V);
    gemm_(n, d, V, grad_logits, rows_of(weights[0], d), narrow_.data(), d);
    gemm_(V, d, n, grad_logits.transposed(), rows_of(ln_f_.y.data(), d),
          gradients_.working(manifest_.units[lm_head_unit(config_)].first_tensor), d);
  });
  gradients_.hand_over(source, lm_head_unit(config_));

  // From here on stream_ holds the gradient of the residual stream.
  std::fill(stream_.begin(), stream_.end(), 0.0F);
  held_.with(source, ln_f_unit(config_), [&](const float* const* weights) {
    layer_norm_backward_into_stream(weights[kNormWeight], ln_f_, manifest_.units[ln_f_unit(config_)].first_tensor);
  });
  gradients_.hand_over(source, ln_f_unit(config_));

  for (std::size_t i = config_.layers; i-- > 0;) {
    const std::size_t mlp = mlp_unit(i);
    held_.with(source, mlp, [&](const float* const* weights) {
      mlp_backward(weights, layers_[i], manifest_.units[mlp].first_tensor);
    });
    gradients_.hand_over(source, mlp);
    const std::size_t attn = attn_unit(i);
    held_.with(source, attn, [&](const float* const* weights) {
      attn_backward(weights, layers_[i], manifest_.units[attn].first_tensor);
    });
    gradients_.hand_over(source, attn);
  }

  const std::size_t wpe = manifest_.units[kWpeUnit].first_tensor;
  add_positions_backward(stream_.data(), gradients_.working(wpe), n, config_.context, d);
  gradients_.hand_over(source, kWpeUnit);
  const std::size_t wte = manifest_.units[kWteUnit].first_tensor;
  embed_backward(inputs_, stream_.data(), gradients_.working(wte), V, d);
  gradients_.hand_over(source, kWteUnit);
}

// stream += c_proj(attention(c_attn(ln_1(stream))))
void Model::attn_forward(const float* const* weights, LayerKept& kept) {
  const std::size_t n = token_count();
  const std::size_t d = config_.width;
  layer_norm_forward(weights, kept.ln_1);
  dense(gemm_, {n, d, 3 * d}, kept.ln_1.y.data(), weights[kInWeight], weights[kInBias], kept.qkv.data());
  attention_.forward(gemm_, kept.qkv.data(), kept.probabilities.data(), kept.heads.data());
  dense(gemm_, {n, d, d}, kept.heads.data(), weights[kOutWeight], weights[kOutBias], narrow_.data());
  add_residual(stream_.data(), narrow_.data(), n * d);
}

void Model::attn_backward(const float* const* weights, const LayerKept& kept, std::size_t first_tensor) {
  const std::size_t n = token_count();
  const std::size_t d = config_.width;
  dense_backward_of({n, d, d}, stream_.data(), kept.heads, weights[kOutWeight], narrow_.data(),
                    first_tensor + kOutWeight);
  attention_.backward(gemm_, narrow_.data(), kept.qkv.data(), kept.probabilities.data(), wide_.data());
  dense_backward_of({n, d, 3 * d}, wide_.data(), kept.ln_1.y, weights[kInWeight], narrow_.data(),
                    first_tensor + kInWeight);
  layer_norm_backward_into_stream(weights[kNormWeight], kept.ln_1, first_tensor);
}

// stream += c_proj(gelu(c_fc(ln_2(stream))))
void Model::mlp_forward(const float* const* weights, LayerKept& kept) {
  const std::size_t n = token_count();
  const std::size_t d = config_.width;
  layer_norm_forward(weights, kept.ln_2);
  dense(gemm_, {n, d, 4 * d}, kept.ln_2.y.data(), weights[kInWeight], weights[kInBias], kept.hidden.data());
  gelu(kept.hidden.data(), kept.activated.data(), n * 4 * d);
  dense(gemm_, {n, 4 * d, d}, kept.activated.data(), weights[kOutWeight], weights[kOutBias], narrow_.data());
  add_residual(stream_.data(), narrow_.data(), n * d);
}

void Model::mlp_backward(const float* const* weights, const LayerKept& kept, std::size_t first_tensor) {
  const std::size_t n = token_count();
  const std::size_t d = config_.width;
  dense_backward_of({n, 4 * d, d}, stream_.data(), kept.activated, weights[kOutWeight], wide_.data(),
                    first_tensor + kOutWeight);
  gelu_backward(kept.hidden.data(), wide_.data(), wide_.data(), n * 4 * d);
  dense_backward_of({n, d, 4 * d}, wide_.data(), kept.ln_2.y, weights[kInWeight], narrow_.data(),
                    first_tensor + kInWeight);
  layer_norm_backward_into_stream(weights[kNormWeight], kept.ln_2, first_tensor);
}

void Model::layer_norm_forward(const float* const* weights, LayerNormKept& kept) {
  layer_norm(stream_.data(), weights[kNormWeight], weights[kNormBias], kept.y.data(), kept.normalised.data(),
             kept.rstd.data(), token_count(), config_.width);
}

// narrow_ holds the gradient of the layer norm's output; first_tensor is its weight, followed by its bias.
void Model::layer_norm_backward_into_stream(const float* weight, const LayerNormKept& kept, std::size_t first_tensor) {
  layer_norm_backward(narrow_.data(), kept.normalised.data(), kept.rstd.data(), weight, stream_.data(),
                      gradients_.working(first_tensor + kNormWeight), gradients_.working(first_tensor + kNormBias),
                      token_count(), config_.width);
}

// weight_tensor is followed by its bias.
void Model::dense_backward_of(DenseShape shape, const float* grad_y, const std::vector<float>& x, const float* weight,
                              float* grad_x, std::size_t weight_tensor) {
  dense_backward(gemm_, shape, grad_y, x.data(), weight, grad_x, gradients_.working(weight_tensor),
                 gradients_.working(weight_tensor + 1));
}

Model::LayerNormKept Model::make_layer_norm_kept() const {
  const std::size_t n = token_count();
  return {std::vector<float>(n * config_.width), std::vector<float>(n), std::vector<float>(n * config_.width)};
}

}  // namespace gpt
