// Scalar conversions between f32 and the 16-bit formats f16 (IEEE binary16) and bf16, on raw bits.
//
// Round to nearest, ties to even; subnormals are kept; overflow gives infinity; a NaN stays a NaN of the same
// sign. Integer arithmetic only: hardware bf16 converts flush subnormals, and these run at compile time too.
#pragma once

#include <bit>
#include <cstdint>

namespace zerocomm {

// Storage types: they hold bits, so that a 16-bit integer is never taken for a number by mistake.
struct BF16 {
  std::uint16_t bits = 0;
  friend bool operator==(const BF16&, const BF16&) = default;
};
struct F16 {
  std::uint16_t bits = 0;
  friend bool operator==(const F16&, const F16&) = default;
};
static_assert(sizeof(BF16) == 2 && sizeof(F16) == 2);

constexpr float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

constexpr std::uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // Set the quiet bit: the payload may lie only in the bits that fall away, which would leave an infinity.
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity and NaN: all exponent bits are set in both formats
    const std::uint32_t quiet = magnitude > 0x7c00u ? 0x00400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13 | quiet);
  }
  if (magnitude < 0x0400u) {  // zero and subnormals are exact multiples of 2^-24
    const float unsigned_value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(unsigned_value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));  // exponent bias 15 becomes 127
}

constexpr std::uint16_t f16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)  // NaN
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65536 and above
  if (magnitude < 0x38800000u) {                                                    // below 2^-14: subnormal or zero
    if (magnitude < 0x33000000u) return sign;                                       // below 2^-25: rounds to zero
    // The result counts units of 2^-24; the significand counts units of 2^(exponent - 150).
    const std::uint32_t shift = 126u - (magnitude >> 23);  // 14 .. 24
    const std::uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t kept = significand >> shift;
    const std::uint32_t rest = significand & ((1u << shift) - 1u), half = 1u << (shift - 1u);
    const std::uint32_t up = rest > half || (rest == half && (kept & 1u) != 0) ? 1u : 0u;
    return static_cast<std::uint16_t>(sign | (kept + up));  // a carry gives the smallest normal number
  }
  // Drop 13 bits to nearest even and change the bias; a carry out of the largest number gives infinity.
  const std::uint32_t rounded = magnitude + 0x0fffu + ((magnitude >> 13) & 1u) - 0x38000000u;
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

constexpr float to_float(BF16 value) { return bf16_to_float(value.bits); }
constexpr float to_float(F16 value) { return f16_to_float(value.bits); }
constexpr BF16 to_bf16(float value) { return {bf16_from_float(value)}; }
constexpr F16 to_f16(float value) { return {f16_from_float(value)}; }

}  // namespace zerocomm
