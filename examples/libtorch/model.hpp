// The model and its optimizer, in plain LibTorch: nothing here knows of ranks, stages or shards.
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fashion {

// 3 x 3 convolution and ReLU; `skip` adds the input.
struct ConvImpl : torch::nn::Module {
  ConvImpl(std::int64_t in, std::int64_t out, std::int64_t stride, bool with_skip)
      : conv(
            register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).stride(stride).padding(1)))),
        skip(with_skip) {}
  torch::Tensor forward(torch::Tensor x) {
    const torch::Tensor y = torch::relu(conv(x));
    return skip ? x + y : y;
  }
  torch::nn::Conv2d conv;
  bool skip;
};
TORCH_MODULE(Conv);

struct HeadImpl : torch::nn::Module {
  HeadImpl(std::int64_t in, std::int64_t out) : linear(register_module("linear", torch::nn::Linear(in, out))) {}
  torch::Tensor forward(torch::Tensor x) { return torch::log_softmax(linear(x.flatten(1)), 1); }
  torch::nn::Linear linear;
};
TORCH_MODULE(Head);

// The same values whenever and wherever it is called. No unit has more than a sixth of the parameters.
inline torch::nn::Sequential make_model() {
  torch::manual_seed(1);
  torch::nn::Sequential model;
  model->push_back("stem", Conv(1, 8, 2, false));
  model->push_back("down1", Conv(8, 24, 2, false));
  model->push_back("down2", Conv(24, 32, 2, false));
  for (const char* name : {"deep1", "deep2", "deep3", "deep4", "deep5"}) model->push_back(name, Conv(32, 32, 1, true));
  model->push_back("head", Head(32 * 4 * 4, 10));
  return model;
}

// Adam, for tensors that have their gradients. Every operation rounds each element once, so it does not matter how a
// tensor is cut: add_(x, alpha) fuses multiplication and addition in its vector loop, and may not for what is left
// over.
class Adam {
 public:
  explicit Adam(std::size_t steps) : last_step_(static_cast<double>(steps)) {}

  // The rate falls along a line, to nothing after the last step.
  void step(const std::vector<torch::Tensor>& parameters) {
    const torch::NoGradGuard no_gradients;
    constexpr double kRate = 0.005, kMean = 0.9, kSquare = 0.99, kEpsilon = 1e-8;
    const double rate = kRate * (1 - steps_ / last_step_);
    ++steps_;
    const double mean_part = 1 - std::pow(kMean, steps_), square_part = 1 - std::pow(kSquare, steps_);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (i == means_.size()) {
        means_.push_back(torch::zeros_like(parameters[i]));
        squares_.push_back(torch::zeros_like(parameters[i]));
      }
      const torch::Tensor& gradient = parameters[i].grad();
      means_[i].mul_(kMean).add_(gradient * (1 - kMean));
      squares_[i].mul_(kSquare).add_(gradient * gradient * (1 - kSquare));
      const torch::Tensor step = (means_[i] / mean_part) / ((squares_[i] / square_part).sqrt() + kEpsilon);
      torch::Tensor(parameters[i]).sub_(step * rate);
    }
  }

  std::size_t moment_bytes() const {
    std::size_t sum = 0;
    for (const torch::Tensor& mean : means_) sum += 2 * mean.nbytes();
    return sum;
  }

 private:
  double steps_ = 0, last_step_;
  std::vector<torch::Tensor> means_, squares_;
};

}  // namespace fashion
