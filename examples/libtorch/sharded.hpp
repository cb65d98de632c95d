// A list of torch modules on the library's engine, ZeRO stages 0 to 3: everything that a framework has to do.
//
// Every module is a unit. A pass keeps the input of every unit and computes a unit again when its gradient is due, so
// no unit's parameters are needed between its forward and its backward: autograd runs inside one unit at a time.
#pragma once

#include <torch/torch.h>

#include <deque>
#include <zerocomm/zerocomm.hpp>

class Sharded {
 public:
  Sharded(const zc::Comm& comm, std::vector<torch::nn::Sequential> units, zc_stage stage, int micro_steps)
      : units_(std::move(units)) {
    std::deque<std::string> names;
    std::vector<zc::Tensor> tensors;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const std::string& unit = names.emplace_back("unit " + std::to_string(u));
      for (const auto& parameter : units_[u]->named_parameters())
        tensors.push_back({.name = names.emplace_back(unit + " " + parameter.key()).c_str(),
                           .unit = unit.c_str(),
                           .count = static_cast<std::size_t>(parameter->numel()),
                           .dtype = ZC_DTYPE_F32});
    }
    const zc::Layout layout =
        zc::Layout::create(tensors, {.ranks = comm.size(), .stage = stage, .bucket_bytes = 256 << 10});
    const zc_layout_info info = layout.info();  // in stage 3 one unit is here at a time; others hold all of them anyway
    zero_ = zc::Zero::create(
        comm, layout,
        {.budget_bytes = info.largest_unit_bytes + 2 * info.largest_bucket_bytes, .micro_steps = micro_steps});
    for (std::size_t u = 0; u < units_.size(); ++u) {
      first_use_.push_back(layout.unit_use(u, 0));
      std::vector<const void*> values;
      for (const torch::Tensor& parameter : units_[u]->parameters()) values.push_back(parameter.data_ptr());
      zero_.load(u, values);
    }
  }

  void begin(const char* pass, zc_phase phase) { zero_.begin(pass, phase); }
  void end() { zero_.end(), gradients_.clear(); }

  torch::Tensor forward(torch::Tensor x) {
    const torch::NoGradGuard no_grad;
    inputs_.clear();
    for (std::size_t u = 0; u < units_.size(); ++u) {
      inputs_.push_back(x);
      x = inside(u, [&] { return units_[u]->forward(x); });
    }
    return x;
  }

  // Hands over every gradient as soon as autograd has it. They stay where they are until the pass ends.
  void backward(torch::Tensor gradient) {
    for (std::size_t u = units_.size(); u-- > 0;)
      gradient = inside(u, [&] {
        const torch::Tensor input = inputs_[u].detach().requires_grad_(true);
        units_[u]->forward(input).backward(gradient);
        std::size_t use = first_use_[u];
        for (torch::Tensor& parameter : units_[u]->parameters()) {
          const torch::Tensor& kept = gradients_.emplace_back(parameter.grad().contiguous());
          parameter.mutable_grad().reset();
          zc::check(zc_zero_grad_ready(zero_.get(), use++, kept.data_ptr(), nullptr));
        }
        return input.grad();
      });
  }

  const zc::Zero& engine() const { return zero_; }

 private:
  // Runs `body` while the unit's parameters are here.
  template <class Body>
  torch::Tensor inside(std::size_t unit, Body body) {
    std::vector<torch::Tensor> parameters = units_[unit]->parameters();
    std::vector<const void*> places(parameters.size());
    zero_.acquire(unit, places);
    for (std::size_t i = 0; i < places.size(); ++i)
      parameters[i].set_data(torch::from_blob(const_cast<void*>(places[i]), parameters[i].sizes()));
    torch::Tensor result = body();
    zero_.release(unit);
    return result;
  }

  std::vector<torch::nn::Sequential> units_;
  std::vector<std::size_t> first_use_;
  std::vector<torch::Tensor> inputs_, gradients_;
  zc::Zero zero_;
};
