// Properties of single layers that a whole-model check would not pin down.
#include "ops.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention.hpp"
#include "bf16.hpp"
#include "counter_random.hpp"
#include "exponential.hpp"

namespace gpt {
namespace {

TEST(Exponential, is_within_3e_7_of_exp) {
  for (int i = -8700; i <= 8800; ++i) {
    const float x = static_cast<float>(i) / 100.0F;
    const double exact = std::exp(static_cast<double>(x));
    EXPECT_NEAR(static_cast<double>(exponential(x)) / exact, 1.0, 3e-7) << x;
  }
  EXPECT_EQ(exponential(0.0F), 1.0F);
  EXPECT_EQ(exponential(-1000.0F), exponential(-87.0F));
  EXPECT_EQ(exponential(1000.0F), exponential(88.0F));
  EXPECT_TRUE(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Bf16, rounds_to_nearest_even_and_keeps_what_it_can_hold) {
  EXPECT_EQ(float_to_bf16(1.0F), 0x3F80);
  EXPECT_EQ(float_to_bf16(0x1.01p0F), 0x3F80);    // half way: to even, down
  EXPECT_EQ(float_to_bf16(0x1.03p0F), 0x3F82);    // half way: to even, up
  EXPECT_EQ(float_to_bf16(0x1.0102p0F), 0x3F81);  // above half way
  EXPECT_EQ(float_to_bf16(-0.0F), 0x8000);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x7F800001U)), 0x7FC0);  // a NaN, although its upper half is infinity
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = bf16_to_float(half);
    if (std::isnan(value)) continue;
    EXPECT_EQ(float_to_bf16(value), half);
  }
}

TEST(CrossEntropy, of_equal_logits_is_ln_v_and_its_gradient_sums_to_zero) {
  std::vector<float> logits(2 * 256, 3.0F);
  const std::vector<std::uint8_t> targets = {0, 255};
  EXPECT_DOUBLE_EQ(softmax_cross_entropy(logits.data(), targets, 256), std::log(256.0));
  EXPECT_EQ(logits[0], 0.5F / 256 - 0.5F);
  EXPECT_EQ(logits[1], 0.5F / 256);
  EXPECT_EQ(logits[256 + 255], 0.5F / 256 - 0.5F);
}

TEST(CrossEntropy, stays_finite_for_huge_logits) {
  std::vector<float> logits(256, -1e30F);
  logits[7] = 1e30F;
  const std::vector<std::uint8_t> targets = {7};
  EXPECT_LT(softmax_cross_entropy(logits.data(), targets, 256), 1e-30);
}

TEST(Attention, does_not_look_ahead) {
  const Config config{.layers = 1, .width = 8, .heads = 2, .context = 6};
  Attention attention(config, 1);
  Gemm gemm;
  std::vector<float> qkv(config.context * 3 * config.width);
  for (std::size_t i = 0; i < qkv.size(); ++i) qkv[i] = normal_at(1, i);
  std::vector<float> probabilities(attention.probability_count());
  std::vector<float> before(config.context * config.width);
  std::vector<float> after(before.size());
  attention.forward(gemm, qkv.data(), probabilities.data(), before.data());
  for (std::size_t i = 4 * 3 * config.width; i < qkv.size(); ++i) qkv[i] += 1.0F;  // change tokens 4 and 5
  attention.forward(gemm, qkv.data(), probabilities.data(), after.data());
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool earlier_token = i < 4 * config.width;
    EXPECT_EQ(before[i] == after[i], earlier_token) << i;
  }
}

TEST(Embedding, gradient_adds_up_over_repeated_tokens_and_is_zero_elsewhere) {
  const std::vector<std::uint8_t> tokens = {3, 1, 3};
  const std::vector<float> grad_x = {1, 2, 10, 20, 100, 200};
  std::vector<float> grad_table(4 * 2, -1.0F);
  embed_backward(tokens, grad_x.data(), grad_table.data(), 4, 2);
  EXPECT_EQ(grad_table, (std::vector<float>{0, 0, 10, 20, 0, 0, 101, 202}));
}

}  // namespace
}  // namespace gpt
