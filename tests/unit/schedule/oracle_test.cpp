// The rules of arithmetic, each on the smallest input that would show a mistake.
#include "schedule/oracle.hpp"

#include "base/check.hpp"
#include "base/half.hpp"
#include "schedule/catalogue.hpp"
#include "schedule/schedule_text.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace zerocomm::schedule {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// One element per rank in, the all-reduced element out; every rank must have the same.
template <class In, class Out = In>
Out reduced(const std::vector<In>& per_rank, Elements elements) {
  const auto ranks = static_cast<std::uint32_t>(per_rank.size());
  std::vector<Bytes> inputs;
  for (const In value : per_rank) inputs.push_back(bytes_of(std::vector<In>{value}));
  const std::vector<Bytes> outputs =
      run_oracle(build(make_key(Collective::all_reduce, "direct", ranks)), Partition::even(1, ranks), elements, inputs);
  for (const Bytes& output : outputs) EXPECT_EQ(output, outputs[0]);
  return values_of<Out>(outputs[0])[0];
}

float f32(const std::vector<float>& x, zc_op op, double premul = 1) {
  return reduced<float>(x, {ZC_DTYPE_F32, ZC_DTYPE_NONE, op, premul});
}
std::uint16_t bf16(const std::vector<float>& x, zc_op op, double premul = 1) {
  std::vector<BF16> stored;
  for (const float value : x) stored.push_back(to_bf16(value));
  return reduced<BF16>(stored, {ZC_DTYPE_BF16, ZC_DTYPE_NONE, op, premul}).bits;
}
float f16(const std::vector<float>& x, zc_op op, double premul = 1) {
  std::vector<F16> stored;
  for (const float value : x) stored.push_back(to_f16(value));
  return to_float(reduced<F16>(stored, {ZC_DTYPE_F16, ZC_DTYPE_NONE, op, premul}));
}
std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST(Oracle, bf16_sums_are_rounded_once) {
  // 256 + 7 is 263, half way between 262 and 264. Rounded at every step it would stay 256.
  EXPECT_EQ(bf16({256, 1, 1, 1, 1, 1, 1, 1}, ZC_OP_SUM), bf16_from_float(264));
}

TEST(Oracle, a_sum_goes_in_the_order_of_ranks_from_the_first) {
  EXPECT_EQ(f32({1e8f, -1e8f, 1}, ZC_OP_SUM), 1.0f);
  EXPECT_EQ(f32({1, 1e8f, -1e8f}, ZC_OP_SUM), 0.0f);
  EXPECT_EQ(bits(f32({-0.0f, -0.0f, -0.0f}, ZC_OP_SUM)), bits(-0.0f));
  EXPECT_EQ(bits(f32({-0.0f}, ZC_OP_SUM)), bits(-0.0f));
  EXPECT_EQ(bits(f32({-0.0f, 0.0f}, ZC_OP_SUM)), bits(0.0f));
}

TEST(Oracle, f16_overflows_only_if_the_result_does) {
  EXPECT_EQ(f16({60000, 60000, -60000}, ZC_OP_SUM), f16_to_float(f16_from_float(60000)));
  EXPECT_EQ(f16({60000, 60000}, ZC_OP_SUM), kInf);
  EXPECT_EQ(f16({60000, 60000}, ZC_OP_AVG), f16_to_float(f16_from_float(60000)));
  EXPECT_EQ(f16({0x1p-24f, 0x1p-24f, 0x1p-24f}, ZC_OP_AVG), 0x1p-24f);  // does not underflow on the way either
}

TEST(Oracle, an_average_is_one_true_division) {
  EXPECT_EQ(f32({1, 2, 2}, ZC_OP_AVG), 5.0f / 3.0f);
  EXPECT_NE(7.0f / 3.0f * 1.0f, 7.0f * (1.0f / 3.0f));  // so the next line can tell them apart
  EXPECT_EQ(f32({7, 0, 0}, ZC_OP_AVG), 7.0f / 3.0f);
  EXPECT_EQ(bf16({1, 2, 2}, ZC_OP_AVG), bf16_from_float(5.0f / 3.0f));
  EXPECT_EQ(f32({7}, ZC_OP_AVG), 7.0f);
}

