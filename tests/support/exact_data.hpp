// Inputs for reductions. *Exact* data are small whole numbers whose sums and products fit every type, so that the
// result needs no oracle. *Rough* data round, overflow and hold NaN, infinities, -0 and subnormals: those need one.
#pragma once

#include "base/half.hpp"

#include <zerocomm/types.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace zerocomm::test {

using Bytes = std::vector<std::byte>;

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b = 0) {
  std::uint64_t x = (a + 0x9e3779b97f4a7c15ULL) ^ (b * 0xd6e8feb86659fd93ULL);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
  return x ^ x >> 31;
}

inline bool is_float(zc_dtype dtype) { return dtype >= ZC_DTYPE_F64 && dtype <= ZC_DTYPE_BF16; }

template <class T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}
template <class T>
T get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Writes `value`, rounded once; reads it back. f8e4m3 and u8 are plain bytes.
inline void store_element(zc_dtype dtype, double value, std::byte* to) {
  switch (dtype) {
    case ZC_DTYPE_F64:
      return put(to, value);
    case ZC_DTYPE_F32:
      return put(to, static_cast<float>(value));
    case ZC_DTYPE_F16:
      return put(to, f16_from_float(static_cast<float>(value)));
    case ZC_DTYPE_BF16:
      return put(to, bf16_from_float(static_cast<float>(value)));
    case ZC_DTYPE_I64:
      return put(to, static_cast<std::int64_t>(value));
    case ZC_DTYPE_I32:
      return put(to, static_cast<std::int32_t>(value));
    case ZC_DTYPE_I8:
      return put(to, static_cast<std::int8_t>(static_cast<int>(value)));
    default:
      return put(to, static_cast<std::uint8_t>(static_cast<int>(value)));
  }
}
inline double load_element(zc_dtype dtype, const std::byte* from) {
  switch (dtype) {
    case ZC_DTYPE_F64:
      return get<double>(from);
    case ZC_DTYPE_F32:
      return static_cast<double>(get<float>(from));
    case ZC_DTYPE_F16:
      return static_cast<double>(f16_to_float(get<std::uint16_t>(from)));
    case ZC_DTYPE_BF16:
      return static_cast<double>(bf16_to_float(get<std::uint16_t>(from)));
    case ZC_DTYPE_I64:
      return static_cast<double>(get<std::int64_t>(from));
    case ZC_DTYPE_I32:
      return get<std::int32_t>(from);
    case ZC_DTYPE_I8:
      return get<std::int8_t>(from);
    default:
      return get<std::uint8_t>(from);
  }
}

// Element `index` of rank `rank`: a whole number from 0 to 3.
inline double exact_element(std::int32_t rank, std::size_t index) {
  return static_cast<double>(mix(static_cast<std::uint64_t>(rank) + 1, index) % 4);
}

// The sum over `ranks` ranks: exact in every type for up to 64 ranks, i8 apart.
inline double exact_sum(std::int32_t ranks, std::size_t index) {
  double sum = 0;
  for (std::int32_t rank = 0; rank < ranks; ++rank) sum += exact_element(rank, index);
  return sum;
}

// Elements [first, first + count) of a rank's exact vector.
inline Bytes exact_input(zc_dtype dtype, std::int32_t rank, std::size_t count, std::size_t first = 0) {
  const std::size_t each = zc_dtype_bytes(dtype);
  Bytes data(count * each);
  for (std::size_t i = 0; i < count; ++i) store_element(dtype, exact_element(rank, first + i), data.data() + i * each);
  return data;
}

// A rank's rough vector. Integers are any bits, so that they wrap.
inline Bytes rough_input(zc_dtype dtype, std::uint64_t seed, std::int32_t rank, std::size_t count) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // Subnormals of f32 and bf16, of f16, the largest f16, and values that cancel.
  constexpr double kSpecial[] = {-0.0,    0.0,     kInfinity, -kInfinity, 0x1p-140, -0x1p-127,
                                 0x1p-20, 65504.0, 1e8,       -1e8,       1.0};
  const std::size_t each = zc_dtype_bytes(dtype);
  Bytes data(count * each);
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* to = data.data() + i * each;
    const std::uint64_t draw = mix(seed * 1024 + static_cast<std::uint64_t>(rank), i);
    if (!is_float(dtype)) {
      std::memcpy(to, &draw, each);
    } else if (draw % 61 == 0) {
      store_element(dtype, std::numeric_limits<double>::quiet_NaN(), to);
    } else if (draw % 7 == 0) {
      store_element(dtype, kSpecial[draw / 7 % std::size(kSpecial)], to);
    } else {
      const double significand = static_cast<double>(static_cast<std::int64_t>(draw)) * 0x1p-63;
      store_element(dtype, std::ldexp(significand, static_cast<int>(draw >> 8 & 15) - 8), to);
    }
  }
  return data;
}

// The first element in which two vectors differ, or `count`. Any NaN equals any other.
inline std::size_t first_difference(zc_dtype dtype, const std::byte* a, const std::byte* b, std::size_t count) {
  const std::size_t each = zc_dtype_bytes(dtype);
  if (count == 0 || std::memcmp(a, b, count * each) == 0) return count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte *x = a + i * each, *y = b + i * each;
    if (std::memcmp(x, y, each) == 0) continue;
    if (!is_float(dtype) || !std::isnan(load_element(dtype, x)) || !std::isnan(load_element(dtype, y))) return i;
  }
  return count;
}

inline std::uint64_t hash_bytes(const std::byte* from, std::size_t bytes) {
  std::uint64_t hash = mix(bytes);
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<std::uint64_t>(from[i])) * 0x100000001b3ULL;
  return mix(hash);
}

}  // namespace zerocomm::test
