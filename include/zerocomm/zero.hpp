/**
 * The ZeRO engine in C++: see zero.h, whose contracts hold.
 */
#pragma once

#include <zerocomm/zero.h>
#include <zerocomm/held.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zc {

/** Options of an engine, as in zc_zero_config; what is left out has its default. */
struct ZeroConfig {
  std::size_t budget_bytes = 0;
  std::size_t max_held_bytes = 0;
  std::int32_t gradient_slots = 0;
  std::int32_t micro_steps = 0;
  zc_accumulation accumulation = ZC_ACCUMULATION_DEFAULT;
  zc_absent absent = ZC_ABSENT_DEFAULT;
  zc_launch launch = ZC_LAUNCH_DEFAULT;
  zc_slices slices = ZC_SLICES_DEFAULT;
  std::int32_t prefetch = 0;
  bool drop_released = false;
  std::int32_t poison = 0;
  double gradient_divisor = 0;
  std::chrono::nanoseconds deadline{0};
  zc_pre_reduce_fn pre_reduce = nullptr;
  void *pre_reduce_context = nullptr;
  zc_allocator gather_allocator{};

  zc_zero_config raw() const noexcept {
    zc_zero_config config{};
    config.struct_size = sizeof config;
    config.budget_bytes = budget_bytes;
    config.max_held_bytes = max_held_bytes;
    config.gradient_slots = gradient_slots;
    config.micro_steps = micro_steps;
    config.accumulation = accumulation;
    config.absent = absent;
    config.launch = launch;
    config.slices = slices;
    config.prefetch = prefetch;
    config.drop_released = drop_released ? 1 : 0;
    config.poison = poison;
    config.gradient_divisor = gradient_divisor;
    config.deadline_ns = deadline.count();
    config.pre_reduce = pre_reduce;
    config.pre_reduce_context = pre_reduce_context;
    config.gather_allocator = gather_allocator;
    return config;
  }
};

/** A unit's parameters between acquire and release. */
using HeldUnit = detail::Held<zc_zero, zc_zero_release>;

/** An engine. Its destructor detaches this rank; it must go before its communicator. */
class Zero : public detail::Handle<detail::View<zc_zero>, zc_zero, zc_zero_destroy> {
 public:
  Zero() = default;

  /** Collective. All memory is allocated here, but for one array of addresses in each HeldUnit. */
  static Zero create(CommView comm, const Layout &layout, const ZeroConfig &config = {}) {
    auto table = std::make_unique<detail::UseTable>(layout);
    const zc_zero_config raw = config.raw();
    zc_zero *zero = nullptr;
    check(zc_zero_create(comm.get(), layout.get(), &raw, &zero));
    return Zero(zero, std::move(table));
  }

  /** Load one unit's values; full: one address per use, or empty where this rank is not the root. Collective. */
  void load(std::size_t unit, std::span<const void *const> full, zc_dtype dtype = ZC_DTYPE_NONE,
            std::int32_t root = ZC_NONE) const {
    if (!full.empty()) detail::check_count("zc::Zero::load", "full", full.size(), uses_of("zc::Zero::load", unit));
    check(zc_zero_load(get(), unit, full.empty() ? nullptr : full.data(), dtype, root));
  }

  /** Open a pass. */
  void begin(const std::string &pass, zc_phase phase) const { check(zc_zero_begin(get(), pass.c_str(), phase)); }

  /** Close the pass. After a gradient pass it is collective. */
  void end() const { check(zc_zero_end(get())); }

  /** Get a unit's parameters, for as long as the result lives. Threads: any, at any time. */
  [[nodiscard]] HeldUnit acquire(std::size_t unit) const {
    std::vector<const void *> tensors(uses_of("zc::Zero::acquire", unit));
    check(zc_zero_acquire(get(), unit, tensors.data(), tensors.size(), nullptr));
    return {get(), table_.get(), unit, std::move(tensors)};
  }

  /** The same without an allocation: the caller brings room for the addresses, and calls release. */
  void acquire(std::size_t unit, std::span<const void *> tensors) const {
    check(zc_zero_acquire(get(), unit, tensors.data(), tensors.size(), nullptr));
  }
  void release(std::size_t unit) const { check(zc_zero_release(get(), unit, nullptr)); }

  /** Fetch a unit ahead by hand. False: no room, or its owners have not published; nothing happened. */
  bool prefetch(std::size_t unit) const {
    const zc_status status = zc_zero_prefetch(get(), unit);
    if (status != ZC_AGAIN) check(status);
    return status == ZC_OK;
  }

  /** Hand over one use's gradient, in the tensor's gradient dtype; it stays, unchanged, until end. */
  template <class Gradient>
  void grad_ready(std::size_t use, Gradient &&gradient) const {
    detail::check_range<Gradient>();
    const auto in = detail::input(gradient);
    table_->check_gradient("zc::Zero::grad_ready", use, detail::dtype_in(in), in.size());
    check(zc_zero_grad_ready(get(), use, in.data(), nullptr));
  }