TEST(Oracle, subnormals_are_kept) {
  EXPECT_EQ(f32({0x1p-149f, 0x1p-149f}, ZC_OP_SUM), 0x1p-148f);
  EXPECT_EQ(f16({0x1p-24f, 0x1p-24f}, ZC_OP_SUM), 0x1p-23f);
  EXPECT_EQ(bf16({0x1p-133f, 0x1p-133f}, ZC_OP_SUM), 2);
}

TEST(Oracle, min_and_max_let_nan_win_and_put_minus_zero_first) {
  for (const zc_op op : {ZC_OP_MIN, ZC_OP_MAX}) {
    EXPECT_TRUE(std::isnan(f32({1, kNan, 2}, op)));
    EXPECT_TRUE(std::isnan(f32({kNan, 1, 2}, op)));
    EXPECT_TRUE(std::isnan(f32({1, 2, kNan}, op)));
    EXPECT_TRUE(std::isnan(f16({1, kNan, -kInf}, op)));
  }
  for (const std::vector<float>& zeros : {std::vector<float>{0.0f, -0.0f}, std::vector<float>{-0.0f, 0.0f}}) {
    EXPECT_EQ(bits(f32(zeros, ZC_OP_MIN)), bits(-0.0f));
    EXPECT_EQ(bits(f32(zeros, ZC_OP_MAX)), bits(0.0f));
  }
  EXPECT_EQ(f32({3, -kInf, 2}, ZC_OP_MIN), -kInf);
  EXPECT_EQ(f32({3, -kInf, 4}, ZC_OP_MAX), 4.0f);
}

TEST(Oracle, infinities_and_nan_go_through_sums) {
  EXPECT_EQ(f32({kInf, 1}, ZC_OP_SUM), kInf);
  EXPECT_TRUE(std::isnan(f32({kInf, -kInf}, ZC_OP_SUM)));
  EXPECT_TRUE(std::isnan(f16_to_float(f16_from_float(f16({1, kNan}, ZC_OP_SUM)))));
  EXPECT_EQ(bf16({-kInf, 1}, ZC_OP_AVG), bf16_from_float(-kInf));
}

TEST(Oracle, every_contribution_is_scaled_before_the_sum) {
  EXPECT_EQ(f32({3, 5, 7}, ZC_OP_PREMUL_SUM, 0.1), 3 * 0.1f + 5 * 0.1f + 7 * 0.1f);
  EXPECT_EQ(f32({3}, ZC_OP_PREMUL_SUM, 0.5), 1.5f);                                      // also that of a single rank
  EXPECT_EQ(f16({60000, 60000}, ZC_OP_PREMUL_SUM, 0.25), 30000.0f);                      // before it overflows
  EXPECT_EQ(bf16({3, 5}, ZC_OP_PREMUL_SUM, 0.1), bf16_from_float(3 * 0.1f + 5 * 0.1f));  // the scalar is f32, not bf16
}

TEST(Oracle, products_accumulate_like_sums) {
  EXPECT_EQ(f32({2, 3, -4}, ZC_OP_PROD), -24.0f);
  EXPECT_EQ(f16({300, 300, 1.0f / 1024}, ZC_OP_PROD), f16_to_float(f16_from_float(90000.0f / 1024)));
}

