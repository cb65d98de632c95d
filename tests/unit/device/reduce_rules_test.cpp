// The rules of reduction one by one, each on values worked out by hand; and the table of what exists.
#include "device/reduce.hpp"

#include "base/half.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace zerocomm::device;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Reduces one element from each contribution.
template <class In, class Out>
Out reduce_one(zc_dtype in, zc_dtype out, zc_op op, const std::vector<In>& contributions, Out old_output = Out(),
               const ReduceArgs& args = {}) {
  std::vector<const void*> inputs;
  inputs.reserve(contributions.size());
  for (const In& contribution : contributions) inputs.push_back(&contribution);
  Out result = old_output;
  find_reduce(in, out, op)(inputs.data(), inputs.size(), &result, 1, args);
  return result;
}

float reduce_f32(zc_op op, const std::vector<float>& contributions, float old_output = 0, const ReduceArgs& args = {}) {
  return reduce_one<float, float>(ZC_DTYPE_F32, ZC_DTYPE_F32, op, contributions, old_output, args);
}

float reduce_f16(zc_op op, const std::vector<float>& contributions, float old_output = 0, const ReduceArgs& args = {}) {
  std::vector<std::uint16_t> halves;
  halves.reserve(contributions.size());
  for (const float value : contributions) halves.push_back(zerocomm::f16_from_float(value));
  return zerocomm::f16_to_float(reduce_one<std::uint16_t, std::uint16_t>(ZC_DTYPE_F16, ZC_DTYPE_F16, op, halves,
                                                                         zerocomm::f16_from_float(old_output), args));
}

TEST(ReduceRules, a_sum_starts_at_the_first_contribution_so_minus_zero_is_kept) {
  EXPECT_TRUE(std::signbit(reduce_f32(ZC_OP_SUM, {-0.0f})));
  EXPECT_TRUE(std::signbit(reduce_f32(ZC_OP_SUM, {-0.0f, -0.0f, -0.0f})));
  EXPECT_TRUE(std::signbit(reduce_f16(ZC_OP_AVG, {-0.0f, -0.0f})));
  EXPECT_FALSE(std::signbit(reduce_f32(ZC_OP_SUM, {-0.0f, 0.0f})));
}

TEST(ReduceRules, a_null_input_is_plus_zero_and_so_clears_minus_zero) {
  const float minus_zero = -0.0f;
  for (const auto& inputs : {std::array<const void*, 2>{&minus_zero, nullptr}, {nullptr, &minus_zero}}) {
    float result = 1;
    find_reduce(ZC_DTYPE_F32, ZC_DTYPE_F32, ZC_OP_SUM)(inputs.data(), inputs.size(), &result, 1, {});
    EXPECT_EQ(std::bit_cast<std::uint32_t>(result), 0u);
  }
}

TEST(ReduceRules, a_sum_adds_in_rank_order) {
  EXPECT_EQ(reduce_f32(ZC_OP_SUM, {1.0f, 0x1p-24f, 0x1p-24f}), 1.0f);
  EXPECT_EQ(reduce_f32(ZC_OP_SUM, {0x1p-24f, 0x1p-24f, 1.0f}), 1.0f + 0x1p-23f);
  EXPECT_EQ(reduce_f32(ZC_OP_SUM, {1e30f, -1e30f, 1.0f}), 1.0f);
  EXPECT_EQ(reduce_f32(ZC_OP_SUM, {1.0f, 1e30f, -1e30f}), 0.0f);
}

TEST(ReduceRules, sixteen_bit_sums_round_once) {
  EXPECT_EQ(reduce_f16(ZC_OP_SUM, {2048.0f, 1.0f, 1.0f}), 2050.0f);
  EXPECT_EQ(reduce_f16(ZC_OP_SUM, {60000.0f, 60000.0f, -60000.0f}), 60000.0f);
  EXPECT_EQ(reduce_f16(ZC_OP_SUM, {60000.0f, 60000.0f}), kInfinity);
  EXPECT_EQ(reduce_f16(ZC_OP_AVG, {60000.0f, 60000.0f}), 60000.0f);
}

TEST(ReduceRules, a_sixteen_bit_sum_into_f32_keeps_what_sixteen_bits_would_lose) {
  const auto bf16 = [](float value) { return zerocomm::bf16_from_float(value); };
  const std::vector<std::uint16_t> contributions{bf16(256.0f), bf16(1.0f), bf16(1.0f)};
  EXPECT_EQ((reduce_one<std::uint16_t, float>(ZC_DTYPE_BF16, ZC_DTYPE_F32, ZC_OP_SUM, contributions)), 258.0f);
}

