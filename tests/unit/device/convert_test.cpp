// Conversions between floating-point types: every 16-bit value, and every place where rounding can go wrong.
#include "device/convert.hpp"

#include "element_buffer.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace zerocomm::device;
using reference::decode_bits;
using reference::encode_bits;
using reference::round_to;

constexpr zc_dtype kFloats[] = {ZC_DTYPE_F64, ZC_DTYPE_F32, ZC_DTYPE_F16, ZC_DTYPE_BF16};
constexpr zc_dtype kHalves[] = {ZC_DTYPE_F16, ZC_DTYPE_BF16};

std::vector<std::uint16_t> all_halves() {
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  return bits;
}

// The finite values of a 16-bit type from 0 upwards, and infinity as the power of two that follows them.
std::vector<double> ladder(zc_dtype half) {
  std::vector<double> values;
  for (std::uint64_t bits = 0; std::isfinite(decode_bits(half, bits)); ++bits)
    values.push_back(decode_bits(half, bits));
  values.push_back(std::ldexp(1.0, reference::format_of(half).max_exponent + 1));
  return values;
}

// Converts `values`, which `from` holds exactly, and compares with one rounding of each.
void expect_one_rounding(zc_dtype from, zc_dtype to, const std::vector<double>& values) {
  SCOPED_TRACE(std::string(zc_dtype_name(from)) + " to " + zc_dtype_name(to));
  ElementBuffer input(from, values.size()), output(to, values.size());
  const std::size_t bytes = zc_dtype_bytes(from);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t bits = encode_bits(from, values[i]);
    std::memcpy(static_cast<unsigned char*>(input.data()) + i * bytes, &bits, bytes);
    const double stored = reference::load_float(from, input.data(), i);
    ASSERT_TRUE(stored == values[i] || std::isnan(values[i])) << "bad test value " << values[i];
  }
  ASSERT_EQ(convert(from, to, input.data(), output.data(), values.size()), ZC_OK);
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_TRUE(same_element(to, output.data(), i, encode_bits(to, round_to(to, values[i])))) << values[i];
  EXPECT_TRUE(output.guards_intact());
}

TEST(Convert, every_sixteen_bit_value_widens_exactly) {
  const std::vector<std::uint16_t> bits = all_halves();
  for (const zc_dtype half : kHalves)
    for (const zc_dtype wide : {ZC_DTYPE_F32, ZC_DTYPE_F64}) {
      ElementBuffer output(wide, bits.size());
      ASSERT_EQ(convert(half, wide, bits.data(), output.data(), bits.size()), ZC_OK);
      for (std::size_t i = 0; i < bits.size(); ++i)
        ASSERT_TRUE(same_element(wide, output.data(), i, encode_bits(wide, decode_bits(half, i))))
            << zc_dtype_name(half) << " to " << zc_dtype_name(wide) << ": " << i;
    }
}

TEST(Convert, every_sixteen_bit_value_survives_the_round_trip) {
  const std::vector<std::uint16_t> bits = all_halves();
  for (const zc_dtype half : kHalves)
    for (const zc_dtype wide : {ZC_DTYPE_F32, ZC_DTYPE_F64}) {
      ElementBuffer middle(wide, bits.size());
      std::vector<std::uint16_t> back(bits.size());
      ASSERT_EQ(convert(half, wide, bits.data(), middle.data(), bits.size()), ZC_OK);
      ASSERT_EQ(convert(wide, half, middle.data(), back.data(), bits.size()), ZC_OK);
      for (std::size_t i = 0; i < bits.size(); ++i)
        ASSERT_TRUE(same_element(half, back.data(), i, bits[i])) << zc_dtype_name(half) << ": " << i;
    }
}

TEST(Convert, every_sixteen_bit_value_rounds_once_into_the_other_sixteen_bit_type) {
  const std::vector<std::uint16_t> bits = all_halves();
  for (const zc_dtype from : kHalves) {
    const zc_dtype to = from == ZC_DTYPE_F16 ? ZC_DTYPE_BF16 : ZC_DTYPE_F16;
    std::vector<std::uint16_t> output(bits.size());
    ASSERT_EQ(convert(from, to, bits.data(), output.data(), bits.size()), ZC_OK);
    for (std::size_t i = 0; i < bits.size(); ++i)
      ASSERT_TRUE(same_element(to, output.data(), i, encode_bits(to, round_to(to, decode_bits(from, i))))) << i;
  }
}

TEST(Convert, ties_go_to_even_and_neighbours_of_ties_to_the_nearest) {
  for (const zc_dtype half : kHalves) {
    const std::vector<double> steps = ladder(half);
    std::vector<double> in_f32, in_f64;
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
      const double tie = (steps[i] + steps[i + 1]) / 2;
      const auto tie_f32 = static_cast<float>(tie);
      for (const float value : {tie_f32, std::nextafterf(tie_f32, 0.0f), std::nextafterf(tie_f32, INFINITY)}) {
        in_f32.push_back(value);
        in_f32.push_back(-value);
      }
      // These lie nearer to the tie than f32 can tell: rounding by way of f32 would go wrong.
      for (const double value : {tie, std::nextafter(tie, 0.0), std::nextafter(tie, HUGE_VAL)}) {
        in_f64.push_back(value);
        in_f64.push_back(-value);
      }
    }
    expect_one_rounding(ZC_DTYPE_F32, half, in_f32);
    expect_one_rounding(ZC_DTYPE_F64, half, in_f64);
  }
}

