// The arithmetic of reductions, element by element, exactly as <zerocomm/types.h> defines it. Written to be read, not
// to be fast: kernels are compared with it bit for bit.
#pragma once

#include "base/half.hpp"

#include <zerocomm/types.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace zerocomm::schedule {

// The smaller (larger) of two; a NaN wins, and -0 comes before +0.
template <class T>
T minimum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
    if (a == b) return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}
template <class T>
T maximum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
}

// Integers wrap: the work is done without sign, and wide enough that small types are not promoted to int.
template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}
template <class T>
T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else
    return a * b;
}

template <class T>
T combine(zc_op op, T a, T b) {
  switch (op) {
    case ZC_OP_MIN:
      return minimum(a, b);
    case ZC_OP_MAX:
      return maximum(a, b);
    case ZC_OP_PROD:
      return multiply(a, b);
    default:
      return add(a, b);
  }
}

// A value as the element type `to` would keep it. f32 is the accumulation type of all types named here.
inline float round_to(zc_dtype to, float value) {
  if (to == ZC_DTYPE_BF16) return to_float(to_bf16(value));
  if (to == ZC_DTYPE_F16) return to_float(to_f16(value));
  return value;
}

}  // namespace zerocomm::schedule
