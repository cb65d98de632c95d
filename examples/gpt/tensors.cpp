// The tensor list of a GPT-2 and its initial values.
#include "tensors.hpp"

#include <cmath>
#include <utility>

#include "counter_random.hpp"

namespace gpt {
namespace {

constexpr float kDeviation = 0.02F;

class Builder {
 public:
  void begin_unit(std::string name) { manifest_.units.push_back({std::move(name), manifest_.tensors.size(), 0}); }

  void add(std::string name, std::vector<std::size_t> shape, Init init, float deviation = 0.0F) {
    std::size_t count = 1;
    for (const std::size_t extent : shape) count *= extent;
    manifest_.tensors.push_back(
        {std::move(name), std::move(shape), count, manifest_.units.size() - 1, init, deviation, std::nullopt});
    manifest_.units.back().tensor_count += 1;
  }

  void add_layer_norm(const std::string& name, std::size_t width) {
    add(name + ".weight", {width}, Init::ones);
    add(name + ".bias", {width}, Init::zeros);
  }

  void add_dense(const std::string& name, std::size_t out, std::size_t in, float deviation) {
    add(name + ".weight", {out, in}, Init::normal, deviation);
    add(name + ".bias", {out}, Init::zeros);
  }

  void add_tied(std::string name, std::size_t owner) {
    add(std::move(name), manifest_.tensors[owner].shape, Init::normal, kDeviation);
    manifest_.tensors.back().tied_to = owner;
  }

  Manifest take() { return std::move(manifest_); }

 private:
  Manifest manifest_;
};

}  // namespace

std::size_t Manifest::parameter_count() const {
  std::size_t total = 0;
  for (const Tensor& tensor : tensors) total += tensor.tied_to ? 0 : tensor.count;
  return total;
}

Manifest make_manifest(const Config& config) {
  const std::size_t d = config.width;
  // 2 L branches add into the residual stream; this keeps its variance independent of the depth.
  const float residual = kDeviation / std::sqrt(static_cast<float>(2 * config.layers));

  Builder builder;
  builder.begin_unit("wte");
  builder.add("wte.weight", {config.vocabulary, d}, Init::normal, kDeviation);
  builder.begin_unit("wpe");
  builder.add("wpe.weight", {config.context, d}, Init::normal, kDeviation);
  for (std::size_t layer = 0; layer < config.layers; ++layer) {
    const std::string prefix = "h." + std::to_string(layer) + ".";
    builder.begin_unit(prefix + "attn");
    builder.add_layer_norm(prefix + "ln_1", d);
    builder.add_dense(prefix + "attn.c_attn", 3 * d, d, kDeviation);
    builder.add_dense(prefix + "attn.c_proj", d, d, residual);
    builder.begin_unit(prefix + "mlp");
    builder.add_layer_norm(prefix + "ln_2", d);
    builder.add_dense(prefix + "mlp.c_fc", 4 * d, d, kDeviation);
    builder.add_dense(prefix + "mlp.c_proj", d, 4 * d, residual);
  }
  builder.begin_unit("ln_f");
  builder.add_layer_norm("ln_f", d);
  builder.begin_unit("lm_head");
  builder.add_tied("lm_head.weight", 0);
  return builder.take();
}

void initialise(const Manifest& manifest, std::size_t tensor, std::uint64_t seed, std::size_t first,
                std::span<float> values) {
  const std::size_t storage = manifest.tensors[tensor].tied_to.value_or(tensor);
  const Tensor& description = manifest.tensors[storage];
  const std::uint64_t key = derive_key(seed, storage);
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (description.init) {
      case Init::zeros:
        values[i] = 0.0F;
        break;
      case Init::ones:
        values[i] = 1.0F;
        break;
      case Init::normal:
        values[i] = description.deviation * normal_at(key, first + i);
        break;
    }
  }
}

}  // namespace gpt
