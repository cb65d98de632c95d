/**
 * Element types: which C++ type has which zc_dtype, and what may be given as a buffer.
 *
 * A buffer is any range whose elements lie end to end: std::span, std::vector, std::array, an array, zc::Memory. A strided view,
 * a temporary, an output that is const, and an element type without a dtype do not compile.
 */
#pragma once

#include <zerocomm/types.h>
#include <zerocomm/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>

namespace zc {

/** 16-bit numbers and bytes that C++20 has no type for: their bits alone. zc_cast converts. */
struct bf16 {
  std::uint16_t bits;
  friend constexpr bool operator==(bf16, bf16) = default;
};
struct f16 {
  std::uint16_t bits;
  friend constexpr bool operator==(f16, f16) = default;
};
struct f8e4m3 {
  std::uint8_t bits;
  friend constexpr bool operator==(f8e4m3, f8e4m3) = default;
};

/** The dtype of T; NONE if it has none. Specialise it for a type of your own with the same bits, such as a framework's bf16. */
template <class T>
struct dtype_of {
  static constexpr zc_dtype value = ZC_DTYPE_NONE;
};
template <>
struct dtype_of<double> {
  static constexpr zc_dtype value = ZC_DTYPE_F64;
};
template <>
struct dtype_of<float> {
  static constexpr zc_dtype value = ZC_DTYPE_F32;
};
template <>
struct dtype_of<f16> {
  static constexpr zc_dtype value = ZC_DTYPE_F16;
};
template <>
struct dtype_of<bf16> {
  static constexpr zc_dtype value = ZC_DTYPE_BF16;
};
template <>
struct dtype_of<f8e4m3> {
  static constexpr zc_dtype value = ZC_DTYPE_F8E4M3;
};
template <>
struct dtype_of<std::int8_t> {
  static constexpr zc_dtype value = ZC_DTYPE_I8;
};
template <>
struct dtype_of<std::uint8_t> {
  static constexpr zc_dtype value = ZC_DTYPE_U8;
};
template <>
struct dtype_of<int> {
  static constexpr zc_dtype value = ZC_DTYPE_I32;
};
template <>
struct dtype_of<long> {
  static constexpr zc_dtype value = sizeof(long) == 8 ? ZC_DTYPE_I64 : ZC_DTYPE_I32;
};
template <>
struct dtype_of<long long> {
  static constexpr zc_dtype value = ZC_DTYPE_I64;
};

template <class T>
inline constexpr zc_dtype dtype = dtype_of<std::remove_cv_t<T>>::value;

/** A type that buffers may hold. */
template <class T>
concept Element = dtype<T>
!= ZC_DTYPE_NONE &&std::is_trivially_copyable_v<T>;

namespace detail {

template <class Range>
constexpr void check_range() {
  static_assert(
      std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range>,
      "zc: the elements of a buffer must lie end to end, as those of a std::span do; a strided view has gaps");
  static_assert(std::ranges::borrowed_range<Range>,
                "zc: a buffer must outlive the call, and this one is a temporary; name it, or pass a std::span");
  if constexpr (std::ranges::range<Range>) {
    static_assert(Element<std::ranges::range_value_t<Range>>,
                  "zc: no zc_dtype belongs to this element type; see zc::dtype_of");
  }
}

/** A buffer that is read. */
template <class Range>
constexpr auto input(Range &range) {
  using T = std::remove_cv_t<std::remove_reference_t<std::ranges::range_reference_t<Range &>>>;
  return std::span<const T>(std::ranges::data(range), std::ranges::size(range));
}

/** A buffer that is written. */
template <class Range>
constexpr auto output(Range &range) {
  using T = std::remove_reference_t<std::ranges::range_reference_t<Range &>>;
  static_assert(!std::is_const_v<T>, "zc: an output is written, and the elements of this one are const");
  return std::span<T>(std::ranges::data(range), std::ranges::size(range));
}

template <class A, class B>
constexpr void check_same() {
  static_assert(dtype<std::ranges::range_value_t<A>> == dtype<std::ranges::range_value_t<B>>,
                "zc: send and recv must have the same element type");
}

constexpr bool converts(zc_dtype dtype) {
  return dtype == ZC_DTYPE_F32 || dtype == ZC_DTYPE_F16 || dtype == ZC_DTYPE_BF16;
}

/** A reduction rounds into its output's type, where that is defined. */
template <class Send, class Recv>
constexpr void check_reduction() {
  constexpr zc_dtype from = dtype<std::ranges::range_value_t<Send>>;
  constexpr zc_dtype to = dtype<std::ranges::range_value_t<Recv>>;
  static_assert(from != ZC_DTYPE_F8E4M3, "zc: f8e4m3 elements are moved, never computed with");
  static_assert(from == to || (converts(from) && converts(to)),
                "zc: the result of a reduction has the element type of its input, or both are float, f16 or bf16");
}

inline void check_count(const char *call, const char *what, std::size_t found, std::size_t wanted) {
  if (found == wanted) return;
  throw Error(ZC_ARGUMENT, std::string(call) + ": " + what + " has " + std::to_string(found) + " elements and needs " +
                               std::to_string(wanted));
}

/** `found` must be `share` times `parts`, which may be beyond a size_t. */
inline void check_multiple(const char *call, const char *what, std::size_t found, std::size_t share,
                           std::int32_t parts) {
  const auto ranks = static_cast<std::size_t>(parts);
  if (found % ranks == 0 && found / ranks == share) return;
  throw Error(ZC_ARGUMENT, std::string(call) + ": " + what + " has " + std::to_string(found) + " elements and needs " +
                               std::to_string(share) + " for each of " + std::to_string(parts) + " ranks");
}

}  // namespace detail
}  // namespace zc