TEST(ReduceRules, an_average_is_a_true_division_by_the_number_of_inputs) {
  EXPECT_NE(5.0f * (1.0f / 3.0f), 5.0f / 3.0f);
  EXPECT_EQ(reduce_f32(ZC_OP_AVG, {5.0f, 0.0f, 0.0f}), 5.0f / 3.0f);
  EXPECT_EQ(reduce_f32(ZC_OP_AVG, {7.0f}), 7.0f);
}

TEST(ReduceRules, an_average_with_a_divisor_uses_the_divisor) {
  EXPECT_EQ(reduce_f32(ZC_OP_AVG, {8.0f, 4.0f}, 0, {4.0, 1, false}), 3.0f);
  EXPECT_EQ(reduce_f32(ZC_OP_SUM, {8.0f, 4.0f}, 0, {4.0, 1, false}), 3.0f);
}

TEST(ReduceRules, premul_scales_every_contribution_before_the_sum) {
  EXPECT_EQ(reduce_f32(ZC_OP_PREMUL_SUM, {1.0f, 2.0f, 4.0f}, 0, {0, 0.5, false}), 3.5f);
  // (3e38 + 3e38) / 2 overflows, scaled contributions do not.
  EXPECT_EQ(reduce_f32(ZC_OP_PREMUL_SUM, {3e38f, 3e38f}, 0, {0, 0.5, false}), 3e38f);
}

TEST(ReduceRules, a_product_of_a_sum_is_not_fused) {
  // x * x = 1 + 2^-11 + 2^-24 rounds to 1 + 2^-11 for both ranks; a fused multiply-add would leave 2^-24.
  const float x = 1.0f + 0x1p-12f;
  EXPECT_EQ(reduce_f32(ZC_OP_PREMUL_SUM, {-x, x}, 0, {0, x, false}), 0.0f);
}

TEST(ReduceRules, min_and_max_propagate_nan_from_any_rank) {
  for (const zc_op op : {ZC_OP_MIN, ZC_OP_MAX})
    for (std::size_t at = 0; at < 3; ++at)
      for (const float nan : {kNan, -kNan}) {
        std::vector<float> contributions{1.0f, -kInfinity, kInfinity};
        contributions[at] = nan;
        EXPECT_TRUE(std::isnan(reduce_f32(op, contributions)));
        EXPECT_TRUE(std::isnan(reduce_f16(op, contributions)));
      }
}

TEST(ReduceRules, a_nan_made_by_min_or_max_is_not_mistaken_for_poison) {
  for (const zc_op op : {ZC_OP_MIN, ZC_OP_MAX}) {
    const float result = reduce_f32(op, {1.0f, kNan});
    EXPECT_NE(std::bit_cast<std::uint32_t>(result), 0xFFFFFFFFU);  // what engines fill released memory with
  }
}

TEST(ReduceRules, min_and_max_order_minus_zero_before_plus_zero) {
  EXPECT_TRUE(std::signbit(reduce_f32(ZC_OP_MIN, {0.0f, -0.0f})));
  EXPECT_TRUE(std::signbit(reduce_f32(ZC_OP_MIN, {-0.0f, 0.0f})));
  EXPECT_FALSE(std::signbit(reduce_f32(ZC_OP_MAX, {0.0f, -0.0f})));
  EXPECT_FALSE(std::signbit(reduce_f32(ZC_OP_MAX, {-0.0f, 0.0f})));
}

TEST(ReduceRules, subnormals_are_not_flushed) {
  EXPECT_EQ(reduce_f32(ZC_OP_SUM, {0x1p-149f, 0x1p-149f}), 0x1p-148f);
  EXPECT_EQ(reduce_f16(ZC_OP_SUM, {0x1p-24f, 0x1p-24f}), 0x1p-23f);
  EXPECT_EQ(reduce_f16(ZC_OP_MIN, {0x1p-24f, 1.0f}), 0x1p-24f);
}