TEST(Oracle, integers_wrap) {
  const auto sum = [](auto x, zc_dtype dtype, zc_op op, double premul = 1) {
    return reduced<typename decltype(x)::value_type>(x, {dtype, ZC_DTYPE_NONE, op, premul});
  };
  EXPECT_EQ(sum(std::vector<std::uint8_t>{200, 100}, ZC_DTYPE_U8, ZC_OP_SUM), 44);
  EXPECT_EQ(sum(std::vector<std::int8_t>{100, 100}, ZC_DTYPE_I8, ZC_OP_SUM), -56);
  EXPECT_EQ(sum(std::vector<std::int32_t>{INT32_MAX, 1}, ZC_DTYPE_I32, ZC_OP_SUM), INT32_MIN);
  EXPECT_EQ(sum(std::vector<std::int64_t>{INT64_MIN, -1}, ZC_DTYPE_I64, ZC_OP_SUM), INT64_MAX);
  EXPECT_EQ(sum(std::vector<std::int32_t>{65536, 65537}, ZC_DTYPE_I32, ZC_OP_PROD), 65536);
  EXPECT_EQ(sum(std::vector<std::int8_t>{-128, -1}, ZC_DTYPE_I8, ZC_OP_PROD), -128);
  EXPECT_EQ(sum(std::vector<std::int8_t>{-3, 5}, ZC_DTYPE_I8, ZC_OP_MIN), -3);
  EXPECT_EQ(sum(std::vector<std::uint8_t>{3, 250}, ZC_DTYPE_U8, ZC_OP_MAX), 250);
  EXPECT_EQ(sum(std::vector<std::int64_t>{3, 4}, ZC_DTYPE_I64, ZC_OP_PREMUL_SUM, -2), -14);
}

TEST(Oracle, f64_accumulates_in_f64) {
  EXPECT_EQ(reduced<double>({1, 0x1p-52, 0x1p-52}, {ZC_DTYPE_F64, ZC_DTYPE_NONE, ZC_OP_SUM, 1}), 1 + 0x1p-51);
  EXPECT_EQ(reduced<double>({7, 0, 0}, {ZC_DTYPE_F64, ZC_DTYPE_NONE, ZC_OP_AVG, 1}), 7.0 / 3.0);
}

TEST(Oracle, another_output_type_is_rounded_to_once) {
  const BF16 big = to_bf16(256), one = to_bf16(1);
  EXPECT_EQ((reduced<BF16, float>({big, one, one, one}, {ZC_DTYPE_BF16, ZC_DTYPE_F32, ZC_OP_SUM, 1})), 259.0f);
  // 1 + 2^-8 is a tie for bf16; the small third part decides, if nothing was rounded before it came.
  EXPECT_EQ((reduced<float, BF16>({1, 0x1p-8f, 0x1p-20f}, {ZC_DTYPE_F32, ZC_DTYPE_BF16, ZC_OP_SUM, 1})).bits,
            bf16_from_float(1 + 0x1p-7f));
  EXPECT_EQ((reduced<float, BF16>({1 + 0x1p-8f, 0x1p-20f}, {ZC_DTYPE_F32, ZC_DTYPE_BF16, ZC_OP_SUM, 1})).bits,
            bf16_from_float(1 + 0x1p-7f));
  EXPECT_EQ((reduced<float, BF16>({263}, {ZC_DTYPE_F32, ZC_DTYPE_BF16, ZC_OP_SUM, 1})).bits, bf16_from_float(264));
  EXPECT_EQ((reduced<F16, BF16>({to_f16(263)}, {ZC_DTYPE_F16, ZC_DTYPE_BF16, ZC_OP_MAX, 1})).bits,
            bf16_from_float(264));
}

TEST(Oracle, the_schedule_decides_where_sums_are_rounded) {
  // The same all-reduce without holds: rounded at every rank, so the ones are lost.
  Schedule schedule = build(make_key(Collective::reduce_scatter, "direct", 8));
  for (RankSchedule& rank : schedule.ranks)
    for (Step& step : rank.lanes[0].steps)
      if (step.reduces()) step.op_flags &= kOpMask;
  for (RankSchedule& rank : schedule.ranks)  // the first step of each run still holds
    for (Step& step : rank.lanes[0].steps) EXPECT_TRUE(!step.hold() || !step.reduces());
  std::vector<Bytes> inputs(8, bytes_of(std::vector<BF16>(8, to_bf16(1))));
  inputs[0] = bytes_of(std::vector<BF16>(8, to_bf16(256)));
  const auto outputs =
      run_oracle(schedule, Partition::even(8, 8), {ZC_DTYPE_BF16, ZC_DTYPE_NONE, ZC_OP_SUM, 1}, inputs);
  EXPECT_EQ(values_of<BF16>(outputs[3])[0], to_bf16(256));
  // An average is divided where the last contribution comes in, not at every rounding.
  const auto averages =
      run_oracle(schedule, Partition::even(8, 8), {ZC_DTYPE_BF16, ZC_DTYPE_NONE, ZC_OP_AVG, 1}, inputs);
  EXPECT_EQ(values_of<BF16>(averages[3])[0], to_bf16(32));
}

