// The model's gradients against finite differences of its loss.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "counter_random.hpp"
#include "resident_parameters.hpp"

namespace gpt {
namespace {

constexpr Config kCheck{.layers = 2, .width = 16, .heads = 2, .context = 8};
constexpr std::size_t kRows = 2;

std::vector<std::uint8_t> some_rows() {
  std::vector<std::uint8_t> rows(kRows * (kCheck.context + 1));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint8_t>(mix_bits(i) % 11 * 20);
  return rows;
}

// Away from the special start (zero biases, unit weights, tiny matrices), so that every path carries gradient.
void roughen(ResidentParameters& parameters) {
  for (std::size_t t = 0; t < parameters.values.size(); ++t) {
    for (std::size_t i = 0; i < parameters.values[t].size(); ++i) {
      parameters.values[t][i] += 0.2F * normal_at(derive_key(5, t), i);
    }
  }
}

class Gradient : public ::testing::Test {
 protected:
  Gradient() { roughen(parameters); }

  double loss_at(std::size_t tensor, const std::vector<double>& direction, double distance) {
    const std::vector<float> start = parameters.values[tensor];
    for (std::size_t i = 0; i < start.size(); ++i) {
      parameters.values[tensor][i] = static_cast<float>(static_cast<double>(start[i]) + distance * direction[i]);
    }
    const double loss = model.forward(rows, parameters.source());
    parameters.values[tensor] = start;
    return loss;
  }

  // Central differences at h and h / 2, extrapolated: the error is of order h^4 plus the noise of the loss.
  double slope(std::size_t tensor, const std::vector<double>& direction, double h) {
    const auto central = [&](double distance) {
      return (loss_at(tensor, direction, distance) - loss_at(tensor, direction, -distance)) / (2 * distance);
    };
    return (4 * central(h / 2) - central(h)) / 3;
  }

  Model model{kCheck, kRows, Dtype::f32};
  ResidentParameters parameters{model.manifest(), Dtype::f32, 1};
  std::vector<std::uint8_t> rows = some_rows();
};

TEST_F(Gradient, of_every_tensor_is_the_slope_of_the_loss) {
  model.forward(rows, parameters.source());
  model.backward(parameters.source());
  for (std::size_t t = 0; t < model.manifest().tensors.size(); ++t) {
    const Tensor& tensor = model.manifest().tensors[t];
    if (tensor.tied_to) continue;
    const std::vector<float> gradient = parameters.total_gradient(t);
    // One direction in which every element counts, up or down by the same amount; unit length. A second one picks
    // other signs.
    for (std::uint64_t choice = 0; choice < 2; ++choice) {
      std::vector<double> direction(tensor.count);
      double expected = 0.0;
      double length = 0.0;
      for (std::size_t i = 0; i < tensor.count; ++i) {
        const bool flip = choice == 1 && mix_bits(i) % 4 == 0;
        direction[i] = ((gradient[i] < 0.0F) != flip ? -1.0 : 1.0) / std::sqrt(static_cast<double>(tensor.count));
        expected += direction[i] * static_cast<double>(gradient[i]);
        length += std::abs(direction[i] * static_cast<double>(gradient[i]));
      }
      // The loss carries a noise of some 1e-7 (f32 logits of order 1, averaged), divided by h = 0.02: below 1e-5.
      // The h^4 term and the f32 rounding of the gradient itself are relative to its size.
      constexpr double kDistance = 0.02;
      EXPECT_NEAR(slope(t, direction, kDistance), expected, 4e-5 + 1e-3 * length) << tensor.name << " " << choice;
      EXPECT_GT(length, 1e-3) << tensor.name << " has too little gradient to be checked";
    }
  }
}

}  // namespace
}  // namespace gpt
