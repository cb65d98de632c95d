// A torch::nn::Sequential on the library's engine, ZeRO stages 0 to 3: all that a LibTorch program needs for it, beside
// the engine's calls in its loop, which are those of zero.h.
//
// Every child is a unit: here for its forward, again for its backward, and nowhere in between; nothing is computed
// twice. (Run with ZC_POISON=1, where a parameter that is used out of turn is NaN.) Every gradient is handed over as
// soon as autograd has the whole of it. It stays in LibTorch's memory until the pass has ended: zero_grad(true) is due
// then.
#pragma once

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/torch.h>

#include <map>
#include <zerocomm/zerocomm.hpp>

class ShardedModule {
 public:
  // Collective. All ranks bring the same values. Every child has parameters, all of them f32, contiguous and trained,
  // and no two children share one. The model is this object's from here on.
  ShardedModule(zc::CommView comm, torch::nn::Sequential model, zc_stage stage, int passes) : model_(std::move(model)) {
    const auto children = model_->named_children();
    const auto parameters = model_->named_parameters();
    std::vector<zc::Tensor> tensors;
    std::vector<const void*> values;
    for (const auto& child : children)
      for (const torch::Tensor& parameter : units_.emplace_back(child.value()->parameters())) {
        hooked_.push_back(torch::autograd::impl::grad_accumulator(parameter));
        hooked_.back()->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
            [this, unit = units_.size() - 1, use = tensors.size(), parameter](const auto& outputs, const auto&) {
              return hand_over(unit, use, parameter), outputs;
            }));
        const auto count = static_cast<std::size_t>(parameter.numel());
        tensors.push_back({parameters[tensors.size()].key().c_str(), child.key().c_str(), count, ZC_DTYPE_F32});
        values.push_back(parameter.data_ptr());
      }
    const auto layout = zc::Layout::create(tensors, {.ranks = comm.size(), .stage = stage, .bucket_bytes = 40 << 10});
    // The unit in use, the next one, and two buckets of gradients.
    const std::size_t room = 2 * (layout.info().largest_unit_bytes + layout.info().largest_bucket_bytes);
    zero_ = zc::Zero::create(comm, layout, {.budget_bytes = room, .micro_steps = passes});
    for (std::size_t unit = 0, use = 0; unit < units_.size(); use += units_[unit++].size())
      zero_.load(unit, std::span(values).subspan(use, units_[unit].size()));
    for (const zc_zero_piece& piece : zero_.pieces()) {
      owned_.push_back(torch::from_blob(piece.master, static_cast<std::int64_t>(piece.count)));
      owned_.back().mutable_grad() = torch::from_blob(piece.gradient, owned_.back().sizes());
    }
  }
  ShardedModule(const ShardedModule&) = delete;  // autograd's hooks point here

  const zc::Zero& engine() const { return zero_; }
  // What this rank updates, whatever the stage: flat tensors with their gradients.
  const std::vector<torch::Tensor>& owned() const { return owned_; }

  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t unit = 0; auto& child : *model_) {
      acquire(unit);
      x = child.forward(x);
      zero_.release(unit);
      // The gradient of a unit's output is there before the unit's own backward begins.
      if (x.requires_grad()) x.register_hook([this, unit](const torch::Tensor&) { acquire(unit); });
      ++unit;
    }
    return x;
  }

 private:
  // Only the address in a parameter's storage changes: what autograd has saved, views included, shares the storage.
  void acquire(std::size_t unit) {
    std::vector<const void*> places(waiting_[unit] = units_[unit].size());
    zero_.acquire(unit, places);
    for (std::size_t i = 0; i < places.size(); ++i)
      units_[unit][i].storage().set_data_ptr({const_cast<void*>(places[i]), torch::kCPU});
  }

  // After the last gradient of a unit's parameters its backward needs none of them any more.
  void hand_over(std::size_t unit, std::size_t use, const torch::Tensor& parameter) {
    zc::check(zc_zero_grad_ready(zero_.get(), use, parameter.grad().data_ptr(), nullptr));
    if (--waiting_[unit] == 0) zero_.release(unit);
  }

  torch::nn::Sequential model_;
  std::vector<std::vector<torch::Tensor>> units_;
  std::vector<std::shared_ptr<torch::autograd::Node>> hooked_;  // they own the hooks
  std::vector<torch::Tensor> owned_;
  std::map<std::size_t, std::size_t> waiting_;  // gradients that a unit has still to hand over
  zc::Zero zero_;
};
