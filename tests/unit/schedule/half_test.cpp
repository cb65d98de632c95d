// 16-bit conversions, checked at every border between two neighbouring values.
#include "base/half.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace zerocomm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Format {
  float (*load)(std::uint16_t);
  std::uint16_t (*store)(float);
  std::uint16_t infinity;
};
constexpr Format kFormats[] = {{f16_to_float, f16_from_float, 0x7c00}, {bf16_to_float, bf16_from_float, 0x7f80}};

TEST(Half, every_value_survives_the_way_through_f32) {
  for (const Format& format : kFormats)
    for (std::uint32_t i = 0; i <= 0xffff; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const float value = format.load(bits);
      if (std::isnan(value)) {
        EXPECT_TRUE((bits & 0x7fff) > format.infinity);
        EXPECT_TRUE(std::isnan(format.load(format.store(value)))) << i;
        EXPECT_EQ(std::signbit(value), (bits >> 15) != 0) << i;
      } else {
        EXPECT_EQ(format.store(value), bits) << i;
      }
    }
}

// Rounding is monotone, so it is right everywhere if it is right around each middle of two neighbours.
TEST(Half, rounds_to_nearest_and_ties_to_even) {
  for (const Format& format : kFormats)
    for (std::uint16_t low = 0; low + 1 < format.infinity; ++low)
      for (const float sign : {1.0f, -1.0f}) {
        const auto minus = static_cast<std::uint16_t>(sign < 0 ? 0x8000 : 0);
        const auto high = static_cast<std::uint16_t>(low + 1);
        const double exact = (double{format.load(low)} + double{format.load(high)}) / 2;
        const float middle = sign * static_cast<float>(exact);
        ASSERT_EQ(std::fabs(double{middle}), exact);
        EXPECT_EQ(format.store(middle), (low % 2 == 0 ? low : high) | minus) << low;
        EXPECT_EQ(format.store(std::nextafter(middle, 0.0f)), low | minus) << low;
        EXPECT_EQ(format.store(std::nextafter(middle, sign * kInf)), high | minus) << low;
      }
}

TEST(Half, what_is_too_large_becomes_infinity) {
  EXPECT_EQ(f16_from_float(65519.996f), 0x7bff);
  EXPECT_EQ(f16_from_float(65520.0f), 0x7c00);
  EXPECT_EQ(f16_from_float(-1e30f), 0xfc00);
  EXPECT_EQ(bf16_from_float(std::bit_cast<float>(0x7f7f7fffu)), 0x7f7f);
  EXPECT_EQ(bf16_from_float(std::bit_cast<float>(0x7f7f8000u)), 0x7f80);
  EXPECT_EQ(f16_from_float(kInf), 0x7c00);
  EXPECT_EQ(bf16_from_float(-kInf), 0xff80);
}

TEST(Half, a_nan_whose_payload_falls_away_stays_a_nan) {
  const float thin = std::bit_cast<float>(0xff800001u);
  EXPECT_TRUE(std::isnan(bf16_to_float(bf16_from_float(thin))));
  EXPECT_TRUE(std::isnan(f16_to_float(f16_from_float(thin))));
  EXPECT_TRUE(std::signbit(f16_to_float(f16_from_float(thin))));
}

TEST(Half, works_at_compile_time) {
  static_assert(to_bf16(263.0f).bits == 0x4384 && to_float(BF16{0x4384}) == 264.0f);
  static_assert(to_f16(0x1p-24f).bits == 1 && to_float(F16{1}) == 0x1p-24f);
}

}  // namespace
}  // namespace zerocomm
