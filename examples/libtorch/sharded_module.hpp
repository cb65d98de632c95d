// A torch::nn::Sequential on the library's engine. This file is all that a LibTorch program needs for ZeRO, stages 0
// to 3.
//
// Every child of the Sequential is a unit: its parameters are there for its forward pass, again for its backward pass,
// and nowhere in between. Gradients go to the engine one by one, as soon as autograd has them. A step is
//     begin, forward, backward() of the loss, end  (once or more);  update
// and an optimizer sees nothing but owned(): what this rank updates, tensors with their gradients.
#pragma once

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/torch.h>
#include <zerocomm/zerocomm.h>

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace fashion {

inline void check(zc_status status) { TORCH_CHECK(status == ZC_OK, zc_status_name(status), ": ", zc_last_error()); }

class ShardedModule {
 public:
  // Collective. All ranks bring the same weights. Every child has parameters, all f32 and trainable, and no tensor
  // twice. `cut` says everything but the ranks.
  ShardedModule(zc_comm* comm, torch::nn::Sequential model, zc_layout_config cut, const zc_zero_config& config)
      : model_(std::move(model)) {
    // 1. Describe the parameters.
    const auto children = model_->named_children();
    const auto named = model_->named_parameters();
    std::vector<zc_tensor> tensors;
    for (const auto& child : children)
      for (const auto& parameter : units_.emplace_back(child.value()->parameters()))
        tensors.push_back({sizeof(zc_tensor), named[tensors.size()].key().c_str(), child.key().c_str(),
                           static_cast<std::size_t>(parameter.numel()), ZC_DTYPE_F32});
    // 2. Make the engine.
    zc_layout* layout = nullptr;
    zc_zero* zero = nullptr;
    check(zc_comm_size(comm, &cut.ranks));
    check(zc_layout_create(tensors.data(), tensors.size(), &cut, &layout));
    const zc_status status = zc_zero_create(comm, layout, &config, &zero);
    zc_layout_destroy(layout);
    check(status);
    zero_.reset(zero);
    // 3. Load the weights, and have every gradient handed over when autograd has the whole of it. The module's own
    // memory goes with the first acquire.
    for (std::size_t unit = 0, use = 0; unit < units_.size(); ++unit) {
      std::vector<const void*> values;
      for (auto parameter = units_[unit].begin(); parameter != units_[unit].end(); ++parameter, ++use) {
        values.push_back(parameter->data_ptr());
        hooked_.push_back(torch::autograd::impl::grad_accumulator(*parameter));
        hooked_[use]->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
            [this, unit, use, p = *parameter](auto& outputs, auto&) { return hand_over(unit, use, p), outputs; }));
      }
      check(zc_zero_load(zero, unit, values.data(), ZC_DTYPE_F32, ZC_NONE));
    }
    // 4. What this rank owns, for its optimizer.
    const zc_zero_piece* pieces = nullptr;
    std::size_t piece_count = 0, state_count = 0;
    check(zc_zero_pieces(zero, &pieces, &piece_count, &state_count));
    for (const zc_zero_piece& piece : std::span(pieces, piece_count)) {
      owned_.push_back(torch::from_blob(piece.master, static_cast<std::int64_t>(piece.count)));
      owned_.back().mutable_grad() = torch::from_blob(piece.gradient, owned_.back().sizes());
    }
  }
  ShardedModule(const ShardedModule&) = delete;  // autograd's hooks point here

  void begin(const char* pass, zc_phase phase) { check(zc_zero_begin(zero_.get(), pass, phase)); }

  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t unit = 0; auto& child : *model_) {
      acquire(unit);
      x = child.forward(x);
      release(unit);
      // The gradient of a unit's output comes before the unit's own backward pass.
      if (x.requires_grad()) x.register_hook([this, unit](const torch::Tensor&) { acquire(unit); });
      ++unit;
    }
    return x;
  }

  void end() {
    check(zc_zero_end(zero_.get()));
    gradients_.clear();
  }

  template <class Step>
  void update(Step step) {
    check(zc_zero_update_begin(zero_.get()));
    step();
    check(zc_zero_publish(zero_.get(), nullptr));
  }

  const std::vector<torch::Tensor>& owned() const { return owned_; }
  zc_zero* engine() const { return zero_.get(); }

 private:
  // Only the address in a parameter's storage changes: what autograd has saved, views included, shares the storage.
  void acquire(std::size_t unit) {
    std::vector<const void*> at(waiting_[unit] = units_[unit].size());
    check(zc_zero_acquire(zero_.get(), unit, at.data(), at.size(), nullptr));
    for (std::size_t i = 0; i < at.size(); ++i)
      units_[unit][i].storage().set_data_ptr({const_cast<void*>(at[i]), torch::kCPU});
  }

  void release(std::size_t unit) {
    for (auto& parameter : units_[unit]) parameter.storage().set_data_ptr({nullptr, torch::kCPU});
    check(zc_zero_release(zero_.get(), unit, nullptr));
  }

  // All that used a parameter has run backward when its gradient is whole: after its last gradient a unit is not
  // needed.
  void hand_over(std::size_t unit, std::size_t use, const torch::Tensor& parameter) {
    gradients_.push_back(std::exchange(parameter.mutable_grad(), {}).contiguous());
    check(zc_zero_grad_ready(zero_.get(), use, gradients_.back().data_ptr(), nullptr));
    if (--waiting_[unit] == 0) release(unit);
  }

  torch::nn::Sequential model_;
  std::unique_ptr<zc_zero, decltype(&zc_zero_destroy)> zero_{nullptr, zc_zero_destroy};
  std::vector<std::vector<torch::Tensor>> units_;
  std::map<std::size_t, std::size_t> waiting_;                  // gradients that a unit has still to hand over
  std::vector<std::shared_ptr<torch::autograd::Node>> hooked_;  // they own the hooks
  std::vector<torch::Tensor> owned_, gradients_;                // the latter: handed over, needed until end
};

}  // namespace fashion
