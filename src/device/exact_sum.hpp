// Exact sum of squares of floats: a fixed-point number wide enough for any count of squares, rounded once at the end.
//
// Integers are added, so the result does not depend on the order, on the split into calls, or on the number of ranks.
// Between ranks the whole struct is summed as an array of kExactSumWords i64; then call normalize() or round().
#pragma once

#include <zerocomm/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace zerocomm::device {

// A square of an f32 is a multiple of 2^-298 and below 2^256; 2^64 of them are below 2^320: 618 bits.
inline constexpr int kExactSumLowestExponent = -298;
inline constexpr int kLimbBits = 32;
inline constexpr std::size_t kLimbs = 20;

// The value is the sum of limbs[i] * 2^(32 * i - 298), plus so many infinities and NaNs. A zeroed struct is 0.
// Normalized: every limb is in [0, 2^32). The sum of up to 2^31 normalized structs does not overflow.
struct ExactSum {
  std::array<std::int64_t, kLimbs> limbs{};
  std::int64_t inf_count = 0;
  std::int64_t nan_count = 0;

  friend bool operator==(const ExactSum&, const ExactSum&) = default;

  // Carries every limb into [0, 2^32). Equal sums are then equal structs.
  void normalize() noexcept;

  // Adds another sum; leaves this one normalized.
  void add(const ExactSum& other) noexcept;

  // The value rounded once to nearest, ties to even: NaN if a NaN was added, else infinity if an infinity was.
  // Needs no normalize() before. The range of f64 is wider than any sum, so nothing over- or underflows.
  double round() const noexcept;
};

inline constexpr std::size_t kExactSumWords = kLimbs + 2;
static_assert(sizeof(ExactSum) == kExactSumWords * sizeof(std::int64_t), "summed between ranks as an array of i64");

// Adds the squares of `count` elements of f32, f16 or bf16; leaves the sum normalized. Any other type is
// UNSUPPORTED and adds nothing. A call has a fixed cost near that of 100 elements.
zc_status add_squares(ExactSum& sum, zc_dtype dtype, const void* elements, std::size_t count) noexcept;

}  // namespace zerocomm::device
