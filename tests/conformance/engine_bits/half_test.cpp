// 16-bit gradients are added in f32 and land in f32 shards; only parameters are rounded back, once.
#include "support/engine_world.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>

namespace zerocomm::test {
namespace {

constexpr std::array<zc_stage, 4> kStages = {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3};
constexpr std::size_t kCount = 37;

WorldSetup half_setup(std::int32_t ranks, zc_stage stage, zc_dtype dtype, std::int32_t passes, zc_accumulation order) {
  WorldSetup setup;
  setup.model = hand_model({{"w", "only", "", kCount, dtype, false}});
  setup.ranks = ranks;
  setup.layout.stage = stage;
  setup.zero.micro_steps = passes;
  setup.zero.accumulation = order;
  return setup;
}

// Runs `passes` passes; in each, every element of the gradient is value(rank, pass). Every reduced element of every
// rank is `wanted`, to the bit.
void expect_reduced(const WorldSetup& setup, const std::function<float(std::int32_t, std::int32_t)>& value,
                    float wanted) {
  const zc_dtype dtype = setup.model.tensors[0].dtype;
  run_ranks(setup.ranks, [&](zc_comm* comm, std::int32_t rank) {
    RankEngine engine(comm, setup);
    engine.load();
    const std::int32_t passes = std::max(setup.zero.micro_steps, 1);
    for (std::int32_t pass = 0; pass < passes; ++pass) {
      const zc_phase phase = passes == 1          ? ZC_PHASE_ONLY
                             : pass == 0          ? ZC_PHASE_FIRST
                             : pass + 1 == passes ? ZC_PHASE_LAST
                                                  : ZC_PHASE_MIDDLE;
      std::vector<std::byte> gradient(kCount * 2);
      for (std::size_t i = 0; i < kCount; ++i)
        store_element(dtype, static_cast<double>(value(rank, pass)), gradient.data() + 2 * i);
      RANK_OK(zc_zero_begin(engine.zero(), "train", phase));
      RANK_OK(zc_zero_grad_ready(engine.zero(), 0, gradient.data(), nullptr));
      RANK_OK(zc_zero_end(engine.zero()));
    }
    const zc_zero_piece* pieces = nullptr;
    std::size_t count = 0, state_count = 0;
    RANK_OK(zc_zero_pieces(engine.zero(), &pieces, &count, &state_count));
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t k = 0; k < pieces[i].count; ++k)
        RANK_CHECK(std::bit_cast<std::uint32_t>(pieces[i].gradient[k]) == std::bit_cast<std::uint32_t>(wanted),
                   "stage %d: %.9g, not %.9g", setup.layout.stage, static_cast<double>(pieces[i].gradient[k]),
                   static_cast<double>(wanted));
  });
}

// In bf16, 256 + 1 is 256 again.
TEST(HalfGradients, of_256_and_seven_ones_add_up_to_263) {
  for (const zc_stage stage : kStages) {
    WorldSetup setup = half_setup(8, stage, ZC_DTYPE_BF16, 1, ZC_ACCUMULATION_DEFAULT);
    setup.zero.gradient_divisor = 1;
    expect_reduced(
        setup, [](std::int32_t rank, std::int32_t) { return rank == 0 ? 256.0f : 1.0f; }, 263);
  }
}

TEST(HalfGradients, of_512_ones_in_passes_add_up_to_512) {
  for (const zc_stage stage : kStages)
    for (const zc_accumulation order : {ZC_ACCUMULATE_REDUCE_EACH, ZC_ACCUMULATE_FIRST})
      for (const std::int32_t ranks : {1, 4}) {
        WorldSetup setup = half_setup(ranks, stage, ZC_DTYPE_BF16, 512 / ranks, order);
        setup.zero.gradient_divisor = 1;
        expect_reduced(
            setup, [](std::int32_t, std::int32_t) { return 1.0f; }, 512);
      }
}

// f16 holds no sum above 65504 and bf16 no 1/3; f32 holds both.
TEST(HalfGradients, are_averaged_by_one_true_division_in_f32) {
  for (const zc_stage stage : kStages)
    for (const zc_accumulation order : {ZC_ACCUMULATE_REDUCE_EACH, ZC_ACCUMULATE_FIRST}) {
      expect_reduced(
          half_setup(3, stage, ZC_DTYPE_F16, 1, order), [](std::int32_t, std::int32_t) { return 65504.0f; }, 65504);
      expect_reduced(
          half_setup(3, stage, ZC_DTYPE_BF16, 1, order),
          [](std::int32_t rank, std::int32_t) { return rank == 2 ? 1.0f : 0.0f; }, 1.0f / 3.0f);
      expect_reduced(
          half_setup(3, stage, ZC_DTYPE_BF16, 3, order),
          [](std::int32_t rank, std::int32_t pass) { return static_cast<float>(rank * 3 + pass + 1); }, 45.0f / 9.0f);
      // 7 * (1/5) and 7 / 5 differ.
      expect_reduced(
          half_setup(5, stage, ZC_DTYPE_F16, 1, order),
          [](std::int32_t rank, std::int32_t) { return rank == 0 ? 7.0f : 0.0f; }, 7.0f / 5.0f);
    }
}

// A sum starts at what rank 0 brings, not at +0.
TEST(HalfGradients, of_negative_zeros_add_up_to_a_negative_zero) {
  for (const zc_stage stage : kStages)
    for (const zc_accumulation order : {ZC_ACCUMULATE_REDUCE_EACH, ZC_ACCUMULATE_FIRST})
      for (const std::int32_t passes : {1, 3})
        expect_reduced(
            half_setup(3, stage, ZC_DTYPE_BF16, passes, order), [](std::int32_t, std::int32_t) { return -0.0f; },
            -0.0f);
}

// The divisor counts the passes that the step had, not the most it may have.
TEST(HalfGradients, are_divided_by_the_passes_of_the_step) {
  for (const zc_stage stage : kStages)
    for (const zc_accumulation order : {ZC_ACCUMULATE_REDUCE_EACH, ZC_ACCUMULATE_FIRST}) {
      WorldSetup setup = half_setup(2, stage, ZC_DTYPE_BF16, 4, order);
      run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
        RankEngine engine(comm, setup);
        engine.load();
        const std::vector<std::uint16_t> gradient(kCount, bf16_from_float(rank == 0 ? 3.0f : 9.0f));
        for (const std::vector<zc_phase>& step : {std::vector{ZC_PHASE_ONLY},
                                                  {ZC_PHASE_FIRST, ZC_PHASE_LAST},
                                                  {ZC_PHASE_FIRST, ZC_PHASE_MIDDLE, ZC_PHASE_MIDDLE, ZC_PHASE_LAST}}) {
          for (const zc_phase phase : step) {
            RANK_OK(zc_zero_begin(engine.zero(), "train", phase));
            RANK_OK(zc_zero_grad_ready(engine.zero(), 0, gradient.data(), nullptr));
            RANK_OK(zc_zero_end(engine.zero()));
          }
          const zc_zero_piece* pieces = nullptr;
          std::size_t count = 0, state_count = 0;
          RANK_OK(zc_zero_pieces(engine.zero(), &pieces, &count, &state_count));
          for (std::size_t i = 0; i < count; ++i)
            for (std::size_t k = 0; k < pieces[i].count; ++k)
              RANK_CHECK(pieces[i].gradient[k] == 6, "stage %d, %zu passes: %g", stage, step.size(),
                         static_cast<double>(pieces[i].gradient[k]));
          RANK_OK(zc_zero_publish_unchanged(engine.zero()));
        }
      });
    }
}

}  // namespace
}  // namespace zerocomm::test
