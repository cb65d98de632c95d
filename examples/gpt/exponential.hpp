// exp for f32 without a maths library: the same bits on every machine, and a compiler can vectorise it.
#pragma once

#include <bit>
#include <cstdint>

namespace gpt {

// Relative error below 3e-7 for x in [-87, 88]; x outside is taken as the nearest end of that range.
inline float exponential(float x) {
  x = x < -87.0F ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  // x = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits of
  // the sum; ln 2 is split in two so that n * kHigh is exact. A NaN stays one.
  constexpr float kRounder = 12582912.0F;
  constexpr float kHigh = 0.693145751953125F;
  constexpr float kLow = 1.42860677e-6F;
  const float shifted = x * 1.44269504F + kRounder;
  const float n = shifted - kRounder;
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRounder) + 127U;
  const float r = (x - n * kHigh) - n * kLow;
  // Taylor series to r^7: its remainder is below 6e-9.
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  return p * std::bit_cast<float>(exponent << 23);
}

}  // namespace gpt
