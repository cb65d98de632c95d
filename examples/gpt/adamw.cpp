// The optimizer's arithmetic; bias corrections by repeated products, because pow() differs between libraries.
#include "adamw.hpp"

#include <cmath>

namespace gpt {
namespace {

float one_minus_power(float base, std::size_t exponent) {
  double product = 1.0;
  for (std::size_t i = 0; i < exponent; ++i) product *= static_cast<double>(base);
  return static_cast<float>(1.0 - product);
}

}  // namespace

float warmed_up(float learning_rate, std::size_t step, std::size_t warm_up_steps) {
  if (step >= warm_up_steps) return learning_rate;
  return learning_rate * static_cast<float>(step) / static_cast<float>(warm_up_steps);
}

void adamw_update(const AdamW& options, std::size_t step, bool decays, float* parameters, const float* gradients,
                  float* first_moments, float* second_moments, std::size_t count) {
  const float correction1 = one_minus_power(options.beta1, step);
  const float correction2 = one_minus_power(options.beta2, step);
  const float decay = decays ? options.weight_decay : 0.0F;
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gradients[i];
    first_moments[i] = options.beta1 * first_moments[i] + (1.0F - options.beta1) * g;
    second_moments[i] = options.beta2 * second_moments[i] + (1.0F - options.beta2) * (g * g);
    const float mean = first_moments[i] / correction1;
    const float deviation = std::sqrt(second_moments[i] / correction2);
    parameters[i] -= options.learning_rate * (mean / (deviation + options.epsilon) + decay * parameters[i]);
  }
}

}  // namespace gpt
