// The optimizer's arithmetic and its independence of how parameters are cut.
#include "adamw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "counter_random.hpp"

namespace gpt {
namespace {

struct State {
  explicit State(std::size_t count) : parameters(count), gradients(count), first(count), second(count) {
    for (std::size_t i = 0; i < count; ++i) parameters[i] = normal_at(1, i);
  }

  // Three updates; each is done in pieces of `piece` elements.
  void run(std::size_t piece) {
    for (std::size_t step = 1; step <= 3; ++step) {
      for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = normal_at(derive_key(2, step), i);
      for (std::size_t begin = 0; begin < parameters.size(); begin += piece) {
        const std::size_t count = std::min(piece, parameters.size() - begin);
        adamw_update(AdamW{}, step, true, parameters.data() + begin, gradients.data() + begin, first.data() + begin,
                     second.data() + begin, count);
      }
    }
  }

  std::vector<float> parameters, gradients, first, second;
};

TEST(AdamW, gives_the_same_bits_however_the_elements_are_cut) {
  State whole(1000);
  whole.run(1000);
  for (const std::size_t piece : {1U, 3U, 7U, 64U, 999U}) {
    State cut(1000);
    cut.run(piece);
    EXPECT_EQ(cut.parameters, whole.parameters) << piece;
    EXPECT_EQ(cut.first, whole.first) << piece;
    EXPECT_EQ(cut.second, whole.second) << piece;
  }
}

TEST(AdamW, moves_by_the_learning_rate_at_the_first_step) {
  // With corrected moments g and g^2, the first step is learning_rate * sign(g), up to epsilon and rounding.
  float parameter = 0.0F, gradient = -0.25F, first = 0.0F, second = 0.0F;
  adamw_update({.learning_rate = 0.5F}, 1, false, &parameter, &gradient, &first, &second, 1);
  EXPECT_NEAR(parameter, 0.5F, 1e-6F);
}

TEST(AdamW, agrees_with_its_formula_in_f64_over_many_steps) {
  const AdamW options{.learning_rate = 0.01F};
  float parameter = 1.0F, first = 0.0F, second = 0.0F;
  double p = 1.0, m = 0.0, v = 0.0;
  const double beta1 = static_cast<double>(options.beta1), beta2 = static_cast<double>(options.beta2);
  for (std::size_t step = 1; step <= 100; ++step) {
    const float gradient = normal_at(3, step);
    adamw_update(options, step, true, &parameter, &gradient, &first, &second, 1);
    const double g = static_cast<double>(gradient);
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double t = static_cast<double>(step);
    p -= 0.01 * (m / (1 - std::pow(beta1, t)) / (std::sqrt(v / (1 - std::pow(beta2, t))) + 1e-8) + 0.1 * p);
  }
  // 100 steps, each with a relative error of a few 2^-24 on a change of at most 0.1.
  EXPECT_NEAR(static_cast<double>(parameter), p, 100 * 0.1 * 8 / 16777216.0);
}

TEST(AdamW, decays_only_what_it_is_told_to) {
  const float gradient = 0.0F;
  float decayed = 2.0F, kept = 2.0F, first = 0.0F, second = 0.0F;
  adamw_update({.learning_rate = 0.5F, .weight_decay = 0.25F}, 1, true, &decayed, &gradient, &first, &second, 1);
  adamw_update({.learning_rate = 0.5F, .weight_decay = 0.25F}, 1, false, &kept, &gradient, &first, &second, 1);
  EXPECT_EQ(decayed, 2.0F - 0.5F * 0.25F * 2.0F);
  EXPECT_EQ(kept, 2.0F);
}

TEST(LearningRate, rises_linearly_and_then_stays) {
  EXPECT_EQ(warmed_up(1.0F, 1, 4), 0.25F);
  EXPECT_EQ(warmed_up(1.0F, 3, 4), 0.75F);
  EXPECT_EQ(warmed_up(1.0F, 4, 4), 1.0F);
  EXPECT_EQ(warmed_up(1.0F, 50, 4), 1.0F);
  EXPECT_EQ(warmed_up(1.0F, 1, 0), 1.0F);
}

}  // namespace
}  // namespace gpt
