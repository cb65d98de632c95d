// Exact sum of squares. An f32 is m * 2^(e - 150) with e in 1..254 and an integer m < 2^24, so its square is the
// integer m * m < 2^48 at bit 2 * (e - 1) of the fixed-point number. Only integer arithmetic is used.
#include "device/exact_sum.hpp"

#include "base/check.hpp"
#include "device/element.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace zerocomm::device {
namespace {

constexpr std::int64_t kLimbMask = (std::int64_t{1} << kLimbBits) - 1;
constexpr std::size_t kBitsPerLimb = kLimbBits;

// Squares of equal exponent are added in one 64-bit bucket; 2^16 squares below 2^48 fit. One square then costs one
// multiplication and one addition, and limbs are touched only when the buckets are emptied.
constexpr std::size_t kSquaresPerBucket = std::size_t{1} << 16;
constexpr std::size_t kInfNanExponent = 255;

struct Buckets {
  std::array<std::uint64_t, kInfNanExponent> sums{};
};

// Adds value * 2^bit. One call adds less than 2^33 to a limb, so normalized limbs have room for all 254 buckets.
void add_at_bit(ExactSum& sum, std::uint64_t value, std::size_t bit) noexcept {
  const std::size_t limb = bit / kBitsPerLimb, shift = bit % kBitsPerLimb;
  const std::uint64_t low = (value & 0xffffffffu) << shift, high = (value >> kBitsPerLimb) << shift;
  sum.limbs[limb] += static_cast<std::int64_t>(low & 0xffffffffu);
  sum.limbs[limb + 1] += static_cast<std::int64_t>((low >> kBitsPerLimb) + (high & 0xffffffffu));
  sum.limbs[limb + 2] += static_cast<std::int64_t>(high >> kBitsPerLimb);
}
static_assert(2 * (kInfNanExponent - 2) / kBitsPerLimb + 2 < kLimbs, "the largest square fits");

void empty_buckets(ExactSum& sum, const Buckets& buckets) noexcept {
  for (std::size_t exponent = 0; exponent < kInfNanExponent; ++exponent)
    if (buckets.sums[exponent] != 0) add_at_bit(sum, buckets.sums[exponent], exponent == 0 ? 0 : 2 * (exponent - 1));
}

template <class Element>
std::uint32_t f32_bits(typename Element::Stored stored) noexcept {
  return std::bit_cast<std::uint32_t>(Element::load(stored));
}

template <class Element>
void add_range(ExactSum& sum, const void* elements, std::size_t count) noexcept {
  const auto* element = static_cast<const typename Element::Stored*>(elements);
  for (std::size_t done = 0; done < count;) {
    const std::size_t piece = std::min(kSquaresPerBucket, count - done);
    Buckets buckets;
    for (std::size_t i = 0; i < piece; ++i) {
      const std::uint32_t bits = f32_bits<Element>(element[done + i]);
      const std::size_t exponent = (bits >> 23) & 0xffu;
      const std::uint64_t fraction = bits & 0x7fffffu;
      if (exponent == kInfNanExponent) [[unlikely]] {
        ++(fraction == 0 ? sum.inf_count : sum.nan_count);
        continue;
      }
      // Exponent 0, subnormal, has the weight of exponent 1 and no hidden bit.
      const std::uint64_t significand = fraction | static_cast<std::uint64_t>(exponent != 0) << 23;
      buckets.sums[exponent] += significand * significand;
    }
    empty_buckets(sum, buckets);
    sum.normalize();
    done += piece;
  }
}

}  // namespace

void ExactSum::normalize() noexcept {
  std::int64_t carry = 0;
  for (std::int64_t& limb : limbs) {
    // Both summands are halved by the shift before they are added, so that a limb near 2^63 cannot overflow.
    const std::int64_t low = (limb & kLimbMask) + (carry & kLimbMask);
    carry = (limb >> kLimbBits) + (carry >> kLimbBits) + (low >> kLimbBits);
    limb = low & kLimbMask;
  }
}

void ExactSum::add(const ExactSum& other) noexcept {
  ExactSum addend = other;
  addend.normalize();
  normalize();
  for (std::size_t i = 0; i < kLimbs; ++i) limbs[i] += addend.limbs[i];
  inf_count += addend.inf_count;
  nan_count += addend.nan_count;
  normalize();
}

double ExactSum::round() const noexcept {
  if (nan_count != 0) return std::numeric_limits<double>::quiet_NaN();
  if (inf_count != 0) return std::numeric_limits<double>::infinity();
  ExactSum sum = *this;
  sum.normalize();
  std::size_t top = kLimbs;
  while (top != 0 && sum.limbs[top - 1] == 0) --top;
  if (top == 0) return 0.0;
  const auto limb_at = [&](std::size_t below_top) -> std::uint64_t {
    return below_top < top ? static_cast<std::uint64_t>(sum.limbs[top - 1 - below_top]) : 0;
  };
  // The 64 bits from the highest set one on, and whether anything below them is set.
  const auto unused = static_cast<unsigned>(std::countl_zero(static_cast<std::uint32_t>(limb_at(0))));
  const std::uint64_t third = limb_at(2) << unused;
  const std::uint64_t leading = ((limb_at(0) << kLimbBits | limb_at(1)) << unused) | third >> kLimbBits;
  bool rest = (third & 0xffffffffu) != 0;
  for (std::size_t i = 3; i < top; ++i) rest = rest || limb_at(i) != 0;

  constexpr unsigned kDropped = 64 - std::numeric_limits<double>::digits;
  constexpr std::uint64_t kHalf = std::uint64_t{1} << (kDropped - 1);
  std::uint64_t kept = leading >> kDropped;
  const std::uint64_t dropped = leading & ((std::uint64_t{1} << kDropped) - 1);
  const bool above_half = dropped > kHalf || (dropped == kHalf && rest);
  if (above_half || (dropped == kHalf && (kept & 1) != 0)) ++kept;  // 2^53 itself is exact in f64
  const int exponent = kLimbBits * (static_cast<int>(top) - 2) - static_cast<int>(unused) + static_cast<int>(kDropped) +
                       kExactSumLowestExponent;
  return std::ldexp(static_cast<double>(kept), exponent);
}

zc_status add_squares(ExactSum& sum, zc_dtype dtype, const void* elements, std::size_t count) noexcept {
  if (dtype != ZC_DTYPE_F32 && dtype != ZC_DTYPE_F16 && dtype != ZC_DTYPE_BF16)
    return fail(ZC_UNSUPPORTED, "exact sum of squares of %s (%d): only f32, f16 and bf16", zc_dtype_name(dtype),
                static_cast<int>(dtype));
  sum.normalize();
  if (dtype == ZC_DTYPE_F32) add_range<F32Element>(sum, elements, count);
  if (dtype == ZC_DTYPE_F16) add_range<F16Element>(sum, elements, count);
  if (dtype == ZC_DTYPE_BF16) add_range<Bf16Element>(sum, elements, count);
  return ZC_OK;
}

}  // namespace zerocomm::device