TEST(ReduceRules, integers_wrap) {
  const auto sum_i32 = reduce_one<std::int32_t, std::int32_t>(ZC_DTYPE_I32, ZC_DTYPE_I32, ZC_OP_SUM, {INT32_MAX, 1});
  EXPECT_EQ(sum_i32, INT32_MIN);
  const auto sum_i64 = reduce_one<std::int64_t, std::int64_t>(ZC_DTYPE_I64, ZC_DTYPE_I64, ZC_OP_SUM, {INT64_MIN, -1});
  EXPECT_EQ(sum_i64, INT64_MAX);
  const auto product_u8 = reduce_one<std::uint8_t, std::uint8_t>(ZC_DTYPE_U8, ZC_DTYPE_U8, ZC_OP_PROD, {200, 2});
  EXPECT_EQ(product_u8, 144);
  const auto product_i8 = reduce_one<std::int8_t, std::int8_t>(ZC_DTYPE_I8, ZC_DTYPE_I8, ZC_OP_PROD, {-128, -1});
  EXPECT_EQ(product_i8, -128);
  const auto product_i64 =
      reduce_one<std::int64_t, std::int64_t>(ZC_DTYPE_I64, ZC_DTYPE_I64, ZC_OP_PROD, {INT64_MIN, INT64_MIN, 3});
  EXPECT_EQ(product_i64, 0);
}

TEST(ReduceRules, accumulate_and_conversion_round_together_once) {
  // 2048 + (0.5 + 0.5 + 1) = 2050; rounding the addend or each step in f16 would not change that, 1 + 1/2 + 1/2 would.
  EXPECT_EQ(reduce_f16(ZC_OP_SUM, {1.0f, 0.5f, 0.5f}, 2048.0f, {0, 1, true}), 2050.0f);
  // 1 + 2^-11 is a tie in f16 that goes down; the 2^-20 in the sum breaks it upwards, and must not be lost before.
  EXPECT_EQ(reduce_f16(ZC_OP_SUM, {0x1p-11f, 0x1p-20f}, 1.0f, {0, 1, true}), 1.0f + 0x1p-10f);
}

TEST(ReduceRules, no_input_at_all_gives_zero) {
  float result = 5;
  find_reduce(ZC_DTYPE_F32, ZC_DTYPE_F32, ZC_OP_SUM)(nullptr, 0, &result, 1, {});
  EXPECT_EQ(std::bit_cast<std::uint32_t>(result), 0u);
}

// The table, spelled out: which operations exist for each pair of types.
bool should_exist(zc_dtype in, zc_dtype out, zc_op op) {
  const auto is_small = [](zc_dtype d) { return d == ZC_DTYPE_F32 || d == ZC_DTYPE_F16 || d == ZC_DTYPE_BF16; };
  const auto is_integer = [](zc_dtype d) {
    return d == ZC_DTYPE_I64 || d == ZC_DTYPE_I32 || d == ZC_DTYPE_U8 || d == ZC_DTYPE_I8;
  };
  if (is_small(in)) return is_small(out);
  if (in != out || in == ZC_DTYPE_F8E4M3) return false;
  return !is_integer(in) || (op != ZC_OP_AVG && op != ZC_OP_PREMUL_SUM);
}

TEST(ReduceTable, a_kernel_exists_exactly_where_the_check_passes) {
  for (int in = ZC_DTYPE_F64; in <= ZC_DTYPE_F8E4M3; ++in)
    for (int out = ZC_DTYPE_F64; out <= ZC_DTYPE_F8E4M3; ++out)
      for (int op = ZC_OP_SUM; op <= ZC_OP_PREMUL_SUM; ++op) {
        const auto i = static_cast<zc_dtype>(in), o = static_cast<zc_dtype>(out);
        const auto f = static_cast<zc_op>(op);
        SCOPED_TRACE(std::string(zc_op_name(f)) + " " + zc_dtype_name(i) + " " + zc_dtype_name(o));
        const bool expected = should_exist(i, o, f);
        EXPECT_EQ(check_reduce(i, o, f), expected ? ZC_OK : ZC_UNSUPPORTED);
        EXPECT_EQ(find_reduce(i, o, f) != nullptr, expected);
        EXPECT_EQ(find_reduce_to_many(i, o, f) != nullptr, expected);
        EXPECT_EQ(reduce_obstacle(i, o, f) == nullptr, expected);
      }
}

TEST(ReduceTable, no_output_type_means_the_input_type) {
  for (int in = ZC_DTYPE_F64; in <= ZC_DTYPE_F8E4M3; ++in)
    for (int op = ZC_OP_SUM; op <= ZC_OP_PREMUL_SUM; ++op) {
      const auto i = static_cast<zc_dtype>(in);
      const auto f = static_cast<zc_op>(op);
      EXPECT_EQ(find_reduce(i, ZC_DTYPE_NONE, f), find_reduce(i, i, f));
      EXPECT_EQ(check_reduce(i, ZC_DTYPE_NONE, f), check_reduce(i, i, f));
    }
}

