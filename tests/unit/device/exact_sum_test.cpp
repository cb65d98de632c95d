// The exact sum of squares against a big integer that is written bit by bit.
#include "device/exact_sum.hpp"

#include "base/half.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace {

using namespace zerocomm::device;

// A natural number of 800 bits in units of 2^-298, one byte per digit of base 2^8.
class BigNatural {
 public:
  void add(std::uint64_t value, std::size_t bit) {
    unsigned carry = 0;
    // value * 2^(bit % 8) has up to 71 bits: nine digits, then only carries.
    for (std::size_t digit = bit / 8, k = 0; k < 9 || carry != 0; ++digit, ++k) {
      carry += digits_.at(digit) + shifted_digit(value, bit % 8, k);
      digits_.at(digit) = static_cast<std::uint8_t>(carry & 0xffu);
      carry >>= 8;
    }
  }

  void add_square(float value) {
    int exponent = 0;
    auto significand = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::fabs(value), &exponent), 24));
    if (significand == 0) return;
    exponent -= 24;
    for (; significand % 2 == 0; significand /= 2) ++exponent;
    const int lowest_bit = 2 * exponent + 298;
    add(significand * significand, static_cast<std::size_t>(lowest_bit));
  }

  double round() const {
    std::size_t top = kBits;
    while (top != 0 && !bit(top - 1)) --top;
    if (top == 0) return 0;
    const std::size_t low = top > 53 ? top - 53 : 0;  // the first bit that is kept
    double kept = 0;
    for (std::size_t i = top; i-- > low;) kept = 2 * kept + bit(i);
    if (low != 0 && bit(low - 1)) {
      bool more = false;
      for (std::size_t i = 0; i + 1 < low; ++i) more = more || bit(i);
      if (more || bit(low)) kept += 1;
    }
    return std::ldexp(kept, static_cast<int>(low) - 298);
  }

 private:
  static constexpr std::size_t kBits = 800;

  static unsigned shifted_digit(std::uint64_t value, std::size_t shift, std::size_t digit) {
    unsigned result = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      const std::size_t at = 8 * digit + i;
      if (at >= shift && at - shift < 64 && (value >> (at - shift) & 1) != 0) result |= 1u << i;
    }
    return result;
  }
  bool bit(std::size_t i) const { return (digits_[i / 8] >> (i % 8) & 1) != 0; }

  std::vector<std::uint8_t> digits_ = std::vector<std::uint8_t>(kBits / 8);
};

ExactSum sum_of(const std::vector<float>& values) {
  ExactSum sum;
  EXPECT_EQ(add_squares(sum, ZC_DTYPE_F32, values.data(), values.size()), ZC_OK);
  return sum;
}

double oracle(const std::vector<float>& values) {
  BigNatural total;
  for (const float value : values) total.add_square(value);
  return total.round();
}

// Any finite f32: all exponents are equally likely, subnormals among them.
std::vector<float> any_floats(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    do value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    while (!std::isfinite(value));
  }
  return values;
}

std::vector<float> gradient_like(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0f, 1e-3f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Floats whose squares add up to exactly `target` * 4^scale.
std::vector<float> squares_adding_to(std::uint64_t target, int scale) {
  std::vector<float> values;
  while (target != 0) {
    auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(target)));
    root = std::min<std::uint64_t>(root, (1u << 24) - 1);
    while (root * root > target) --root;
    target -= root * root;
    values.push_back(std::ldexp(static_cast<float>(root), scale));
  }
  return values;
}

TEST(ExactSum, the_empty_sum_is_plus_zero) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(ExactSum().round()), 0u);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(sum_of({0.0f, -0.0f}).round()), 0u);
}

TEST(ExactSum, small_integers_are_what_one_expects) {
  EXPECT_EQ(sum_of({3.0f, -4.0f}).round(), 25.0);
  EXPECT_EQ(sum_of({0.5f, 1.5f}).round(), 2.5);
}

TEST(ExactSum, every_square_alone_is_exact_in_f64) {
  for (const float value : any_floats(20'000, 1))
    ASSERT_EQ(sum_of({value}).round(), static_cast<double>(value) * static_cast<double>(value)) << value;
  for (int exponent = -149; exponent <= 127; ++exponent)
    ASSERT_EQ(sum_of({std::ldexp(1.0f, exponent)}).round(), std::ldexp(1.0, 2 * exponent)) << exponent;
}

TEST(ExactSum, tiny_terms_are_not_lost_beside_large_ones) {
  const float large = std::numeric_limits<float>::max(), tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> values{tiny, large, tiny, 1.0f};
  const ExactSum sum = sum_of(values);
  EXPECT_EQ(sum.round(), oracle(values));
  // Two squares of 2^-149 are 2^-297: bit 1 of the lowest limb, whatever else was added.
  EXPECT_EQ(sum.limbs[0], 2);
}

TEST(ExactSum, random_values_of_all_exponents_equal_the_oracle) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const std::vector<float> values = any_floats(1 + seed % 40, seed + 10);
    ASSERT_EQ(sum_of(values).round(), oracle(values)) << seed;
  }
  // A narrow range of exponents, so that the low bits of all terms meet.
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<float> values(1 + random() % 50);
    const int base = static_cast<int>(random() % 230) - 140;
    for (float& value : values)
      value = std::ldexp(static_cast<float>(random() % (1u << 24)), base - 24 + static_cast<int>(random() % 20));
    ASSERT_EQ(sum_of(values).round(), oracle(values)) << trial;
  }
}

