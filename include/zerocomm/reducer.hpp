/**
 * The gradient part of the ZeRO engine in C++: see reducer.h, whose contracts hold.
 */
#pragma once

#include <zerocomm/reducer.h>
#include <zerocomm/held.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace zc {

/** Options of a reducer, as in zc_reducer_config; what is left out has its default. */
struct ReducerConfig {
  std::int32_t gradient_slots = 0;
  std::int32_t micro_steps = 0;
  zc_accumulation accumulation = ZC_ACCUMULATION_DEFAULT;
  zc_absent absent = ZC_ABSENT_DEFAULT;
  zc_launch launch = ZC_LAUNCH_DEFAULT;
  zc_slices slices = ZC_SLICES_DEFAULT;
  std::int32_t poison = 0;
  double gradient_divisor = 0;
  std::chrono::nanoseconds deadline{0};
  zc_pre_reduce_fn pre_reduce = nullptr;
  void *pre_reduce_context = nullptr;

  zc_reducer_config raw() const noexcept {
    zc_reducer_config config{};
    config.struct_size = sizeof config;
    config.gradient_slots = gradient_slots;
    config.micro_steps = micro_steps;
    config.accumulation = accumulation;
    config.absent = absent;
    config.launch = launch;
    config.slices = slices;
    config.poison = poison;
    config.gradient_divisor = gradient_divisor;
    config.deadline_ns = deadline.count();
    config.pre_reduce = pre_reduce;
    config.pre_reduce_context = pre_reduce_context;
    return config;
  }
};

/** A reducer. Its destructor detaches this rank; it must go before its communicator. */
class Reducer : public detail::Handle<detail::View<zc_reducer>, zc_reducer, zc_reducer_destroy> {
 public:
  Reducer() = default;

  /** Collective. All memory is allocated here. */
  static Reducer create(CommView comm, const Layout &layout, const ReducerConfig &config = {}) {
    auto table = std::make_unique<detail::UseTable>(layout);
    const zc_reducer_config raw = config.raw();
    zc_reducer *reducer = nullptr;
    check(zc_reducer_create(comm.get(), layout.get(), &raw, &reducer));
    return Reducer(reducer, std::move(table));
  }

  /** Open a pass. */
  void begin(zc_phase phase) const { check(zc_reducer_begin(get(), phase)); }

  /** Close it. Collective. */
  void end() const { check(zc_reducer_end(get())); }

  /** Hand over one use's gradient, in the tensor's gradient dtype; it stays, unchanged, until end. */
  template <class Gradient>
  void grad_ready(std::size_t use, Gradient &&gradient) const {
    detail::check_range<Gradient>();
    const auto in = detail::input(gradient);
    table_->check_gradient("zc::Reducer::grad_ready", use, detail::dtype_in(in), in.size());
    check(zc_reducer_grad_ready(get(), use, in.data(), nullptr));
  }

  /** Say that a use has no gradient in this pass: zeros. */
  void grad_absent(std::size_t use) const { check(zc_reducer_grad_absent(get(), use)); }

  /** This rank's reduced gradients of one buffer. */
  std::span<float> output(std::size_t buffer) const {
    float *gradients = nullptr;
    std::size_t count = 0;
    check(zc_reducer_output(get(), buffer, &gradients, &count));
    return {gradients, count};
  }

  /** The same as runs of real elements, of all buffers; the array belongs to the reducer. */
  std::span<const zc_zero_piece> pieces() const { return read_pieces().first; }

  /** Elements of all pieces. */
  std::size_t state_count() const { return read_pieces().second; }

  /** Norm of all reduced gradients. Collective. */
  zc_norm norm() const {
    return detail::read_info<zc_norm>([this](zc_norm *norm) { return zc_reducer_norm(get(), norm); });
  }

  /** Multiply this rank's reduced gradients. */
  void scale(double factor) const { check(zc_reducer_scale(get(), factor)); }

  /** Which uses keep a bucket from being complete on a rank, in the present pass: a snapshot. */
  std::vector<std::size_t> blockers(std::size_t bucket, std::int32_t rank) const {
    std::vector<std::size_t> uses(table_->uses.size());
    std::size_t count = 0;
    check(zc_reducer_blockers(get(), bucket, rank, uses.data(), uses.size(), &count));
    uses.resize(count < uses.size() ? count : uses.size());
    return uses;
  }

  zc_reducer_stats stats() const {
    return detail::read_info<zc_reducer_stats>(
        [this](zc_reducer_stats *stats) { return zc_reducer_get_stats(get(), stats); });
  }
  zc_reducer_ledger ledger() const {
    return detail::read_info<zc_reducer_ledger>(
        [this](zc_reducer_ledger *ledger) { return zc_reducer_get_ledger(get(), ledger); });
  }

 private:
  Reducer(zc_reducer *owned, std::unique_ptr<const detail::UseTable> table) noexcept
      : Handle(owned), table_(std::move(table)) {}

  std::pair<std::span<const zc_zero_piece>, std::size_t> read_pieces() const {
    const zc_zero_piece *pieces = nullptr;
    std::size_t count = 0;
    std::size_t state_count = 0;
    check(zc_reducer_pieces(get(), &pieces, &count, &state_count));
    return {{pieces, count}, state_count};
  }

  std::unique_ptr<const detail::UseTable> table_;
};

}  // namespace zc
