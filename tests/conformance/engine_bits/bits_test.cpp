// Twenty steps of training come to the same bits whatever cuts, orders and moves the gradients: a cover of all pairs.
#include "bits_rows.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace zerocomm::test {
namespace {

class Bits : public testing::TestWithParam<std::int32_t> {};

void check_pairs(std::int32_t ranks, const Order& order) {
  BitsCheck bits(true);
  for (const Row& row : bits_pairs()) bits.check(ranks, order, row);
}

TEST_P(Bits, of_one_pass_are_those_of_plain_training) { check_pairs(GetParam(), kOrders[0]); }
TEST_P(Bits, of_one_pass_do_not_depend_on_adding_first) { check_pairs(GetParam(), kOrders[1]); }
TEST_P(Bits, of_three_passes_reduced_each_are_those_of_plain_training) { check_pairs(GetParam(), kOrders[2]); }
TEST_P(Bits, of_three_passes_added_first_are_those_of_plain_training) { check_pairs(GetParam(), kOrders[3]); }

INSTANTIATE_TEST_SUITE_P(ranks, Bits, testing::ValuesIn(kRankCounts));

#if !defined(__SANITIZE_THREAD__)  // minutes, and nothing new about races
// The giant at its full size; here the number of ranks and the order are factors of the rows, too.
TEST(BitsOfTheGiant, are_those_of_plain_training) {
  std::vector<std::size_t> levels = kLevels;
  levels[kModel] = 1;
  levels.insert(levels.end(), {kRankCounts.size(), kOrders.size()});
  BitsCheck bits(false, kGiantSteps);
  for (Row row : pairwise_rows(levels, [](const Row&) { return true; })) {
    row[kModel] = 1;
    bits.check(kRankCounts[row[kFactors]], kOrders[row[kFactors + 1]], row);
  }
}
#endif

// Micro-batches are numbered over ranks and passes, so both worlds train on the same ones, in the same order.
TEST(Bits, of_several_ranks_are_those_of_one_rank_that_takes_their_micro_batches_in_rank_order) {
  for (std::size_t model = 0; model < 2; ++model)
    for (const std::int32_t ranks : kRankCounts)
      for (std::size_t stage = 0; stage < 4; ++stage) {
        Row row = {model, ranks == 3, stage, stage, 1, 0, 0, 1, 0, static_cast<std::size_t>(ranks % 2)};
        const WorldSetup many = bits_setup(ranks, kOrders[0], row, true);
        WorldSetup one = bits_setup(1, kOrders[0], row, true);
        one.zero.micro_steps = ranks;
        const WorldResult left = train_world(many, kSteps),
                          right = train_world(one, kSteps, static_cast<std::size_t>(ranks));
        EXPECT_EQ(left.parameters, right.parameters) << ranks << " ranks, stage " << stage;
        EXPECT_EQ(left.norm, right.norm);
      }
}

// Trains a tensor tied `parts` - 1 times on two ranks, of which the second brings zeros; part i brings value(i).
void expect_sum_of_parts(zc_dtype dtype, std::size_t parts, const std::function<float(std::size_t)>& value,
                         float wanted) {
  constexpr std::size_t kCount = 40;
  for (const zc_stage stage : {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3}) {
    WorldSetup setup;
    std::vector<cli::ManifestTensor> tensors{{"w", "first", "", kCount, dtype, false}};
    for (std::size_t i = 1; i < parts; ++i)
      tensors.push_back({"tie" + std::to_string(i), "u" + std::to_string(i), "w", kCount, dtype, false});
    setup.model = hand_model(tensors);
    setup.ranks = 2;
    setup.layout.stage = stage;
    setup.zero.gradient_divisor = 1;
    run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
      RankEngine engine(comm, setup);
      engine.load();
      std::vector<std::vector<std::byte>> gradients(parts, std::vector<std::byte>(kCount * 4));
      RANK_OK(zc_zero_begin(engine.zero(), "train", ZC_PHASE_ONLY));
      for (std::size_t use = 0; use < parts; ++use) {
        for (std::size_t i = 0; i < kCount; ++i)
          store_element(dtype, rank == 0 ? static_cast<double>(value(use)) : 0,
                        gradients[use].data() + i * zc_dtype_bytes(dtype));
        RANK_OK(zc_zero_grad_ready(engine.zero(), use, gradients[use].data(), nullptr));
      }
      RANK_OK(zc_zero_end(engine.zero()));
      const zc_zero_piece* pieces = nullptr;
      std::size_t count = 0, state_count = 0;
      RANK_OK(zc_zero_pieces(engine.zero(), &pieces, &count, &state_count));
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t k = 0; k < pieces[i].count; ++k)
          RANK_CHECK(pieces[i].gradient[k] == wanted, "stage %d: %g", stage,
                     static_cast<double>(pieces[i].gradient[k]));
    });
  }
}

TEST(BitsOfTies, are_those_of_the_sum_in_list_order) {
  constexpr float kValues[] = {1e8f, -1e8f, 1};
  expect_sum_of_parts(
      ZC_DTYPE_F32, 3, [&](std::size_t part) { return kValues[part]; }, 1);
  expect_sum_of_parts(
      ZC_DTYPE_F32, 19, [&](std::size_t part) { return part < 16 ? 0 : kValues[part - 16]; }, 1);
}

// 256 + 17 in bf16 lies between 272 and 274. Rounded once it is 272; rounded on the way, 274.
TEST(BitsOfTies, are_rounded_once_however_many_there_are) {
  expect_sum_of_parts(
      ZC_DTYPE_BF16, 18, [](std::size_t part) { return part == 0 ? 256.0f : 1.0f; }, 272);
}

}  // namespace
}  // namespace zerocomm::test