TEST(ExactSum, a_million_elements_equal_the_oracle) {
  constexpr std::size_t kCount = 1'000'000;
  const std::vector<float> values = gradient_like(kCount, 2);
  EXPECT_EQ(sum_of(values).round(), oracle(values));
}

TEST(ExactSum, many_large_values_of_one_exponent_do_not_overflow) {
  constexpr std::size_t kCount = 200'003;
  for (const float value : {std::numeric_limits<float>::max(), std::bit_cast<float>(0x007fffffu), 1.9999999f}) {
    const std::vector<float> values(kCount, value);
    EXPECT_EQ(sum_of(values).round(), oracle(values)) << value;
  }
}

TEST(ExactSum, order_does_not_matter) {
  std::vector<float> values = any_floats(5000, 3);
  const ExactSum expected = sum_of(values);
  std::mt19937_64 random(4);
  for (int trial = 0; trial < 20; ++trial) {
    std::shuffle(values.begin(), values.end(), random);
    ASSERT_EQ(sum_of(values), expected);
  }
}

TEST(ExactSum, the_split_into_calls_does_not_matter) {
  const std::vector<float> values = any_floats(150'000, 6);
  const ExactSum expected = sum_of(values);
  std::mt19937_64 random(7);
  for (const std::size_t largest : {10u, 1000u, 70'000u}) {
    ExactSum sum;
    for (std::size_t done = 0; done < values.size();) {
      const std::size_t count = std::min<std::size_t>(values.size() - done, random() % (largest + 1));
      ASSERT_EQ(add_squares(sum, ZC_DTYPE_F32, values.data() + done, count), ZC_OK);
      done += count;
    }
    EXPECT_EQ(sum, expected);
  }
}

TEST(ExactSum, words_added_between_any_number_of_ranks_give_the_same_bits) {
  const std::vector<float> values = any_floats(3000, 8);
  const ExactSum expected = sum_of(values);
  const double expected_value = oracle(values);
  for (const std::size_t ranks : {1u, 2u, 3u, 4u, 5u, 8u, 64u, 1000u}) {
    std::vector<ExactSum> parts(ranks);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(add_squares(parts[i * 7 % ranks], ZC_DTYPE_F32, &values[i], 1), ZC_OK);
    std::int64_t words[kExactSumWords] = {};
    for (const ExactSum& part : parts) {
      std::int64_t part_words[kExactSumWords];
      std::memcpy(part_words, &part, sizeof part);
      for (std::size_t i = 0; i < kExactSumWords; ++i) words[i] += part_words[i];
    }
    ExactSum total;
    std::memcpy(&total, words, sizeof total);
    EXPECT_EQ(total.round(), expected_value) << ranks;
    total.normalize();
    EXPECT_EQ(total, expected) << ranks;

    ExactSum merged;
    for (const ExactSum& part : parts) merged.add(part);
    EXPECT_EQ(merged, expected) << ranks;
  }
}

TEST(ExactSum, words_of_two_to_the_31_ranks_do_not_overflow) {
  const std::vector<float> values(1000, std::numeric_limits<float>::max());
  ExactSum sum = sum_of(values);
  for (std::size_t i = 0; i + 1 < kLimbs; ++i) sum.limbs[i] |= 0xffffffff;  // the worst that a normalized limb can be
  const double one = sum.round();
  for (std::int64_t& limb : sum.limbs) limb *= std::int64_t{1} << 31;
  EXPECT_EQ(sum.round(), std::ldexp(one, 31));
  sum.normalize();
  EXPECT_EQ(sum.round(), std::ldexp(one, 31));
  for (const std::int64_t limb : sum.limbs) EXPECT_TRUE(limb >= 0 && limb <= 0xffffffff);
}

TEST(ExactSum, a_sum_that_is_not_normalized_may_be_added_to) {
  const std::vector<float> values = any_floats(5000, 9);
  ExactSum sum;
  for (std::size_t i = 0; i + 1 < kLimbs; ++i) sum.limbs[i] = std::int64_t{0xffffffff} << 31;  // as from 2^31 ranks
  ExactSum expected = sum;
  expected.normalize();
  expected.add(sum_of(values));
  ExactSum merged = sum;
  merged.add(sum_of(values));
  EXPECT_EQ(merged, expected);
  ASSERT_EQ(add_squares(sum, ZC_DTYPE_F32, values.data(), values.size()), ZC_OK);
  EXPECT_EQ(sum, expected);
}

TEST(ExactSum, halves_round_to_even_and_anything_beyond_breaks_the_tie) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  // Between 2^53 and 2^54 the values of f64 are even: every odd target is a tie.
  constexpr std::uint64_t kStart = std::uint64_t{1} << 53;
  for (const std::uint64_t above : {1u, 3u, 5u, 7u, 123'455u, 123'457u}) {
    const std::uint64_t target = kStart + above;
    for (const int scale : {-60, -10, 0, 30}) {
      std::vector<float> values = squares_adding_to(target, scale);
      const std::uint64_t even = target % 4 == 1 ? target - 1 : target + 1;
      const double unit = std::ldexp(1.0, 2 * scale);
      EXPECT_EQ(sum_of(values).round(), static_cast<double>(even) * unit) << target;
      EXPECT_EQ(sum_of(values).round(), oracle(values));
      values.push_back(tiny);
      EXPECT_EQ(sum_of(values).round(), static_cast<double>(target + 1) * unit) << target;
      EXPECT_EQ(sum_of(values).round(), oracle(values));
    }
  }
  // 2^54 - 1 rounds up into the next power of two; 2^54 - 2 is exact.
  EXPECT_EQ(sum_of(squares_adding_to((kStart << 1) - 1, 0)).round(), 0x1p54);
  EXPECT_EQ(sum_of(squares_adding_to((kStart << 1) - 2, 0)).round(), 0x1p54 - 2);
}

TEST(ExactSum, a_tie_is_broken_by_any_term_however_small) {
  constexpr std::uint64_t kTie = (std::uint64_t{1} << 53) + 1;  // alone it rounds down
  for (const int scale : {-60, -3, 0, 5, 30})
    for (int exponent = -149; exponent < scale; ++exponent) {
      std::vector<float> values = squares_adding_to(kTie, scale);
      values.push_back(std::ldexp(1.0f, exponent));
      ASSERT_EQ(sum_of(values).round(), static_cast<double>(kTie + 1) * std::ldexp(1.0, 2 * scale))
          << scale << " " << exponent;
    }
}

TEST(ExactSum, every_sixteen_bit_value_counts_like_its_f32_value) {
  for (const zc_dtype dtype : {ZC_DTYPE_F16, ZC_DTYPE_BF16}) {
    std::vector<std::uint16_t> halves;
    std::vector<float> floats;
    for (std::uint32_t i = 0; i < 65536; ++i) {
      halves.push_back(static_cast<std::uint16_t>(i));
      floats.push_back(dtype == ZC_DTYPE_F16 ? zerocomm::f16_to_float(halves.back())
                                             : zerocomm::bf16_to_float(halves.back()));
    }
    ExactSum all;
    ASSERT_EQ(add_squares(all, dtype, halves.data(), halves.size()), ZC_OK);
    EXPECT_EQ(all, sum_of(floats));
    EXPECT_EQ(all.inf_count, 2);
    EXPECT_EQ(all.nan_count, dtype == ZC_DTYPE_F16 ? 2 * 1023 : 2 * 127);
    all.inf_count = all.nan_count = 0;
    std::erase_if(floats, [](float value) { return !std::isfinite(value); });
    EXPECT_EQ(all.round(), oracle(floats));
  }
}

TEST(ExactSum, infinity_and_nan_show_and_nan_wins) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(sum_of({1.0f, -inf}).round(), HUGE_VAL);
  EXPECT_TRUE(std::isnan(sum_of({nan, 1.0f}).round()));
  EXPECT_TRUE(std::isnan(sum_of({inf, -nan, inf}).round()));
  ExactSum sum = sum_of({2.0f});
  sum.add(sum_of({inf, inf}));
  EXPECT_EQ(sum.inf_count, 2);
  EXPECT_EQ(sum.round(), HUGE_VAL);
}

TEST(ExactSum, other_types_are_unsupported_and_add_nothing) {
  const double value = 3;
  for (const zc_dtype dtype : {ZC_DTYPE_NONE, ZC_DTYPE_F64, ZC_DTYPE_I32, ZC_DTYPE_U8, ZC_DTYPE_F8E4M3}) {
    ExactSum sum;
    EXPECT_EQ(add_squares(sum, dtype, &value, 1), ZC_UNSUPPORTED);
    EXPECT_EQ(sum, ExactSum());
  }
}

TEST(ExactSum, no_elements_need_no_memory) {
  ExactSum sum;
  EXPECT_EQ(add_squares(sum, ZC_DTYPE_F32, nullptr, 0), ZC_OK);
  EXPECT_EQ(sum, ExactSum());
}

}  // namespace
