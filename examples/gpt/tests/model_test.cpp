// The contract of the seam: order of units, life of gradients, dtypes, equal bits.
#include "model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "counter_random.hpp"
#include "resident_parameters.hpp"

namespace gpt {
namespace {

constexpr Config kOneLayer{.layers = 1, .width = 16, .heads = 2, .context = 8};

std::vector<std::uint8_t> random_rows(const Config& config, std::size_t batch, std::uint64_t key) {
  std::vector<std::uint8_t> rows(batch * (config.context + 1));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint8_t>(mix_bits(key + i));
  return rows;
}

std::vector<std::string> only(const std::vector<std::string>& events, const std::string& kind) {
  std::vector<std::string> names;
  for (const std::string& event : events) {
    if (event.rfind(kind + " ", 0) == 0) names.push_back(event.substr(kind.size() + 1));
  }
  return names;
}

TEST(Model, visits_units_in_order_and_the_tied_matrix_twice) {
  Model model(kOneLayer, 1, Dtype::f32);
  ResidentParameters parameters(model.manifest(), Dtype::f32, 1);
  model.forward(random_rows(kOneLayer, 1, 1), parameters.source());
  EXPECT_EQ(only(parameters.events, "acquire"),
            (std::vector<std::string>{"wte", "wpe", "h.0.attn", "h.0.mlp", "ln_f", "wte"}));
  EXPECT_EQ(only(parameters.events, "gradient"), std::vector<std::string>{});
  parameters.events.clear();
  model.backward(parameters.source());
  EXPECT_EQ(only(parameters.events, "acquire"), (std::vector<std::string>{"wte", "ln_f", "h.0.mlp", "h.0.attn"}));
}

TEST(Model, holds_one_unit_at_a_time_and_no_unit_while_it_hands_over_gradients) {
  Model model(kOneLayer, 1, Dtype::f32);
  ResidentParameters parameters(model.manifest(), Dtype::f32, 1);
  model.forward(random_rows(kOneLayer, 1, 1), parameters.source());
  model.backward(parameters.source());
  std::string held;
  for (const std::string& event : parameters.events) {
    if (event.rfind("acquire ", 0) == 0) {
      EXPECT_EQ(held, "");
      held = event.substr(8);
    } else if (event.rfind("release ", 0) == 0) {
      EXPECT_EQ(event.substr(8), held);
      held.clear();
    } else {
      EXPECT_EQ(held, "") << event;
    }
  }
  EXPECT_EQ(held, "");
}

TEST(Model, hands_over_every_gradient_once_in_reverse_order) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    Model model(kTiny, 1, dtype);
    ResidentParameters parameters(model.manifest(), dtype, 1);
    model.forward(random_rows(kTiny, 1, 1), parameters.source());
    model.backward(parameters.source());
    std::vector<std::string> reversed;
    for (const Tensor& tensor : model.manifest().tensors) reversed.insert(reversed.begin(), tensor.name);
    EXPECT_EQ(only(parameters.events, "gradient"), reversed);
    EXPECT_EQ(reversed.front(), "lm_head.weight");
    EXPECT_EQ(reversed.back(), "wte.weight");
  }
}

TEST(Model, leaves_gradients_in_place_until_the_pass_has_ended) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    Model model(kTiny, 1, dtype);
    ResidentParameters parameters(model.manifest(), dtype, 1);
    model.forward(random_rows(kTiny, 1, 1), parameters.source());
    model.backward(parameters.source());
    const std::size_t tensors = model.manifest().tensors.size();
    ASSERT_EQ(parameters.handed_over.size(), tensors);
    const std::set<const void*> distinct(parameters.handed_over.begin(), parameters.handed_over.end());
    EXPECT_EQ(distinct.size(), tensors);
    for (std::size_t t = 0; t < tensors; ++t) {
      const std::vector<float>& at_hand_over = parameters.gradients[t];
      const void* now = parameters.handed_over[tensors - 1 - t];
      for (std::size_t i = 0; i < at_hand_over.size(); ++i) ASSERT_EQ(parameters.element(now, i), at_hand_over[i]);
    }
  }
}

TEST(Model, gives_the_same_bits_again_and_in_another_instance) {
  const std::vector<std::uint8_t> rows = random_rows(kTiny, 2, 1);
  Model first(kTiny, 2, Dtype::f32);
  Model second(kTiny, 2, Dtype::f32);
  ResidentParameters a(first.manifest(), Dtype::f32, 1);
  ResidentParameters b(second.manifest(), Dtype::f32, 1);
  const double loss = first.forward(rows, a.source());
  first.backward(a.source());
  second.forward(random_rows(kTiny, 2, 99), b.source());  // another micro-batch before leaves no trace
  second.backward(b.source());
  b.clear_gradients();
  EXPECT_EQ(second.forward(rows, b.source()), loss);
  second.backward(b.source());
  EXPECT_EQ(a.gradients, b.gradients);
}

TEST(Model, in_bf16_computes_in_f32_from_widened_weights_and_rounds_gradients_once) {
  const std::vector<std::uint8_t> rows = random_rows(kTiny, 2, 1);
  Model narrow(kTiny, 2, Dtype::bf16);
  Model wide(kTiny, 2, Dtype::f32);
  ResidentParameters bf16(narrow.manifest(), Dtype::bf16, 1);
  ResidentParameters f32(wide.manifest(), Dtype::f32, 1);
  for (std::vector<float>& values : f32.values) {
    for (float& value : values) value = bf16_to_float(float_to_bf16(value));
  }
  EXPECT_EQ(narrow.forward(rows, bf16.source()), wide.forward(rows, f32.source()));
  narrow.backward(bf16.source());
  wide.backward(f32.source());
  for (std::size_t t = 0; t < f32.gradients.size(); ++t) {
    for (std::size_t i = 0; i < f32.gradients[t].size(); ++i) {
      ASSERT_EQ(bf16.gradients[t][i], bf16_to_float(float_to_bf16(f32.gradients[t][i])));
    }
  }
}

TEST(Model, computes_a_pass_afresh_after_a_callback_has_thrown) {
  const std::vector<std::uint8_t> rows = random_rows(kOneLayer, 1, 1);
  Model model(kOneLayer, 1, Dtype::f32);
  ResidentParameters parameters(model.manifest(), Dtype::f32, 1);
  const double loss = model.forward(rows, parameters.source());
  ParamSource failing = parameters.source();
  failing.acquire = [](std::size_t, std::span<const void*>) { throw std::runtime_error("peer lost"); };
  EXPECT_THROW(model.forward(rows, failing), std::runtime_error);
  EXPECT_EQ(model.forward(rows, parameters.source()), loss);
}

TEST(Model, refuses_a_micro_batch_of_another_size) {
  Model model(kOneLayer, 2, Dtype::f32);
  ResidentParameters parameters(model.manifest(), Dtype::f32, 1);
  EXPECT_THROW(model.forward(random_rows(kOneLayer, 1, 1), parameters.source()), std::invalid_argument);
}

}  // namespace
}  // namespace gpt
