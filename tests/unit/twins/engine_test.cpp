// The C++ twins of layouts and of the ZeRO engine.
#include <zerocomm/zerocomm.hpp>

#include "support/rank_threads.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using zerocomm::test::RankFailure;
using zerocomm::test::run_ranks;

void expect(bool good, const std::string& what) {
  if (!good) throw RankFailure(what);
}

constexpr std::array<zc::Tensor, 2> kTensors{{{.name = "weight", .unit = "layer", .count = 5, .dtype = ZC_DTYPE_F32},
                                              {.name = "bias", .unit = "layer", .count = 2, .dtype = ZC_DTYPE_F32}}};

zc::Layout make_layout(std::int32_t ranks, zc_stage stage) {
  return zc::Layout::create(kTensors, {.ranks = ranks, .stage = stage});
}

TEST(LayoutTwin, tells_what_the_layout_is) {
  const zc::Layout layout = make_layout(2, ZC_STAGE_3);
  EXPECT_EQ(layout.info().tensor_count, 2U);
  EXPECT_EQ(layout.find_tensor("bias"), 1U);
  EXPECT_EQ(layout.find_unit("layer"), 0U);
  EXPECT_EQ(layout.unit(0).use_count, 2U);
  EXPECT_EQ(layout.use(layout.unit_use(0, 1)).in_tensor.count, 2U);
  EXPECT_EQ(layout.bucket(0).count, 7U);
  std::size_t elements = 0;
  for (std::int32_t rank = 0; rank < 2; ++rank)
    for (const zc_piece& piece : layout.pieces(rank, 0)) elements += piece.count;
  EXPECT_EQ(elements, 7U);
  EXPECT_NE(layout.text().find("weight"), std::string::npos);
  EXPECT_NE(layout.text().back(), '\0');
  EXPECT_THROW((void)layout.find_unit("none"), zc::Error);
}

TEST(LayoutTwin, uses_set_their_own_order) {
  const std::array<zc::Use, 3> uses{{{.tensor = 1, .offset = 0, .count = 2, .unit = "b"},
                                     {.tensor = 0, .offset = 0, .count = 3, .unit = "a"},
                                     {.tensor = 0, .offset = 3, .count = 2, .unit = "b"}}};
  const zc::Layout layout = zc::Layout::create(kTensors, {.ranks = 1, .stage = ZC_STAGE_1, .uses = uses});
  EXPECT_EQ(layout.info().use_count, 3U);
  EXPECT_EQ(layout.unit(0).use_count, 2U);
}

TEST(LayoutTwin, a_unit_is_cut_and_gathered) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    const zc::Layout layout = make_layout(2, ZC_STAGE_3);
    std::array<float, 5> weight{1, 2, 3, 4, 5};
    std::array<float, 2> bias{6, 7};
    std::vector<float> shard(layout.buffer(0).shard_count);
    const std::array<const void*, 2> full{weight.data(), bias.data()};
    const std::array<void*, 1> shards{shard.data()};
    zc::partition(layout, rank, 0, full, shards);
    std::array<float, 5> weight_back{};
    std::array<float, 2> bias_back{};
    const std::array<void*, 2> back{weight_back.data(), bias_back.data()};
    const std::array<const void*, 1> sources{shard.data()};
    zc::gather(comm, layout, 0, sources, back);
    expect(weight_back == weight && bias_back == bias, "gathered elements");
    bool refused = false;
    try {
      zc::partition(layout, rank, 0, std::span(full).first(1), shards);
    } catch (const zc::Error& error) {
      refused = error.status() == ZC_ARGUMENT;
    }
    expect(refused, "one address for two uses");
  });
}

TEST(LayoutTwin, a_unit_is_found_in_whole_flat_buffers) {
  const zc::Layout layout =
      zc::Layout::create(kTensors, {.ranks = 2, .stage = ZC_STAGE_3, .placement = ZC_PLACEMENT_FLAT});
  const std::vector<float> whole(2 * layout.buffer(0).shard_count);
  const std::array<const void*, 1> buffers{whole.data()};
  std::array<const void*, 2> tensors{};
  zc::view(layout, 0, buffers, tensors);
  EXPECT_EQ(tensors[0], whole.data());
  EXPECT_THROW(zc::view(layout, 0, buffers, std::span(tensors).first(1)), zc::Error);
}

// One step of plain gradient descent at rate 1: parameters minus the mean gradient, which is 2.
void step(const zc::Zero& zero, std::int32_t rank) {
  const std::vector<float> weight_gradient(5, rank == 0 ? 1.0F : 3.0F);
  const std::vector<float> bias_gradient(2, rank == 0 ? 1.0F : 3.0F);
  zero.begin("train", ZC_PHASE_ONLY);
  {
    const zc::HeldUnit held = zero.acquire(0);
    expect(held.tensor<float>(0).size() == 5 && held.tensor<float>(1)[1] == 7, "held parameters");
    zero.grad_ready(1, bias_gradient);
    zero.grad_ready(0, weight_gradient);
  }
  zero.end();
  expect(zero.norm().sum_squares == 7 * 4.0, "norm");
  zero.update_begin();
  for (const zc_zero_piece& piece : zero.pieces())
    for (std::size_t i = 0; i < piece.count; ++i) piece.master[i] -= piece.gradient[i];
  zero.cast();
  zero.publish();
}

