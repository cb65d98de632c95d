// What the host kernels must compute, written a second time and in another way: all values pass through f64, and
// rounding is scaling by a power of two and nearbyint. Slow, and shares no code with the library.
//
// Adding, multiplying or dividing two f32 values in f64 and rounding the result to f32 is the same as doing it in f32,
// because 53 >= 2 * 24 + 2.
#pragma once

#include <zerocomm/types.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace reference {

__extension__ typedef __int128 WideInt;

struct FloatFormat {
  int digits;        // significand bits, the hidden one included
  int min_exponent;  // of the smallest normal number
  int max_exponent;  // of the largest number
};

inline FloatFormat format_of(zc_dtype dtype) {
  switch (dtype) {
    case ZC_DTYPE_F32:
      return {24, -126, 127};
    case ZC_DTYPE_F16:
      return {11, -14, 15};
    case ZC_DTYPE_BF16:
      return {8, -126, 127};
    default:
      return {53, -1022, 1023};
  }
}

inline bool is_float(zc_dtype dtype) {
  return dtype == ZC_DTYPE_F64 || dtype == ZC_DTYPE_F32 || dtype == ZC_DTYPE_F16 || dtype == ZC_DTYPE_BF16;
}

// The type that sums of `dtype` are kept in.
inline zc_dtype accumulator_of(zc_dtype dtype) {
  return dtype == ZC_DTYPE_F16 || dtype == ZC_DTYPE_BF16 ? ZC_DTYPE_F32 : dtype;
}

// The value of `dtype` nearest to x, ties to even.
inline double round_to(zc_dtype dtype, double x) {
  if (dtype == ZC_DTYPE_F64 || std::isnan(x) || std::isinf(x) || x == 0) return x;
  const FloatFormat format = format_of(dtype);
  const int exponent = std::max(std::ilogb(x), format.min_exponent);
  const double unit = std::ldexp(1.0, exponent - (format.digits - 1));
  const double rounded = std::copysign(std::nearbyint(x / unit) * unit, x);
  if (std::fabs(rounded) >= std::ldexp(1.0, format.max_exponent + 1))
    return std::copysign(std::numeric_limits<double>::infinity(), x);
  return rounded;
}

// The value of the bit pattern of an f16, bf16 or f32.
inline double decode_bits(zc_dtype dtype, std::uint64_t bits) {
  const FloatFormat format = format_of(dtype);
  const int fraction_bits = format.digits - 1;
  const int exponent_bits = static_cast<int>(zc_dtype_bytes(dtype)) * 8 - 1 - fraction_bits;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << fraction_bits) - 1);
  const auto exponent = static_cast<int>((bits >> fraction_bits) & ((std::uint64_t{1} << exponent_bits) - 1));
  const double sign = (bits >> (fraction_bits + exponent_bits)) & 1 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(static_cast<double>(fraction), format.min_exponent - fraction_bits);
  const auto significand = static_cast<double>(fraction + (std::uint64_t{1} << fraction_bits));
  return sign * std::ldexp(significand, exponent - 1 + format.min_exponent - fraction_bits);
}

// The bit pattern of a value that `dtype` can hold exactly.
inline std::uint64_t encode_bits(zc_dtype dtype, double value) {
  if (dtype == ZC_DTYPE_F64) return std::bit_cast<std::uint64_t>(value);
  const FloatFormat format = format_of(dtype);
  const int fraction_bits = format.digits - 1;
  const int exponent_bits = static_cast<int>(zc_dtype_bytes(dtype)) * 8 - 1 - fraction_bits;
  const std::uint64_t sign = std::uint64_t{std::signbit(value)} << (fraction_bits + exponent_bits);
  const std::uint64_t infinity = ((std::uint64_t{1} << exponent_bits) - 1) << fraction_bits;
  if (std::isnan(value)) return sign | infinity | std::uint64_t{1} << (fraction_bits - 1);
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  const int exponent = std::max(std::ilogb(value), format.min_exponent);
  const auto units = static_cast<std::uint64_t>(std::ldexp(std::fabs(value), fraction_bits - exponent));
  // A subnormal has no hidden bit and exponent field 0; the field is one too high by the hidden bit of the others.
  return sign | ((static_cast<std::uint64_t>(exponent - format.min_exponent) << fraction_bits) + units);
}

// Element i of memory that holds elements of a float type.
inline double load_float(zc_dtype dtype, const void* memory, std::size_t i) {
  const std::size_t bytes = zc_dtype_bytes(dtype);
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const unsigned char*>(memory) + i * bytes, bytes);
  return dtype == ZC_DTYPE_F64 ? std::bit_cast<double>(bits) : decode_bits(dtype, bits);
}

// Element i of memory that holds elements of an integer type.
inline WideInt load_int(zc_dtype dtype, const void* memory, std::size_t i) {
  const std::size_t bytes = zc_dtype_bytes(dtype);
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const unsigned char*>(memory) + i * bytes, bytes);
  WideInt value = bits;
  if (dtype != ZC_DTYPE_U8 && (bits >> (8 * bytes - 1) & 1) != 0) value -= WideInt{1} << (8 * bytes);
  return value;
}

struct Request {
  zc_dtype in = ZC_DTYPE_F32;
  zc_dtype out = ZC_DTYPE_F32;
  zc_op op = ZC_OP_SUM;
  double divisor = 0;
  double premul = 1;
  bool accumulate = false;
};

inline double min_float(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

// The value of one element of the output, after its one rounding.
inline double reduce_floats(const Request& request, const std::vector<double>& contributions, double old_output) {
  const zc_dtype kept = accumulator_of(request.in);
  const double premul = round_to(kept, request.premul);
  double result = 0;
  for (std::size_t rank = 0; rank < contributions.size(); ++rank) {
    double x = contributions[rank];
    if (request.op == ZC_OP_PREMUL_SUM) x = round_to(kept, x * premul);
    if (rank == 0) {
      result = x;
    } else {
      switch (request.op) {
        case ZC_OP_MIN:
          result = min_float(result, x);
          break;
        case ZC_OP_MAX:
          result = -min_float(-result, -x);
          break;
        case ZC_OP_PROD:
          result = round_to(kept, result * x);
          break;
        default:
          result = round_to(kept, result + x);
          break;
      }
    }
  }
  double divisor = round_to(kept, request.divisor);
  if (request.op == ZC_OP_AVG && request.divisor == 0) divisor = static_cast<double>(contributions.size());
  if (request.accumulate) result = round_to(kept, old_output + result);
  if (divisor != 0) result = round_to(kept, result / divisor);
  return round_to(request.out, result);
}

// The low bits of the exact result; the caller keeps as many as the type has.
inline std::uint64_t reduce_ints(const Request& request, const std::vector<WideInt>& contributions,
                                 WideInt old_output) {
  WideInt result = contributions[0];
  for (std::size_t rank = 1; rank < contributions.size(); ++rank) {
    const WideInt x = contributions[rank];
    switch (request.op) {
      case ZC_OP_MIN:
        result = x < result ? x : result;
        break;
      case ZC_OP_MAX:
        result = x > result ? x : result;
        break;
      case ZC_OP_PROD:
        result = static_cast<std::int64_t>(result) * x;
        break;  // the low 64 bits are enough
      default:
        result += x;
        break;
    }
  }
  return static_cast<std::uint64_t>(request.accumulate ? old_output + result : result);
}

}  // namespace reference
