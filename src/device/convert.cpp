// Element conversion loops, one per pair of types.
#include "device/convert.hpp"

#include "base/check.hpp"
#include "device/element.hpp"
#include "device/reduce.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace zerocomm::device {
namespace {

// f64 to f32 by rounding to odd: cut towards zero, and set the last bit if anything fell away. Rounding that again,
// to a type at least two bits narrower, is the same as rounding the f64 once; two roundings to nearest are not.
float to_f32_odd(double value) noexcept {
  const auto nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value || value != value) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(back) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

template <class From, class To>
typename To::Stored convert_one(typename From::Stored stored) noexcept {
  const typename From::Value value = From::load(stored);
  if constexpr (std::is_same_v<typename From::Value, double> && !std::is_same_v<typename To::Value, double>) {
    if constexpr (std::is_same_v<To, F32Element>) return static_cast<float>(value);
    return To::store(to_f32_odd(value));
  } else {
    return To::store(value);
  }
}

template <class From, class To>
void convert_range(const void* src, void* dst, std::size_t count) noexcept {
  const auto* in = static_cast<const typename From::Stored*>(src);
  auto* out = static_cast<typename To::Stored*>(dst);
  for (std::size_t i = 0; i < count; ++i) out[i] = convert_one<From, To>(in[i]);
}

// Among f32, f16 and bf16: a sum of one input.
template <zc_dtype kFrom, zc_dtype kTo>
void convert_by_sum(const void* src, void* dst, std::size_t count) noexcept {
  find_reduce(kFrom, kTo, ZC_OP_SUM)(&src, 1, dst, count, {});
}

template <std::size_t kElementBytes>
void copy_range(const void* src, void* dst, std::size_t count) noexcept {
  if (count != 0) std::memmove(dst, src, count * kElementBytes);
}

ConvertFn find_from_f64(zc_dtype to) noexcept {
  switch (to) {
    case ZC_DTYPE_F32:
      return convert_range<F64Element, F32Element>;
    case ZC_DTYPE_F16:
      return convert_range<F64Element, F16Element>;
    case ZC_DTYPE_BF16:
      return convert_range<F64Element, Bf16Element>;
    default:
      return nullptr;
  }
}

template <class From, zc_dtype kFrom>
ConvertFn find_from(zc_dtype to) noexcept {
  switch (to) {
    case ZC_DTYPE_F64:
      return convert_range<From, F64Element>;
    case ZC_DTYPE_F32:
      return convert_by_sum<kFrom, ZC_DTYPE_F32>;
    case ZC_DTYPE_F16:
      return convert_by_sum<kFrom, ZC_DTYPE_F16>;
    case ZC_DTYPE_BF16:
      return convert_by_sum<kFrom, ZC_DTYPE_BF16>;
    default:
      return nullptr;
  }
}

ConvertFn find_copy(zc_dtype dtype) noexcept {
  switch (zc_dtype_bytes(dtype)) {
    case 1:
      return copy_range<1>;
    case 2:
      return copy_range<2>;
    case 4:
      return copy_range<4>;
    case 8:
      return copy_range<8>;
    default:
      return nullptr;
  }
}

}  // namespace

ConvertFn find_convert(zc_dtype from, zc_dtype to) noexcept {
  if (from == to) return find_copy(from);
  switch (from) {
    case ZC_DTYPE_F64:
      return find_from_f64(to);
    case ZC_DTYPE_F32:
      return find_from<F32Element, ZC_DTYPE_F32>(to);
    case ZC_DTYPE_F16:
      return find_from<F16Element, ZC_DTYPE_F16>(to);
    case ZC_DTYPE_BF16:
      return find_from<Bf16Element, ZC_DTYPE_BF16>(to);
    default:
      return nullptr;
  }
}

zc_status convert(zc_dtype from, zc_dtype to, const void* src, void* dst, std::size_t count) noexcept {
  const ConvertFn run = find_convert(from, to);
  if (run == nullptr)
    return fail(ZC_UNSUPPORTED, "conversion of %s (%d) to %s (%d): only f64, f32, f16 and bf16 convert",
                zc_dtype_name(from), static_cast<int>(from), zc_dtype_name(to), static_cast<int>(to));
  ZC_TRY(check_level());
  run(src, dst, count);
  return ZC_OK;
}

}  // namespace zerocomm::device