TEST(Convert, f64_rounds_once_into_f32_down_to_subnormals) {
  std::mt19937_64 random(1);
  std::vector<double> values;
  for (int i = 0; i < 200'000; ++i) {
    auto bits = static_cast<std::uint32_t>(random());
    if ((bits & 0x7f800000u) == 0x7f800000u) bits &= 0x3fffffffu;
    const float step = std::bit_cast<float>(bits);
    const double next = std::nextafterf(step, INFINITY), tie = (static_cast<double>(step) + next) / 2;
    values.insert(values.end(), {tie, std::nextafter(tie, -HUGE_VAL), std::nextafter(tie, HUGE_VAL)});
  }
  expect_one_rounding(ZC_DTYPE_F64, ZC_DTYPE_F32, values);
}

TEST(Convert, special_values_and_the_ends_of_the_range_are_right_in_every_pair) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const zc_dtype from : kFloats)
    for (const zc_dtype to : kFloats) {
      std::vector<double> values{0.0, -0.0, 1.0, -1.0, HUGE_VAL, -HUGE_VAL, nan, -nan};
      for (const zc_dtype edge : kFloats) {
        const reference::FloatFormat format = reference::format_of(edge);
        const double largest = std::ldexp(2.0 - std::ldexp(1.0, 1 - format.digits), format.max_exponent);
        const double half_above = largest + (largest - std::ldexp(largest, -1)) / std::ldexp(1.0, format.digits);
        for (const double value : {largest, half_above, std::ldexp(1.0, format.min_exponent),
                                   std::ldexp(1.0, format.min_exponent - format.digits + 1),
                                   std::ldexp(1.0, format.min_exponent - format.digits),
                                   std::ldexp(1.5, format.min_exponent - format.digits)})
          for (const double scale : {1.0, -1.0, 0.75, 1.25}) {
            const double held = round_to(from, value * scale);
            values.push_back(held);
          }
      }
      expect_one_rounding(from, to, values);
    }
}

TEST(Convert, any_value_of_any_pair_at_any_count_is_rounded_once) {
  std::mt19937_64 random(2);
  for (const zc_dtype from : kFloats)
    for (const zc_dtype to : kFloats)
      for (const std::size_t count : {0u, 1u, 7u, 8u, 9u, 1023u, 1024u, 1025u, 10007u}) {
        SCOPED_TRACE(std::string(zc_dtype_name(from)) + " to " + zc_dtype_name(to) + " " + std::to_string(count));
        ElementBuffer input(from, count, true), output(to, count, true);
        input.fill(random);
        const std::vector<unsigned char> before = input.contents();
        ASSERT_EQ(convert(from, to, input.data(), output.data(), count), ZC_OK);
        for (std::size_t i = 0; i < count; ++i) {
          const double value = reference::load_float(from, input.data(), i);
          ASSERT_TRUE(same_element(to, output.data(), i, encode_bits(to, round_to(to, value)))) << value;
        }
        EXPECT_TRUE(output.guards_intact());
        EXPECT_EQ(input.contents(), before);
      }
}

TEST(Convert, every_type_converts_into_itself_byte_for_byte) {
  std::mt19937_64 random(3);
  for (int dtype = ZC_DTYPE_F64; dtype <= ZC_DTYPE_F8E4M3; ++dtype) {
    const auto same = static_cast<zc_dtype>(dtype);
    ElementBuffer input(same, 1025), output(same, 1025);
    input.fill(random);
    ASSERT_EQ(convert(same, same, input.data(), output.data(), 1025), ZC_OK);
    EXPECT_EQ(input.contents(), output.contents());
    EXPECT_TRUE(output.guards_intact());
  }
}

TEST(Convert, other_pairs_are_unsupported_and_write_nothing) {
  for (int from = ZC_DTYPE_NONE; from <= ZC_DTYPE_F8E4M3; ++from)
    for (int to = ZC_DTYPE_NONE; to <= ZC_DTYPE_F8E4M3; ++to) {
      const auto f = static_cast<zc_dtype>(from), t = static_cast<zc_dtype>(to);
      const bool exists = (f == t && f != ZC_DTYPE_NONE) || (reference::is_float(f) && reference::is_float(t));
      EXPECT_EQ(find_convert(f, t) != nullptr, exists) << from << " " << to;
      if (exists) continue;
      const double source = 1;
      double destination = 7;
      EXPECT_EQ(convert(f, t, &source, &destination, 1), ZC_UNSUPPORTED);
      EXPECT_EQ(destination, 7);
    }
}

}  // namespace
