// AdamW on any piece of a tensor (Loshchilov, Hutter 2019). Purely elementwise: however the parameters are cut
// over ranks, every element gets the same bits.
#pragma once

#include <cstddef>

namespace gpt {

struct AdamW {
  float learning_rate = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float weight_decay = 0.1F;
};

// The learning rate of update `step` = 1, 2, ...: rises linearly over the first warm_up_steps updates, then constant.
float warmed_up(float learning_rate, std::size_t step, std::size_t warm_up_steps);

// One update of `count` elements; `step` counts updates from 1, the moments start at zero. `decays` is
// Tensor::decays() of the tensor that the piece belongs to.
void adamw_update(const AdamW& options, std::size_t step, bool decays, float* parameters, const float* gradients,
                  float* first_moments, float* second_moments, std::size_t count);

}  // namespace gpt
