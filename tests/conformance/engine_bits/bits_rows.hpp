// Everything that must not change a bit, as factors of rows; and the check of one row against plain training.
#pragma once

#include "plain_training.hpp"
#include "support/pairwise.hpp"

#include <array>
#include <map>
#include <tuple>

namespace zerocomm::test {

// An accumulation order. Bits are promised within one.
struct Order {
  const char* name;
  std::size_t passes;
  zc_accumulation accumulation;
};
inline constexpr std::array<Order, 4> kOrders = {{{"one_pass", 1, ZC_ACCUMULATE_REDUCE_EACH},
                                                  {"one_pass_added_first", 1, ZC_ACCUMULATE_FIRST},
                                                  {"three_passes_reduced_each", 3, ZC_ACCUMULATE_REDUCE_EACH},
                                                  {"three_passes_added_first", 3, ZC_ACCUMULATE_FIRST}}};
inline constexpr std::array<std::int32_t, 5> kRankCounts = {2, 3, 4, 5, 8};
// Sanitizers make a step ten to thirty times slower, and look at what each step does, not at how many there are.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr std::size_t kSteps = 2, kGiantSteps = 1;
#else
inline constexpr std::size_t kSteps = 20, kGiantSteps = 4;
#endif

// Levels of the factors of a row: model and gradient dtype name the task, the rest must not matter.
enum Factor : std::size_t {
  kModel,
  kGradients,
  kStage,
  kBucket,
  kSlots,
  kLaunch,
  kSlices,
  kAlignment,
  kKeep,
  kPlacement,
  kFactors
};
inline const std::vector<std::size_t> kLevels = {2, 2, 4, 4, 3, 2, 2, 3, 3, 2};

// Model 0 is tiny-gpt, 1 is odd.
inline cli::Manifest bits_model(std::size_t index, bool short_giant) {
  if (index == 0) return data_model("tiny-gpt");
  return short_giant ? odd_with_short_giant() : data_model("odd");
}

inline WorldSetup bits_setup(std::int32_t ranks, const Order& order, const Row& row, bool short_giant) {
  constexpr std::array<zc_stage, 4> kStages = {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3};
  constexpr std::array<std::size_t, 4> kBuckets = {1, 1024, 65536, std::size_t{1} << 40};
  constexpr std::array<std::size_t, 3> kAlignments = {16, 64, 4096};
  WorldSetup setup;
  setup.model = bits_model(row[kModel], short_giant);
  setup.ranks = ranks;
  setup.layout.stage = kStages[row[kStage]];
  setup.layout.bucket_bytes = kBuckets[row[kBucket]];
  setup.layout.placement = row[kPlacement] == 0 ? ZC_PLACEMENT_PER_UNIT : ZC_PLACEMENT_FLAT;
  setup.layout.alignment_bytes = kAlignments[row[kAlignment]];
  setup.layout.persistent_bytes = row[kKeep] == 2 ? 4096 : 0;
  setup.zero.drop_released = row[kKeep] == 1;
  setup.zero.gradient_slots = static_cast<std::int32_t>(row[kSlots] + 1);
  setup.zero.launch = row[kLaunch] == 0 ? ZC_LAUNCH_COMPLETE : ZC_LAUNCH_END;
  setup.zero.slices = row[kSlices] == 0 ? ZC_SLICES_CLAIMED : ZC_SLICES_STATIC;
  setup.zero.micro_steps = static_cast<std::int32_t>(order.passes);
  setup.zero.accumulation = order.accumulation;
  setup.gradient_dtype = row[kGradients] == 0 ? ZC_DTYPE_NONE : ZC_DTYPE_BF16;
  setup.some_absent = true;
  setup.grad_buffers = row[kSlots] == 1;
  setup.clip = 3000;
  return setup;
}

// Trains as the row says and as plain training does.
class BitsCheck {
 public:
  explicit BitsCheck(bool short_giant, std::size_t steps = kSteps) : short_giant_(short_giant), steps_(steps) {}

  void check(std::int32_t ranks, const Order& order, const Row& row) {
    const WorldSetup setup = bits_setup(ranks, order, row, short_giant_);
    const bool first = order.accumulation == ZC_ACCUMULATE_FIRST;
    const Task task{ranks, order.passes, first, row[kModel], row[kGradients]};
    if (plain_.count(task) == 0) plain_[task] = PlainTraining(setup, order.passes, first).train(steps_);
    EXPECT_EQ(train_world(setup, steps_, order.passes), plain_[task])
        << ranks << " ranks, " << order.name << ", levels " << testing::PrintToString(row);
  }

 private:
  using Task = std::tuple<std::int32_t, std::size_t, bool, std::size_t, std::size_t>;
  bool short_giant_;
  std::size_t steps_;
  std::map<Task, WorldResult> plain_;
};

inline std::vector<Row> bits_pairs() {
  static const std::vector<Row> rows = pairwise_rows(kLevels, [](const Row&) { return true; });
  return rows;
}

}  // namespace zerocomm::test