TEST(Oracle, moves_keep_every_bit) {
  const std::vector<std::uint32_t> odd = {0x7f800001u, 0xffc12345u, 0x80000000u, 1u};
  std::vector<Bytes> inputs = {Bytes{}, bytes_of(odd), Bytes{}};
  const auto outputs = run_oracle(build(make_key(Collective::broadcast, "direct", 3, 1)), Partition::even(4, 1),
                                  {ZC_DTYPE_F32, ZC_DTYPE_NONE, ZC_OP_NONE, 1}, inputs);
  for (const Bytes& output : outputs) EXPECT_EQ(output, bytes_of(odd));
}

TEST(Oracle, blocks_may_be_uneven_and_empty) {
  const std::array<std::size_t, 3> counts = {2, 0, 1};
  const std::vector<Bytes> parts = {
      bytes_of(std::vector<std::uint8_t>{1, 2}), {}, bytes_of(std::vector<std::uint8_t>{9})};
  const Elements stored{ZC_DTYPE_F8E4M3, ZC_DTYPE_NONE, ZC_OP_NONE, 1};
  for (const Bytes& output :
       run_oracle(build(make_key(Collective::all_gather, "direct", 3)), Partition::of_counts(counts), stored, parts))
    EXPECT_EQ(output, bytes_of(std::vector<std::uint8_t>{1, 2, 9}));

  const std::vector<Bytes> whole(3, bytes_of(std::vector<float>{1, 2, 3}));
  const auto shards = run_oracle(build(make_key(Collective::reduce_scatter, "direct", 3)), Partition::of_counts(counts),
                                 Elements{}, whole);
  EXPECT_EQ(shards[0], bytes_of(std::vector<float>{3, 6}));
  EXPECT_TRUE(shards[1].empty());
  EXPECT_EQ(shards[2], bytes_of(std::vector<float>{9}));
}

TEST(Oracle, a_barrier_moves_nothing) {
  const std::vector<Bytes> none(4);
  EXPECT_EQ(run_oracle(build(make_key(Collective::barrier, "direct", 4)), Partition::unit(0), {}, none), none);
}

// Element 10 r + i is what rank r brings in place i.
std::vector<Bytes> numbered(std::uint32_t ranks, std::size_t count, std::uint32_t only = UINT32_MAX) {
  std::vector<Bytes> inputs(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    std::vector<std::int32_t> values;
    for (std::size_t i = 0; i < count && (only == UINT32_MAX || r == only); ++i)
      values.push_back(static_cast<std::int32_t>(10 * r + i));
    inputs[r] = bytes_of(values);
  }
  return inputs;
}
using Ints = std::vector<std::int32_t>;

TEST(Oracle, all_to_all_gives_every_rank_its_column) {
  const auto outputs = run_oracle(build(make_key(Collective::all_to_all, "direct", 3)), Partition::even(18, 9),
                                  {ZC_DTYPE_I32}, numbered(3, 6));
  EXPECT_EQ(values_of<std::int32_t>(outputs[0]), (Ints{0, 1, 10, 11, 20, 21}));
  EXPECT_EQ(values_of<std::int32_t>(outputs[2]), (Ints{4, 5, 14, 15, 24, 25}));
}

TEST(Oracle, rooted_collectives_leave_nothing_with_the_others) {
  for (const char* algorithm : {"direct", "binomial"}) {
    const auto sum = run_oracle(build(make_key(Collective::reduce, algorithm, 4, 2)), Partition::even(3, 1),
                                {ZC_DTYPE_I32}, numbered(4, 3));
    EXPECT_EQ(values_of<std::int32_t>(sum[2]), (Ints{60, 64, 68}));
    EXPECT_TRUE(sum[0].empty());
    const auto gathered = run_oracle(build(make_key(Collective::gather_to_root, algorithm, 4, 1)),
                                     Partition::even(8, 4), {ZC_DTYPE_I32}, numbered(4, 2));
    EXPECT_EQ(values_of<std::int32_t>(gathered[1]), (Ints{0, 1, 10, 11, 20, 21, 30, 31}));
    EXPECT_TRUE(gathered[3].empty());
    const auto scattered = run_oracle(build(make_key(Collective::scatter_from_root, algorithm, 4, 3)),
                                      Partition::even(8, 4), {ZC_DTYPE_I32}, numbered(4, 8, 3));
    for (std::int32_t r = 0; r < 4; ++r)
      EXPECT_EQ(values_of<std::int32_t>(scattered[static_cast<std::size_t>(r)]), (Ints{30 + 2 * r, 31 + 2 * r}));
  }
}