TEST(ReduceTable, values_outside_the_enumerations_are_wrong_arguments) {
  const auto no_dtype = static_cast<zc_dtype>(15);
  const auto no_op = static_cast<zc_op>(7);
  EXPECT_EQ(check_reduce(no_dtype, ZC_DTYPE_F32, ZC_OP_SUM), ZC_ARGUMENT);
  EXPECT_EQ(check_reduce(ZC_DTYPE_NONE, ZC_DTYPE_NONE, ZC_OP_SUM), ZC_ARGUMENT);
  EXPECT_EQ(check_reduce(ZC_DTYPE_F32, no_dtype, ZC_OP_SUM), ZC_ARGUMENT);
  EXPECT_EQ(check_reduce(ZC_DTYPE_F32, ZC_DTYPE_F32, ZC_OP_NONE), ZC_ARGUMENT);
  EXPECT_EQ(check_reduce(ZC_DTYPE_F32, ZC_DTYPE_F32, no_op), ZC_ARGUMENT);
  EXPECT_EQ(find_reduce(no_dtype, no_dtype, ZC_OP_SUM), nullptr);
  EXPECT_EQ(find_reduce(ZC_DTYPE_F32, ZC_DTYPE_F32, no_op), nullptr);
}

TEST(ReduceTable, the_reason_names_types_and_operation) {
  EXPECT_EQ(check_reduce(ZC_DTYPE_I32, ZC_DTYPE_I32, ZC_OP_AVG), ZC_UNSUPPORTED);
  EXPECT_NE(std::string(zc_last_error()).find("avg of i32"), std::string::npos) << zc_last_error();
  EXPECT_EQ(check_reduce(ZC_DTYPE_F8E4M3, ZC_DTYPE_F8E4M3, ZC_OP_SUM), ZC_UNSUPPORTED);
  EXPECT_NE(std::string(zc_last_error()).find("never computed with"), std::string::npos) << zc_last_error();
}

TEST(ReduceTable, numbers_that_do_not_fit_the_request_are_wrong_arguments) {
  const ReduceSpec good{ZC_DTYPE_F32, ZC_DTYPE_F32, ZC_OP_SUM, 2, 4.0, 1.0, true};
  EXPECT_EQ(check_reduce(good), ZC_OK);
  const auto changed = [&](auto change) {
    ReduceSpec spec = good;
    change(spec);
    return check_reduce(spec);
  };
  EXPECT_EQ(changed([](ReduceSpec& s) { s.inputs = 0; }), ZC_ARGUMENT);
  EXPECT_EQ(changed([](ReduceSpec& s) { s.divisor = kInfinity; }), ZC_ARGUMENT);
  EXPECT_EQ(changed([](ReduceSpec& s) { s.premul = kNan; }), ZC_ARGUMENT);
  EXPECT_EQ(changed([](ReduceSpec& s) { s.premul = 2; }), ZC_ARGUMENT);
  EXPECT_EQ(changed([](ReduceSpec& s) { s.premul = 2, s.op = ZC_OP_PREMUL_SUM; }), ZC_OK);
  EXPECT_EQ(changed([](ReduceSpec& s) { s.in = s.out = ZC_DTYPE_I32; }), ZC_ARGUMENT);
  EXPECT_EQ(changed([](ReduceSpec& s) { s.in = s.out = ZC_DTYPE_I32, s.divisor = 0; }), ZC_OK);
  EXPECT_EQ(changed([](ReduceSpec& s) { s.in = ZC_DTYPE_F8E4M3; }), ZC_UNSUPPORTED);
  const ReduceArgs args = good.args();
  EXPECT_EQ(args.divisor, 4.0);
  EXPECT_TRUE(args.accumulate);
}

// A step that accumulates passes and divides once equals one reduction over all of them.
TEST(ReduceRules, a_divisor_applies_to_the_accumulated_sum) {
  const float first = 1.0F, second = 1.5F;
  float out = first;
  const void* inputs[] = {&second};
  find_reduce(ZC_DTYPE_F32, ZC_DTYPE_F32, ZC_OP_SUM)(inputs, 1, &out, 1, {.divisor = 2, .accumulate = true});
  EXPECT_EQ(out, 1.25F);
}

}  // namespace
