// Memory and traffic against the formulas of the papers and against sums over a layout.
#include "unit/shard/layout_builder.hpp"

#include "base/check.hpp"
#include "shard/estimate.hpp"
#include "shard/stage_table.hpp"

#include <gtest/gtest.h>

#include <array>

namespace zerocomm::shard {
namespace {

constexpr std::size_t kPsi = 1'048'576;
constexpr std::int32_t kRanks = 8;
constexpr zc_stage kStages[] = {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3};

zc_estimate count_of(zc_stage stage, zc_dtype dtype, zc_estimate_config config = {}) {
  return estimate_count(kPsi, kRanks, stage, dtype, config);
}

zc_estimate layout_of(zc_stage stage, zc_dtype dtype, zc_estimate_config config = {}, std::int32_t rank = 0) {
  LayoutBuilder builder = one_unit({kPsi}, kRanks, dtype);
  builder.stage = stage;
  return estimate_layout(builder.make(), rank, config);
}

TEST(Estimate, stages_are_rows_that_say_where_each_state_lives) {
  std::string rows;
  for (const StageRow& row : kStageTable) {
    rows += std::to_string(row.number);
    for (const Home home : {row.parameters, row.gradients, row.optimizer}) rows += static_cast<char>(home);
  }
  EXPECT_EQ(rows, "0NNN1NNG2NGG3GGG");
  EXPECT_THROW(stage_row(ZC_STAGE_NONE), Error);
}

TEST(Estimate, f32_states_follow_the_formula) {
  constexpr std::size_t k = 8, n = kRanks;
  const std::size_t bytes[] = {(4 + 4 + k) * kPsi, (4 + 4) * kPsi + k * kPsi / n, 4 * kPsi + (4 + k) * kPsi / n,
                               (4 + 4 + k) * kPsi / n};
  for (std::size_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(count_of(kStages[stage], ZC_DTYPE_F32).state_bytes, bytes[stage]) << "stage " << stage;
    EXPECT_EQ(layout_of(kStages[stage], ZC_DTYPE_F32).state_bytes, bytes[stage]) << "stage " << stage;
  }
}

TEST(Estimate, bf16_states_with_f32_masters_and_f32_reduced_gradients_follow_the_formula) {
  constexpr std::size_t k = 12, n = kRanks;
  const std::size_t bytes[] = {(6 + k) * kPsi, 4 * kPsi + (4 + k) * kPsi / n, 2 * kPsi + (4 + k) * kPsi / n,
                               (6 + k) * kPsi / n};
  for (std::size_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(count_of(kStages[stage], ZC_DTYPE_BF16).state_bytes, bytes[stage]) << "stage " << stage;
    EXPECT_EQ(layout_of(kStages[stage], ZC_DTYPE_BF16).state_bytes, bytes[stage]) << "stage " << stage;
  }
}

TEST(Estimate, traffic_of_one_step_has_the_golden_bytes) {
  const std::size_t two_bytes[] = {1'835'008 * 3, 3'670'016, 3'670'016, 5'505'024};  // stage 0 gathers f32 gradients
  for (std::size_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(count_of(kStages[stage], ZC_DTYPE_BF16).logical_bytes, two_bytes[stage]) << "stage " << stage;
    for (std::int32_t rank = 0; rank < kRanks; ++rank)
      EXPECT_EQ(layout_of(kStages[stage], ZC_DTYPE_BF16, {}, rank).logical_bytes, two_bytes[stage]);
  }
}

TEST(Estimate, traffic_counts_two_or_three_times_psi_less_the_own_part) {
  constexpr std::size_t foreign = kPsi * (kRanks - 1) / kRanks;
  const std::array<std::size_t, 2> elements[] = {
      {0, 2 * foreign}, {foreign, foreign}, {foreign, foreign}, {2 * foreign, foreign}};
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const zc_estimate estimate = layout_of(kStages[stage], ZC_DTYPE_F32);
    EXPECT_EQ(estimate.gather_elements, elements[stage][0]);
    EXPECT_EQ(estimate.reduce_elements, elements[stage][1]);
  }
}

TEST(Estimate, one_rank_moves_nothing) {
  for (const zc_stage stage : kStages) EXPECT_EQ(estimate_count(kPsi, 1, stage, ZC_DTYPE_BF16, {}).logical_bytes, 0u);
}

TEST(Estimate, moments_are_the_callers) {
  zc_estimate_config config{};
  config.moment_bytes_per_element = 2;
  EXPECT_EQ(layout_of(ZC_STAGE_2, ZC_DTYPE_F32, config).moment_bytes, 2 * kPsi / kRanks);
  config.moment_bytes_per_element = ZC_ESTIMATE_NO_MOMENTS;
  EXPECT_EQ(layout_of(ZC_STAGE_2, ZC_DTYPE_F32, config).moment_bytes, 0u);
}

TEST(Estimate, reducing_each_micro_step_keeps_a_shard_beside_the_gradients_of_stage_1) {
  zc_estimate_config config{};
  config.micro_steps = 4;
  EXPECT_EQ(layout_of(ZC_STAGE_1, ZC_DTYPE_F32, config).gradient_bytes, 4 * kPsi + 4 * kPsi / kRanks);
  EXPECT_EQ(layout_of(ZC_STAGE_2, ZC_DTYPE_F32, config).gradient_bytes, 4 * kPsi / kRanks);
  EXPECT_EQ(layout_of(ZC_STAGE_2, ZC_DTYPE_F32, config).reduce_elements, 4 * 7 * kPsi / kRanks);
  EXPECT_EQ(layout_of(ZC_STAGE_3, ZC_DTYPE_F32, config).gather_elements, 2 * 4 * 7 * kPsi / kRanks);
  EXPECT_EQ(layout_of(ZC_STAGE_2, ZC_DTYPE_F32, config).gather_elements, 7 * kPsi / kRanks);
}

TEST(Estimate, accumulating_first_keeps_full_f32_gradients_in_every_stage) {
  zc_estimate_config config{};
  config.micro_steps = 4;
  config.accumulate_first = 1;
  const std::size_t shard = 4 * kPsi / kRanks;
  EXPECT_EQ(layout_of(ZC_STAGE_0, ZC_DTYPE_BF16, config).gradient_bytes, 8 * kPsi);
  EXPECT_EQ(layout_of(ZC_STAGE_1, ZC_DTYPE_BF16, config).gradient_bytes, 4 * kPsi);  // the sums go back in place
  EXPECT_EQ(layout_of(ZC_STAGE_1, ZC_DTYPE_F32, config).gradient_bytes, 4 * kPsi);
  EXPECT_EQ(layout_of(ZC_STAGE_2, ZC_DTYPE_BF16, config).gradient_bytes, 4 * kPsi + shard);
  EXPECT_EQ(layout_of(ZC_STAGE_3, ZC_DTYPE_BF16, config).gradient_bytes, 4 * kPsi + shard);
  // One reduction of f32 sums.
  EXPECT_EQ(layout_of(ZC_STAGE_1, ZC_DTYPE_BF16, config).reduce_elements, 7 * kPsi / kRanks);
  EXPECT_EQ(layout_of(ZC_STAGE_1, ZC_DTYPE_BF16, config).logical_bytes, (4 + 2) * 7 * kPsi / kRanks);
  config.micro_steps = 1;  // nothing to add up
  EXPECT_EQ(layout_of(ZC_STAGE_2, ZC_DTYPE_BF16, config).gradient_bytes, shard);
}

LayoutBuilder small_mixed(zc_stage stage) {
  LayoutBuilder builder;
  builder.ranks = 2;
  builder.stage = stage;
  builder.tensors = {{"a", "u", 5}, {"b", "u", 20}, {"f", "u", 40, ZC_DTYPE_I64, ZC_DTYPE_NONE, true}};
  return builder;
}

// Trained block: 5 at 0, 20 at 16, so shards of 32: rank 0 owns 5 + 16, rank 1 owns 4. Bucket slot: 20 at 0, 5 at
// 32, 48. Frozen block: shards of 24 i64, rank 0 owns 24, rank 1 owns 16.
TEST(Estimate, padding_is_counted_to_the_byte) {
  const zc_estimate zero = estimate_layout(small_mixed(ZC_STAGE_0).make(), 1, {});
  EXPECT_EQ(zero.parameter_bytes, 64u * 4 + 48 * 8);
  EXPECT_EQ(zero.gradient_bytes, 64u * 4);
  EXPECT_EQ(zero.moment_bytes, 25u * 8);
  EXPECT_EQ(zero.padding_bytes, 2 * 39u * 4 + 8 * 8);
  const zc_estimate one = estimate_layout(small_mixed(ZC_STAGE_1).make(), 1, {});
  EXPECT_EQ(one.gradient_bytes, 48u * 4);
  EXPECT_EQ(one.moment_bytes, 4u * 8);
  EXPECT_EQ(one.padding_bytes, 39u * 4 + 8 * 8 + 23 * 4);
  const zc_estimate three = estimate_layout(small_mixed(ZC_STAGE_3).make(), 1, {});
  EXPECT_EQ(three.parameter_bytes, 32u * 4 + 24 * 8);
  EXPECT_EQ(three.gradient_bytes, 32u * 4);
  EXPECT_EQ(three.master_bytes, 0u);
  EXPECT_EQ(three.padding_bytes, 2 * 28u * 4 + 8 * 8);
  EXPECT_EQ(three.state_bytes, three.parameter_bytes + three.gradient_bytes + three.moment_bytes);
}

TEST(Estimate, padding_is_not_moved_and_frozen_tensors_are_gathered_in_stage_3_alone) {
  const zc_estimate two = estimate_layout(small_mixed(ZC_STAGE_2).make(), 1, {});
  EXPECT_EQ(two.gather_elements, 21u);
  EXPECT_EQ(two.reduce_elements, 4u);
  EXPECT_EQ(two.logical_bytes, 4u * 25);
  const zc_estimate three = estimate_layout(small_mixed(ZC_STAGE_3).make(), 1, {});
  EXPECT_EQ(three.gather_elements, 2u * (21 + 24));
  EXPECT_EQ(three.logical_bytes, 4u * 4 + 2 * (21 * 4 + 24 * 8));
}

TEST(Estimate, persistent_units_are_fetched_once_a_step) {
  LayoutBuilder builder;
  builder.ranks = 2;
  builder.tensors = {{"a", "small", 40}, {"b", "large", 400}};
  builder.persistent_bytes = 256;
  const Layout layout = builder.make();
  ASSERT_TRUE(layout.units[0].persistent);
  EXPECT_EQ(estimate_layout(layout, 0, {}).gather_elements, 2u * (400 - 208) + (40 - 32));
  EXPECT_EQ(estimate_layout(layout, 1, {}).gather_elements, 2u * 208 + 32);
}

TEST(Estimate, shares_of_a_bare_count_are_rounded_up) {
  const zc_estimate estimate = estimate_count(10, 4, ZC_STAGE_3, ZC_DTYPE_F32, {});
  EXPECT_EQ(estimate.parameter_bytes, 12u);
  EXPECT_EQ(estimate.gather_elements, 14u);
  EXPECT_EQ(estimate.reduce_elements, 9u);
}

TEST(Estimate, wrong_questions_are_refused) {
  const Layout layout = one_unit({4}, 2).make();
  EXPECT_THROW(estimate_layout(layout, 2, {}), Error);
  EXPECT_THROW(estimate_layout(layout, -1, {}), Error);
  EXPECT_THROW(estimate_count(4, 0, ZC_STAGE_1, ZC_DTYPE_F32, {}), Error);
  EXPECT_THROW(estimate_count(4, 1, ZC_STAGE_NONE, ZC_DTYPE_F32, {}), Error);
  EXPECT_THROW(estimate_count(4, 1, ZC_STAGE_1, ZC_DTYPE_I8, {}), Error);
  EXPECT_THROW(estimate_count(static_cast<std::size_t>(-1), 1, ZC_STAGE_0, ZC_DTYPE_F32, {}), Error);
  zc_estimate_config config{};
  config.micro_steps = -1;
  EXPECT_THROW(estimate_count(4, 1, ZC_STAGE_1, ZC_DTYPE_F32, config), Error);
}

}  // namespace
}  // namespace zerocomm::shard
