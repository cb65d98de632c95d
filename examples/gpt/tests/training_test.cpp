// A whole training run in one process: the loss starts where a uniform guess is and falls.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "adamw.hpp"
#include "model.hpp"
#include "resident_parameters.hpp"
#include "text.hpp"

namespace gpt {
namespace {

constexpr std::size_t kMicroBatches = 4;
constexpr std::size_t kSteps = 20;

struct History {
  std::vector<double> losses;  // before each update
  std::vector<std::vector<float>> weights;
};

History train(Dtype dtype, const Text& text) {
  Model model(kTiny, 4, dtype);
  const Manifest& manifest = model.manifest();
  ResidentParameters parameters(manifest, dtype, 1);
  std::vector<std::vector<float>> first, second;
  for (const Tensor& tensor : manifest.tensors) {
    first.emplace_back(tensor.count);
    second.emplace_back(tensor.count);
  }
  History history;
  for (std::size_t step = 1; step <= kSteps; ++step) {
    double loss = 0.0;
    parameters.clear_gradients();
    for (std::size_t micro = 0; micro < kMicroBatches; ++micro) {
      const ParamSource source = parameters.source(1.0F / kMicroBatches);
      loss += model.forward(text.batch(1, step, micro, model.batch()), source) / kMicroBatches;
      model.backward(source);
    }
    history.losses.push_back(loss);
    const AdamW options{.learning_rate = warmed_up(2e-3F, step, 5)};
    for (std::size_t t = 0; t < manifest.tensors.size(); ++t) {
      if (manifest.tensors[t].tied_to) continue;
      adamw_update(options, step, manifest.tensors[t].decays(), parameters.values[t].data(),
                   parameters.total_gradient(t).data(), first[t].data(), second[t].data(), first[t].size());
    }
  }
  history.weights = parameters.values;
  return history;
}

class Training : public ::testing::TestWithParam<Dtype> {};

TEST_P(Training, starts_at_ln_256_and_falls_by_one_and_a_half_nats) {
  if (default_text().empty()) GTEST_SKIP() << "this machine has no licence texts";
  const Text text = Text::load(default_text(), kTiny.context);
  const History history = train(GetParam(), text);
  EXPECT_NEAR(history.losses.front(), std::log(256.0), 0.2);
  EXPECT_LE(history.losses.back(), history.losses.front() - 1.5);
}

TEST_P(Training, twice_gives_the_same_bits) {
  std::string words;
  while (words.size() < 4000) words += "the quick brown fox jumps over the lazy dog, " + std::to_string(words.size());
  const Text text({words.begin(), words.end()}, kTiny.context);
  const History a = train(GetParam(), text);
  const History b = train(GetParam(), text);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.weights, b.weights);
}

INSTANTIATE_TEST_SUITE_P(dtypes, Training, ::testing::Values(Dtype::f32, Dtype::bf16),
                         [](const auto& parameter) { return parameter.param == Dtype::f32 ? "f32" : "bf16"; });

}  // namespace
}  // namespace gpt
