// Element types as the kernels see them: how a run of elements in memory becomes vectors of the type it is computed in,
// and back.
//
// A format has Stored, what lies in memory; Value, the accumulation type; Raw, one load or store; and kParts, the
// number of value vectors that a Raw fills. unpack is exact; pack rounds once, to nearest even. Which lane holds which
// element is a format's own matter, so the two sides of a kernel must agree.
#pragma once

#include "device/vector.hpp"

namespace zerocomm::device::ZC_LEVEL {

template <class T, std::size_t kBytes, std::size_t kVectors, class ValueType>
struct Layout {
  using Stored = T;
  using Value = ValueType;
  using Raw = Vec<T, kBytes>;
  static constexpr std::size_t kRawBytes = kBytes;
  static constexpr std::size_t kElements = kBytes / sizeof(T);
  static constexpr std::size_t kParts = kVectors;
};

// Computed in the type it is stored in.
template <class T>
struct Plain : Layout<T, kVectorBytes, 1, T> {
  [[gnu::always_inline]] static void unpack(Vec<T> raw, Vec<T>* values) noexcept { values[0] = raw; }
  [[gnu::always_inline]] static Vec<T> pack(const Vec<T>* values) noexcept { return values[0]; }
};

using Floats = Vec<float>;
using Words = Vec<std::uint32_t>;
using Halves = Vec<std::uint16_t, kVectorBytes / 2>;

// Rounds to the upper 16 bits of each lane; the lower ones are rubbish. A NaN gets its quiet bit: the payload may lie
// only in the bits that fall away, which would leave an infinity.
[[gnu::always_inline]] inline Words round_to_bf16(Floats values) noexcept {
  const Words bits = as<std::uint32_t>(values);
  const Words rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return is_nan(values) ? (bits | 0x00400000u) : rounded;
}

// bf16 beside another type: lane i is element i.
struct Bf16 : Layout<std::uint16_t, kVectorBytes / 2, 1, float> {
  [[gnu::always_inline]] static void unpack(Halves raw, Floats* values) noexcept {
    values[0] = as<float>(__builtin_convertvector(raw, Words) << 16);
  }
  [[gnu::always_inline]] static Halves pack(const Floats* values) noexcept {
    return __builtin_convertvector(round_to_bf16(values[0]) >> 16, Halves);
  }
};

// bf16 into bf16: even elements in one vector and odd ones in the other, which takes no shuffle.
struct Bf16Pairs : Layout<std::uint16_t, kVectorBytes, 2, float> {
  [[gnu::always_inline]] static void unpack(Raw raw, Floats* values) noexcept {
    const Words pairs = as<std::uint32_t>(raw);
    values[0] = as<float>(pairs << 16);
    values[1] = as<float>(pairs & 0xffff0000u);
  }
  [[gnu::always_inline]] static Raw pack(const Floats* values) noexcept {
    const Words even = round_to_bf16(values[0]), odd = round_to_bf16(values[1]);
    return as<std::uint16_t>((even >> 16) | (odd & 0xffff0000u));
  }
};

#if defined(__F16C__)
// The conversion instructions keep subnormals whatever the floating-point environment says.
struct F16 : Layout<std::uint16_t, kVectorBytes / 2, 1, float> {
#if defined(__AVX512F__)
  // The forms without a mask give false warnings of g++ 12.
  static constexpr __mmask16 kAllLanes = 0xffff;
  static constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  [[gnu::always_inline]] static void unpack(Halves raw, Floats* values) noexcept {
    values[0] = _mm512_maskz_cvtph_ps(kAllLanes, __builtin_bit_cast(__m256i, raw));
  }
  [[gnu::always_inline]] static Halves pack(const Floats* values) noexcept {
    return __builtin_bit_cast(Halves, _mm512_maskz_cvtps_ph(kAllLanes, values[0], kNearest));
  }
#else
  [[gnu::always_inline]] static void unpack(Halves raw, Floats* values) noexcept {
    values[0] = _mm256_cvtph_ps(__builtin_bit_cast(__m128i, raw));
  }
  [[gnu::always_inline]] static Halves pack(const Floats* values) noexcept {
    return __builtin_bit_cast(Halves, _mm256_cvtps_ph(values[0], _MM_FROUND_TO_NEAREST_INT));
  }
#endif
};
#else
struct F16 : Layout<std::uint16_t, kVectorBytes / 2, 1, float> {
  // Exponent and fraction are moved into place, and one exact multiplication by 2^(127 - 15) corrects the bias, of
  // subnormals too. Infinity and NaN keep all their exponent bits.
  [[gnu::always_inline]] static void unpack(Halves raw, Floats* values) noexcept {
    const Words bits = __builtin_convertvector(raw, Words);
    const Words magnitude = bits & 0x7fffu;
    const Words scaled = as<std::uint32_t>(as<float>(magnitude << 13) * 0x1p112f);
    const Words special = as<std::uint32_t>(as<std::int32_t>(magnitude) > 0x7bff) & 0x7f800000u;
    values[0] = as<float>(scaled | special | ((bits & 0x8000u) << 16));
  }
  // Lanes compare as signed numbers, which magnitudes are too.
  [[gnu::always_inline]] static Halves pack(const Floats* values) noexcept {
    using Signed = Vec<std::int32_t>;
    const Words bits = as<std::uint32_t>(values[0]);
    const Words magnitude = bits & 0x7fffffffu;
    const Signed order = as<std::int32_t>(magnitude);
    // 13 bits fall away, to nearest even, and the bias changes; a carry out of the largest number gives infinity.
    const Words normal = (magnitude + 0x0fffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
    // Below 2^-14. The last bit of 0.5 counts 2^-24, as a subnormal does, so the addition does the rounding.
    const Words small = as<std::uint32_t>(as<float>(magnitude) + 0.5f) - 0x3f000000u;
    const Words infinity = (magnitude & 0u) + 0x7c00u;
    const Words nan = ((magnitude >> 13) & 0x3ffu) | 0x7e00u;
    Words half = order < 0x38800000 ? small : normal;
    half = order > 0x477fffff ? infinity : half;
    half = order > 0x7f800000 ? nan : half;
    return __builtin_convertvector(half | ((bits >> 16) & 0x8000u), Halves);
  }
};
#endif

}  // namespace zerocomm::device::ZC_LEVEL