  /** Say that a use has no gradient in this pass: zeros. */
  void grad_absent(std::size_t use) const { check(zc_zero_grad_absent(get(), use)); }

  /** Where a use's gradient can be written so that nothing needs to be copied. Stage 1. */
  template <Element T>
  std::span<T> grad_buffer(std::size_t use) const {
    const detail::UseTable::Row &row = table_->use("zc::Zero::grad_buffer", use);
    detail::UseTable::check("zc::Zero::grad_buffer", use, row.gradient_dtype, row.count, dtype<T>, row.count);
    void *gradient = nullptr;
    check(zc_zero_grad_buffer(get(), use, &gradient));
    return {static_cast<T *>(gradient), row.count};
  }

  /** Norm of all gradients after a step's last pass. Collective. */
  zc_norm norm() const {
    return detail::read_info<zc_norm>([this](zc_norm *norm) { return zc_zero_norm(get(), norm); });
  }

  /** Multiply this rank's reduced gradients. */
  void scale(double factor) const { check(zc_zero_scale(get(), factor)); }

  /** Open the update: waits until no rank reads what is about to be overwritten. */
  void update_begin() const { check(zc_zero_update_begin(get())); }

  /** Round f32 masters into 16-bit parameters. */
  void cast() const { check(zc_zero_cast(get())); }

  /** Announce the new values. */
  void publish() const { check(zc_zero_publish(get(), nullptr)); }

  /** Announce that nothing changed. */
  void publish_unchanged() const { check(zc_zero_publish_unchanged(get())); }

  /** The pieces that this rank updates; the array belongs to the engine. */
  std::span<const zc_zero_piece> pieces() const { return read_pieces().first; }

  /** Elements of each of the caller's moments. */
  std::size_t state_count() const { return read_pieces().second; }

  /** This rank's shard of one state and buffer. ARGUMENT: T is not its dtype. */
  template <Element T>
  std::span<T> state(const Layout &layout, zc_state state, std::size_t buffer) const {
    const zc_buffer_info info = layout.buffer(buffer);
    const zc_dtype wanted = state == ZC_STATE_PARAMETER  ? info.dtype
                            : state == ZC_STATE_GRADIENT ? info.shard_gradient_dtype
                                                         : ZC_DTYPE_F32;
    if (dtype<T> != wanted)
      throw Error(ZC_ARGUMENT, "zc::Zero::state: buffer " + std::to_string(buffer) + " holds " + zc_dtype_name(wanted) +
                                   ", not " + zc_dtype_name(dtype<T>));
    void *shard = nullptr;
    std::size_t count = 0;
    check(zc_zero_state(get(), state, buffer, &shard, &count));
    return {static_cast<T *>(shard), count};
  }

  /** Copy one whole tensor to this rank: its elements, in storage dtype or (MASTER) in f32. */
  void export_tensor(std::size_t tensor, zc_state state, void *destination) const {
    check(zc_zero_export(get(), tensor, state, destination));
  }

  /** Which uses keep a bucket from being complete on a rank, in the present pass: a snapshot. */
  std::vector<std::size_t> blockers(std::size_t bucket, std::int32_t rank) const {
    std::vector<std::size_t> uses(table_->uses.size());
    std::size_t count = 0;
    check(zc_zero_blockers(get(), bucket, rank, uses.data(), uses.size(), &count));
    uses.resize(count < uses.size() ? count : uses.size());
    return uses;
  }

  zc_zero_stats stats() const {
    return detail::read_info<zc_zero_stats>([this](zc_zero_stats *stats) { return zc_zero_get_stats(get(), stats); });
  }
  zc_zero_ledger ledger() const {
    return detail::read_info<zc_zero_ledger>(
        [this](zc_zero_ledger *ledger) { return zc_zero_get_ledger(get(), ledger); });
  }

 private:
  Zero(zc_zero *owned, std::unique_ptr<const detail::UseTable> table) noexcept
      : Handle(owned), table_(std::move(table)) {}

  std::size_t uses_of(const char *call, std::size_t unit) const { return table_->unit(call, unit).size(); }

  std::pair<std::span<const zc_zero_piece>, std::size_t> read_pieces() const {
    const zc_zero_piece *pieces = nullptr;
    std::size_t count = 0;
    std::size_t state_count = 0;
    check(zc_zero_pieces(get(), &pieces, &count, &state_count));
    return {{pieces, count}, state_count};
  }

  std::unique_ptr<const detail::UseTable> table_;  // on the heap: a HeldUnit keeps its address while the handle moves
};

}  // namespace zc
