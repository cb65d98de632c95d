/**
 * Units in the hands of a C++ program: what the typed calls of an engine compare with, and a unit between acquire and release.
 */
#pragma once

#include <zerocomm/layout.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zc::detail {

/** Of every use its count and dtypes, of every unit its uses. */
struct UseTable {
  struct Row {
    std::size_t count;
    zc_dtype dtype;
    zc_dtype gradient_dtype;
  };
  std::vector<Row> uses;
  std::vector<std::vector<std::size_t>> units;

  explicit UseTable(const Layout &layout) {
    const zc_layout_info info = layout.info();
    for (std::size_t i = 0; i < info.use_count; ++i) {
      const zc_use_info use = layout.use(i);
      const zc_buffer_info buffer = layout.buffer(use.buffer);
      uses.push_back({use.in_tensor.count, buffer.dtype, buffer.gradient_dtype});
    }
    for (std::size_t unit = 0; unit < info.unit_count; ++unit) {
      auto &list = units.emplace_back(layout.unit(unit).use_count);
      for (std::size_t i = 0; i < list.size(); ++i) list[i] = layout.unit_use(unit, i);
    }
  }

  const Row &use(const char *call, std::size_t use) const { return at(call, "use", uses, use); }
  const std::vector<std::size_t> &unit(const char *call, std::size_t unit) const {
    return at(call, "unit", units, unit);
  }

  static void check(const char *call, std::size_t use, zc_dtype wanted, std::size_t wanted_count, zc_dtype found,
                    std::size_t found_count) {
    if (found == wanted && found_count == wanted_count) return;
    throw Error(ZC_ARGUMENT, std::string(call) + ": use " + std::to_string(use) + " has " +
                                 std::to_string(wanted_count) + " elements of " + zc_dtype_name(wanted) + ", not " +
                                 std::to_string(found_count) + " of " + zc_dtype_name(found));
  }

  void check_gradient(const char *call, std::size_t index, zc_dtype found, std::size_t found_count) const {
    const Row &row = use(call, index);
    check(call, index, row.gradient_dtype, row.count, found, found_count);
  }

 private:
  template <class T>
  static const T &at(const char *call, const char *what, const std::vector<T> &rows, std::size_t i) {
    if (i < rows.size()) return rows[i];
    throw Error(ZC_ARGUMENT, std::string(call) + ": there is no " + what + " " + std::to_string(i) + ", only " +
                                 std::to_string(rows.size()));
  }
};

/** A unit's parameters between acquire and release. Its destructor releases them; it must go before its owner. */
template <class Owner, zc_status (*kRelease)(Owner *, std::size_t, void *)>
class Held {
 public:
  Held() = default;
  Held(Owner *owner, const UseTable *table, std::size_t unit, std::vector<const void *> tensors) noexcept
      : owner_(owner), table_(table), unit_(unit), tensors_(std::move(tensors)) {}
  Held(Held &&other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)),
        table_(other.table_),
        unit_(other.unit_),
        tensors_(std::move(other.tensors_)) {}
  Held &operator=(Held &&other) noexcept {
    if (this != &other) {
      close();
      owner_ = std::exchange(other.owner_, nullptr);
      table_ = other.table_;
      unit_ = other.unit_;
      tensors_ = std::move(other.tensors_);
    }
    return *this;
  }
  ~Held() { close(); }

  /** Give it back now. Empty afterwards, whatever the status says. */
  zc_status close() noexcept {
    Owner *const owner = std::exchange(owner_, nullptr);
    return owner == nullptr ? ZC_OK : kRelease(owner, unit_, nullptr);
  }

  /** The elements of the unit's use number `position`. ARGUMENT: its dtype is not that of T. */
  template <Element T>
  std::span<const T> tensor(std::size_t position) const {
    const std::size_t use = use_at(position);
    const UseTable::Row &row = table_->use("zc: held unit", use);
    UseTable::check("zc: held unit", use, row.dtype, row.count, dtype<T>, row.count);
    return {static_cast<const T *>(tensors_[position]), row.count};
  }

  /** Their address, as the C API gives it. */
  const void *address(std::size_t position) const {
    use_at(position);
    return tensors_[position];
  }

 private:
  std::size_t use_at(std::size_t position) const {
    if (owner_ == nullptr) throw Error(ZC_STATE, "zc: held unit: nothing is held");
    const auto &uses = table_->unit("zc: held unit", unit_);
    if (position < uses.size()) return uses[position];
    throw Error(ZC_ARGUMENT, "zc: held unit: there is no position " + std::to_string(position) + ", only " +
                                 std::to_string(uses.size()));
  }

  Owner *owner_ = nullptr;
  const UseTable *table_ = nullptr;
  std::size_t unit_ = 0;
  std::vector<const void *> tensors_;
};

}  // namespace zc::detail