TEST(ZeroTwin, trains_a_step_at_every_stage) {
  for (const zc_stage stage : {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3}) {
    run_ranks(2, [stage](zc_comm* comm, std::int32_t rank) {
      const std::array<float, 5> weight{1, 2, 3, 4, 5};
      const std::array<float, 2> bias{6, 7};
      zc::Zero zero;
      {
        const zc::Layout layout = make_layout(2, stage);
        zero = zc::Zero::create(comm, layout, {.gradient_slots = 2});
      }
      const std::array<const void*, 2> full{weight.data(), bias.data()};
      zero.load(0, full);
      step(zero, rank);
      std::array<float, 5> result{};
      zero.export_tensor(0, ZC_STATE_PARAMETER, result.data());
      expect(result == std::array<float, 5>{-1, 0, 1, 2, 3}, "updated weight");
      expect(zero.stats().generation == 1, "generation");
      zc::barrier(comm);
    });
  }
}

TEST(ZeroTwin, wrong_types_and_extents_are_refused_before_the_call) {
  run_ranks(1, [](zc_comm* comm, std::int32_t) {
    const zc::Layout layout = make_layout(1, ZC_STAGE_3);
    const zc::Zero zero = zc::Zero::create(comm, layout);
    zero.begin("look", ZC_PHASE_ONLY);
    const std::vector<float> four(4);
    const std::vector<double> five(5);
    const auto text = [](const auto& call) -> std::string {
      try {
        call();
      } catch (const zc::Error& error) {
        return error.what();
      }
      return "nothing was thrown";
    };
    EXPECT_EQ(text([&] { zero.grad_ready(0, four); }),
              "ARGUMENT: zc::Zero::grad_ready: use 0 has 5 elements of f32, not 4 of f32");
    EXPECT_EQ(text([&] { zero.grad_ready(0, five); }),
              "ARGUMENT: zc::Zero::grad_ready: use 0 has 5 elements of f32, not 5 of f64");
    EXPECT_EQ(text([&] { zero.grad_ready(2, four); }), "ARGUMENT: zc::Zero::grad_ready: there is no use 2, only 2");
    zc::HeldUnit held = zero.acquire(0);
    EXPECT_EQ(text([&] { (void)held.tensor<zc::bf16>(0); }),
              "ARGUMENT: zc: held unit: use 0 has 5 elements of f32, not 5 of bf16");
    EXPECT_EQ(text([&] { (void)held.address(2); }), "ARGUMENT: zc: held unit: there is no position 2, only 2");
    const zc::HeldUnit moved = std::move(held);
    EXPECT_EQ(text([&] { (void)held.address(0); }), "STATE: zc: held unit: nothing is held");
    EXPECT_NE(moved.address(0), nullptr);
    EXPECT_EQ(text([&] { (void)zero.state<zc::bf16>(layout, ZC_STATE_PARAMETER, 0); }),
              "ARGUMENT: zc::Zero::state: buffer 0 holds f32, not bf16");
  });
}

TEST(PartTwins, a_reducer_and_a_fetcher_do_their_halves) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    const zc::Layout layout = make_layout(2, ZC_STAGE_3);
    const zc::Reducer reducer = zc::Reducer::create(comm, layout, {.gradient_slots = 2});
    const std::vector<float> weight_gradient(5, rank == 0 ? 1.0F : 3.0F);
    reducer.begin(ZC_PHASE_ONLY);
    reducer.grad_ready(0, weight_gradient);
    expect(reducer.blockers(0, rank) == std::vector<std::size_t>{1}, "use 1 is missing");
    reducer.grad_absent(1);
    reducer.end();
    expect(reducer.norm().sum_squares == 5 * 4.0, "norm");
    float sum = 0;
    for (const zc_zero_piece& piece : reducer.pieces())
      for (std::size_t i = 0; i < piece.count; ++i) sum += piece.gradient[i];
    float all = 0;
    zc::all_reduce(comm, std::span(&sum, 1), std::span(&all, 1), ZC_OP_SUM);
    expect(all == 10.0F, "sum of the reduced gradients");

    zc::Fetcher fetcher = zc::Fetcher::create(comm, layout);
    fetcher.update_begin();
    for (float& element : fetcher.shard<float>(layout, 0)) element = 4;
    fetcher.publish();
    const zc::Fetcher moved = std::move(fetcher);
    moved.begin("look");
    {
      const zc::FetchedUnit held = moved.acquire(0);
      expect(held.tensor<float>(0)[4] == 4 && held.tensor<float>(1).size() == 2, "fetched parameters");
    }
    moved.end();
    expect(moved.stats().misses + moved.stats().hits == 1, "one acquire");
    zc::barrier(comm);
  });
}

TEST(ScheduleTwin, is_made_proved_counted_and_run) {
  const zc::Schedule ring =
      zc::Schedule::create({.collective = ZC_COLLECTIVE_ALL_GATHER, .algorithm = "ring", .ranks = 3});
  EXPECT_EQ(zc::Schedule::parse(ring.text()).text(), ring.text());
  EXPECT_EQ(ring.info().ranks, 3);
  const auto [verdict, text] = ring.verify();
  EXPECT_NE(verdict.is_proved, 0);
  EXPECT_EQ(text.substr(0, 2), "ok");
  EXPECT_EQ(ring.cost(ZC_NONE, {}).messages_sent, 2U);
  EXPECT_FALSE(zc::algorithms().empty());
  run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
    const std::array<std::int32_t, 1> mine{rank};
    std::array<std::int32_t, 3> all{};
    zc::all_gather(comm, mine, all, {.schedule = ring.get()});
    expect(all == std::array<std::int32_t, 3>{0, 1, 2}, "gathered by the schedule");
  });
}

TEST(CommTwin, splits_into_children) {
  run_ranks(3, [](zc_comm* comm, std::int32_t rank) {
    const zc::Comm child = zc::Comm::split(comm, rank == 1 ? ZC_NONE : 0, -rank);
    expect(static_cast<bool>(child) == (rank != 1), "rank 1 is in no child");
    if (child) expect(child.size() == 2 && child.rank() == (rank == 2 ? 0 : 1), "numbered by key");
  });
}

}  // namespace
