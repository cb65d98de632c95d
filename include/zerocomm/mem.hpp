/**
 * Memory that other ranks can reach, and conversions, in C++: see mem.h, whose contracts hold.
 */
#pragma once

#include <zerocomm/mem.h>
#include <zerocomm/comm.hpp>
#include <zerocomm/types.hpp>

#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

namespace zc {

/** An array of zeros from zc_mem_alloc: for collectives without staging, and for windows, which must go before it. */
template <class T>
class Memory {
  static_assert(std::is_trivially_copyable_v<T>, "zc: shared memory holds plain values alone");

 public:
  Memory() = default;
  Memory(CommView comm, std::size_t count) : comm_(comm), count_(count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
      throw Error(ZC_OVERFLOW, "zc::Memory: " + std::to_string(count) + " elements are more bytes than 64 bits count");
    void *memory = nullptr;
    check(zc_mem_alloc(comm_.get(), count * sizeof(T), &memory));
    elements_ = static_cast<T *>(memory);
  }
  Memory(Memory &&other) noexcept
      : comm_(other.comm_),
        elements_(std::exchange(other.elements_, nullptr)),
        count_(std::exchange(other.count_, 0)) {}
  Memory &operator=(Memory &&other) noexcept {
    if (this != &other) {
      close();
      comm_ = other.comm_;
      elements_ = std::exchange(other.elements_, nullptr);
      count_ = std::exchange(other.count_, 0);
    }
    return *this;
  }
  ~Memory() { close(); }

  /** Free it now. Empty afterwards, whatever the status says. */
  zc_status close() noexcept {
    count_ = 0;
    T *const elements = std::exchange(elements_, nullptr);
    return elements == nullptr ? ZC_OK : zc_mem_free(comm_.get(), elements);
  }

  T *data() noexcept { return elements_; }
  const T *data() const noexcept { return elements_; }
  std::size_t size() const noexcept { return count_; }
  std::size_t size_bytes() const noexcept { return count_ * sizeof(T); }
  T *begin() noexcept { return elements_; }
  T *end() noexcept { return elements_ + count_; }
  const T *begin() const noexcept { return elements_; }
  const T *end() const noexcept { return elements_ + count_; }
  T &operator[](std::size_t i) noexcept { return elements_[i]; }
  const T &operator[](std::size_t i) const noexcept { return elements_[i]; }

 private:
  CommView comm_;
  T *elements_ = nullptr;
  std::size_t count_ = 0;
};

/** Convert elements between double, float, f16 and bf16, one rounding each. The counts are equal. */
template <class From, class To>
void cast(From &&from, To &&to) {
  detail::check_range<From>();
  detail::check_range<To>();
  const auto in = detail::input(from);
  const auto out = detail::output(to);
  detail::check_count("zc::cast", "the output", out.size(), in.size());
  using In = typename decltype(in)::element_type;
  using Out = typename decltype(out)::element_type;
  check(zc_cast(in.data(), dtype<In>, out.data(), dtype<Out>, in.size()));
}

}  // namespace zc
