// Flat placement trains to the bits of per-unit placement, which those of plain training are compared with elsewhere.
#include "bits_rows.hpp"

#include <gtest/gtest.h>

namespace zerocomm::test {
namespace {

// More ranks than elements, empty and frozen tensors, ties, four buffers; units of a few bytes and of none.
cli::Manifest crumbs() {
  return hand_model({{"scalar", "a", "", 1, ZC_DTYPE_F32, false},
                     {"table", "a", "", 19, ZC_DTYPE_F32, true},
                     {"void", "b", "", 0, ZC_DTYPE_F32, false},
                     {"half", "c", "", 3, ZC_DTYPE_BF16, false},
                     {"tie", "c", "scalar", 1, ZC_DTYPE_F32, false},
                     {"odd", "d", "", 131, ZC_DTYPE_F32, false},
                     {"other", "d", "", 37, ZC_DTYPE_F16, false},
                     {"half_again", "e", "half", 3, ZC_DTYPE_BF16, false},
                     {"end", "e", "", 0, ZC_DTYPE_BF16, false}});
}

struct Shape {
  const char* name;
  cli::Manifest model;
  std::size_t alignment_bytes;
  std::size_t persistent_bytes;
};

class FlatBits : public testing::TestWithParam<std::int32_t> {};

TEST_P(FlatBits, are_those_of_per_unit_placement_in_every_stage_and_order) {
  constexpr std::size_t kShortSteps = 3;
  const Shape shapes[] = {{"tiny-gpt", data_model("tiny-gpt"), 64, 0},
                          {"odd", odd_with_short_giant(), 16, 4096},
                          {"crumbs", crumbs(), 1, 0},
                          {"aligned crumbs", crumbs(), 256, 64}};
  for (const Shape& shape : shapes)
    for (std::size_t stage = 0; stage < 4; ++stage)
      for (std::size_t order = 0; order < kOrders.size(); ++order) {
        Row row(kFactors, 0);
        row[kStage] = stage;
        row[kGradients] = (stage + order) % 2;
        row[kBucket] = order;
        row[kSlots] = (order + stage) % 3;
        row[kLaunch] = order / 2;
        row[kSlices] = stage % 2;
        WorldSetup setup = bits_setup(GetParam(), kOrders[order], row, true);
        setup.model = shape.model;
        setup.layout.alignment_bytes = shape.alignment_bytes;
        setup.layout.persistent_bytes = shape.persistent_bytes;
        setup.zero.drop_released = stage % 2 == order % 2;
        setup.clip = 30;
        const WorldResult per_unit = train_world(setup, kShortSteps, kOrders[order].passes);
        EXPECT_GT(per_unit.norm, setup.clip);  // the gradients are scaled
        setup.layout.placement = ZC_PLACEMENT_FLAT;
        EXPECT_EQ(train_world(setup, kShortSteps, kOrders[order].passes), per_unit)
            << shape.name << ", stage " << stage << ", " << kOrders[order].name;
        if (stage != 3) continue;
        setup.zero.shared_views = 1;
        setup.zero.drop_released = 0;
        EXPECT_EQ(train_world(setup, kShortSteps, kOrders[order].passes), per_unit)
            << shape.name << ", shared views, " << kOrders[order].name;
      }
}

INSTANTIATE_TEST_SUITE_P(ranks, FlatBits, testing::Values(1, 2, 3, 4, 5, 7, 8));

}  // namespace
}  // namespace zerocomm::test