TEST(Oracle, values_behind_a_codec_are_refused) {
  Schedule schedule = build(make_key(Collective::broadcast, "direct", 2));
  schedule.ranks[0].lanes[0].steps[1].codec = schedule.ranks[1].lanes[0].steps[0].codec = 1;
  EXPECT_THROW(run_oracle(schedule, Partition::even(1, 1), {ZC_DTYPE_I32}, numbered(2, 1, 0)), Error);
}

void expect_refused(zc_status status, const Elements& elements, std::size_t bytes,
                    Collective collective = Collective::all_reduce) {
  try {
    run_oracle(build(make_key(collective, "direct", 2)), Partition::even(2, 2), elements,
               std::vector<Bytes>(2, Bytes(bytes)));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
  }
}

TEST(Oracle, what_has_no_meaning_is_refused) {
  expect_refused(ZC_UNSUPPORTED, {ZC_DTYPE_I32, ZC_DTYPE_NONE, ZC_OP_AVG, 1}, 8);
  expect_refused(ZC_UNSUPPORTED, {ZC_DTYPE_F8E4M3, ZC_DTYPE_NONE, ZC_OP_SUM, 1}, 2);
  expect_refused(ZC_UNSUPPORTED, {ZC_DTYPE_F64, ZC_DTYPE_F32, ZC_OP_SUM, 1}, 16);
  expect_refused(ZC_UNSUPPORTED, {ZC_DTYPE_I32, ZC_DTYPE_I64, ZC_OP_SUM, 1}, 8);
  expect_refused(ZC_UNSUPPORTED, {ZC_DTYPE_U8, ZC_DTYPE_NONE, ZC_OP_PREMUL_SUM, -1}, 2);
  expect_refused(ZC_UNSUPPORTED, {ZC_DTYPE_I8, ZC_DTYPE_NONE, ZC_OP_PREMUL_SUM, 128}, 2);
  expect_refused(ZC_UNSUPPORTED, {ZC_DTYPE_I32, ZC_DTYPE_NONE, ZC_OP_PREMUL_SUM, 0.5}, 8);
  expect_refused(ZC_UNSUPPORTED, {ZC_DTYPE_I32, ZC_DTYPE_NONE, ZC_OP_PREMUL_SUM, double{kNan}}, 8);
  expect_refused(ZC_ARGUMENT, {ZC_DTYPE_F32, ZC_DTYPE_NONE, ZC_OP_NONE, 1}, 8);
  expect_refused(ZC_ARGUMENT, {ZC_DTYPE_NONE, ZC_DTYPE_NONE, ZC_OP_SUM, 1}, 8);
  expect_refused(ZC_ARGUMENT, {ZC_DTYPE_F32, ZC_DTYPE_NONE, ZC_OP_SUM, 1}, 4);
  expect_refused(ZC_ARGUMENT, {ZC_DTYPE_F32, ZC_DTYPE_NONE, ZC_OP_SUM, 1}, 8, Collective::broadcast);
}

TEST(Oracle, a_schedule_that_mixes_chunks_of_different_lengths_is_refused) {
  const Schedule schedule = from_text(
      "schedule all_reduce hand ranks=1 root=0 chunks=2 lanes=1 scratch=0\nrank 0\nlane 0\n"
      "  copy input[0] -> output[0]\n  copy input[0] -> output[1]\n");
  EXPECT_THROW(run_oracle(schedule, Partition::even(3, 2), {}, std::vector<Bytes>(1, Bytes(12))), Error);
}

}  // namespace
}  // namespace zerocomm::schedule
