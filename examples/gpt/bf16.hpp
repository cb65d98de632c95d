// bfloat16 as bits: the upper half of an f32.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace gpt {

inline float bf16_to_float(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// Round to nearest, ties to even; a NaN stays a NaN.
inline std::uint16_t float_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t quiet_nan = (bits >> 16) | 0x0040U;
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? quiet_nan : rounded);
}

inline void bf16_to_float(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = bf16_to_float(from[i]);
}

inline void float_to_bf16(const float* from, std::uint16_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = float_to_bf16(from[i]);
}

}  // namespace gpt
