// What a step moves and what a rank keeps, to the byte: formula, engine and counters agree.
#include "support/engine_world.hpp"

#include <gtest/gtest.h>

#include <array>
#include <utility>

namespace zerocomm::test {
namespace {

constexpr std::array<zc_stage, 4> kStages = {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3};
constexpr std::array<zc_placement, 2> kPlacements = {ZC_PLACEMENT_PER_UNIT, ZC_PLACEMENT_FLAT};

// Bytes that gathering one unit's own storage makes a rank receive.
std::size_t bytes_of_gather(const RankEngine& engine, const cli::Manifest& model, std::size_t unit) {
  std::vector<bool> stored(model.tensors.size());
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < engine.info().use_count; ++i) {
    const zc_use_info& use = engine.use(i);
    if (use.unit != unit || use.tensor != use.stored_tensor) continue;
    stored[use.tensor] = true;
    bytes += use.in_tensor.count * zc_dtype_bytes(model.tensors[use.tensor].dtype);
  }
  for (std::size_t buffer = 0; buffer < engine.info().buffer_count; ++buffer) {
    const zc_piece* pieces = nullptr;
    std::size_t count = 0;
    RANK_OK(zc_layout_pieces(engine.layout(), engine.rank(), buffer, &pieces, &count));
    for (std::size_t i = 0; i < count; ++i)
      if (stored[pieces[i].tensor]) bytes -= pieces[i].count * zc_dtype_bytes(model.tensors[pieces[i].tensor].dtype);
  }
  return bytes;
}

// The formula gathers every unit once in a forward and once in a backward pass. A unit with a tied tensor also needs
// the unit that stores it; if nothing is kept, that one is gathered once more.
std::size_t bytes_of_ties(const RankEngine& engine, const cli::Manifest& model) {
  std::size_t bytes = 0;
  for (std::size_t unit = 0; unit < engine.info().unit_count; ++unit) {
    std::vector<bool> needed(engine.info().unit_count);
    for (std::size_t i = 0; i < engine.info().use_count; ++i)
      if (engine.use(i).unit == unit)
        for (std::size_t k = 0; k < engine.info().use_count; ++k)
          if (engine.use(k).tensor == engine.use(i).stored_tensor) needed[engine.use(k).unit] = true;
    for (std::size_t other = 0; other < needed.size(); ++other)
      if (needed[other] && other != unit) bytes += bytes_of_gather(engine, model, other);
  }
  return bytes;
}

struct Traffic {
  std::uint64_t logical = 0, reduced = 0, moved = 0, ties = 0, trainable = 0;
};

// The traffic of one step on every rank.
std::vector<Traffic> traffic_of_step(const WorldSetup& setup, std::size_t passes) {
  std::vector<Traffic> result(static_cast<std::size_t>(setup.ranks));
  run_ranks(setup.ranks, [&](zc_comm* comm, std::int32_t rank) {
    RankEngine engine(comm, setup);
    engine.load();
    zc_zero_stats zero{};
    zero.struct_size = sizeof zero;
    zc_stats stats{};
    stats.struct_size = sizeof stats;
    RANK_OK(zc_zero_get_stats(engine.zero(), &zero));
    RANK_OK(zc_comm_stats(comm, &stats));
    RANK_CHECK(zero.gather_logical_bytes == 0 && zero.reduce_logical_bytes == 0, "loading is no traffic of a step");
    RANK_CHECK(stats.moved_bytes[kNearLink] == 0, "loading moved %llu",
               static_cast<unsigned long long>(stats.moved_bytes[kNearLink]));
    engine.step(0, passes);
    RANK_OK(zc_barrier(comm, nullptr));
    RANK_OK(zc_zero_get_stats(engine.zero(), &zero));
    RANK_OK(zc_comm_stats(comm, &stats));
    Traffic& mine = result[static_cast<std::size_t>(rank)];
    mine.reduced = zero.reduce_logical_bytes;
    mine.logical = zero.gather_logical_bytes + zero.reduce_logical_bytes;
    mine.ties = bytes_of_ties(engine, setup.model);
    mine.trainable = engine.info().trainable_count;
    for (int link = ZC_LINK_SELF + 1; link < ZC_LINK_COUNT_; ++link) mine.moved += stats.moved_bytes[link];
  });
  return result;
}

zc_estimate estimate_of(const WorldSetup& setup, std::int32_t rank, std::size_t passes) {
  zc_layout* layout = make_world_layout(setup);
  zc_estimate_config config{};
  config.struct_size = sizeof config;
  config.micro_steps = static_cast<std::int32_t>(passes);
  config.accumulate_first = setup.zero.accumulation == ZC_ACCUMULATE_FIRST;
  zc_estimate estimate{};
  estimate.struct_size = sizeof estimate;
  RANK_OK(zc_estimate_layout(layout, rank, &config, &estimate));
  zc_layout_destroy(layout);
  return estimate;
}

WorldSetup golden_setup(zc_stage stage, zc_placement placement) {
  WorldSetup setup;
  setup.model = hand_model({{"w", "only", "", 1'048'576, ZC_DTYPE_BF16, false}});
  setup.ranks = 8;
  setup.layout.stage = stage;
  setup.layout.placement = placement;
  setup.zero.drop_released = 1;
  setup.zero.prefetch = ZC_NONE;
  setup.zero.slices = ZC_SLICES_STATIC;
  return setup;
}

void expect_golden(zc_stage stage, std::uint64_t wanted) {
  for (const zc_placement placement : kPlacements) {
    const WorldSetup setup = golden_setup(stage, placement);
    std::uint64_t moved = 0;
    for (const Traffic& rank : traffic_of_step(setup, 1)) {
      EXPECT_EQ(rank.logical, wanted);
      EXPECT_EQ(rank.moved, wanted);
      EXPECT_EQ(rank.reduced, stage == ZC_STAGE_0 ? wanted : 1'835'008u);
      moved += rank.moved;
    }
    EXPECT_EQ(moved, 8 * wanted);
    for (std::int32_t rank = 0; rank < 8; ++rank) EXPECT_EQ(estimate_of(setup, rank, 1).logical_bytes, wanted);
  }
}

TEST(BytesOfAStep, are_3670016_in_stage_1) { expect_golden(ZC_STAGE_1, 3'670'016); }
TEST(BytesOfAStep, are_3670016_in_stage_2) { expect_golden(ZC_STAGE_2, 3'670'016); }
TEST(BytesOfAStep, are_5505024_in_stage_3) { expect_golden(ZC_STAGE_3, 5'505'024); }

// Stage 0 sends reduced gradients in f32: 1,835,008 received in bf16, and 7/8 of 4 MiB written by their reducers.
TEST(BytesOfAStep, are_5505024_in_stage_0) { expect_golden(ZC_STAGE_0, 5'505'024); }

void expect_formula(const WorldSetup& setup, std::size_t passes) {
  std::uint64_t logical = 0, moved = 0, accumulated = 0;
  const std::vector<Traffic> traffic = traffic_of_step(setup, passes);
  for (std::int32_t rank = 0; rank < setup.ranks; ++rank) {
    const Traffic& mine = traffic[static_cast<std::size_t>(rank)];
    const std::size_t ties = setup.layout.stage == ZC_STAGE_3 ? 2 * passes * mine.ties : 0;
    EXPECT_EQ(mine.logical, estimate_of(setup, rank, passes).logical_bytes + ties)
        << setup.model.name << ", rank " << rank << " of " << setup.ranks << ", stage " << setup.layout.stage
        << ", placement " << setup.layout.placement << ", passes " << passes;
    logical += mine.logical, moved += mine.moved;
    // In stage 0 whoever adds a later pass reads every rank's sums before it writes them.
    if (setup.layout.stage == ZC_STAGE_0 && setup.zero.accumulation == ZC_ACCUMULATE_REDUCE_EACH)
      accumulated += (passes - 1) * sizeof(float) * estimate_of(setup, rank, passes).reduce_elements / (2 * passes);
  }
  EXPECT_EQ(moved, logical + accumulated)
      << setup.model.name << ", " << setup.ranks << " ranks, stage " << setup.layout.stage << ", passes " << passes;
}

TEST(BytesOfAStep, agree_with_the_formula_on_every_model) {
  for (const cli::Manifest& model : {data_model("tiny-gpt"), odd_with_short_giant()})
    for (const std::int32_t ranks : {1, 2, 3, 8})
      for (const zc_stage stage : kStages)
        for (const zc_accumulation order : {ZC_ACCUMULATE_REDUCE_EACH, ZC_ACCUMULATE_FIRST})
          for (const std::size_t passes : {std::size_t{1}, std::size_t{2}})
            for (const zc_placement placement : kPlacements) {
              WorldSetup setup;
              setup.model = model;
              setup.ranks = ranks;
              setup.layout.stage = stage;
              setup.layout.placement = placement;
              setup.zero.drop_released = 1;
              setup.zero.prefetch = ZC_NONE;
              setup.zero.slices = ZC_SLICES_STATIC;
              setup.zero.micro_steps = static_cast<std::int32_t>(passes);
              setup.zero.accumulation = order;
              // One copy brings all that an owner has of a unit, with what pads one tensor to the next. At this
              // alignment that is nothing.
              setup.layout.alignment_bytes = 4;
              expect_formula(setup, passes);
            }
}

// The ledger has no moments: they are the caller's.
constexpr std::pair<std::size_t, zc_placement> kCuts[] = {
    {0, ZC_PLACEMENT_PER_UNIT}, {1000, ZC_PLACEMENT_PER_UNIT}, {0, ZC_PLACEMENT_FLAT}, {1000, ZC_PLACEMENT_FLAT}};

TEST(BytesOfState, agree_with_the_formula_on_every_rank) {
  for (const cli::Manifest& model : {data_model("tiny-gpt"), odd_with_short_giant()})
    for (const zc_dtype dtype : {ZC_DTYPE_F32, ZC_DTYPE_BF16})
      for (const zc_dtype gradients : {ZC_DTYPE_NONE, dtype == ZC_DTYPE_F32 ? ZC_DTYPE_BF16 : ZC_DTYPE_F32})
        for (const std::int32_t ranks : {1, 2, 3, 8})
          for (const zc_stage stage : kStages)
            for (const zc_accumulation order : {ZC_ACCUMULATE_REDUCE_EACH, ZC_ACCUMULATE_FIRST})
              for (const std::size_t passes : {std::size_t{1}, std::size_t{3}})
                for (const auto& [bucket_bytes, placement] : kCuts) {
                  WorldSetup setup;
                  setup.model = model;
                  for (cli::ManifestTensor& tensor : setup.model.tensors)
                    if (dtype == ZC_DTYPE_BF16) tensor.dtype = dtype;
                  setup.ranks = ranks;
                  setup.gradient_dtype = gradients;
                  setup.layout.stage = stage;
                  setup.layout.bucket_bytes = bucket_bytes;
                  setup.layout.placement = placement;
                  setup.zero.micro_steps = static_cast<std::int32_t>(passes);
                  setup.zero.accumulation = order;
                  run_ranks(ranks, [&](zc_comm* comm, std::int32_t rank) {
                    const RankEngine engine(comm, setup);
                    zc_zero_ledger ledger{};
                    ledger.struct_size = sizeof ledger;
                    RANK_OK(zc_zero_get_ledger(engine.zero(), &ledger));
                    const zc_estimate estimate = estimate_of(setup, rank, passes);
                    const auto check = [&](const char* what, std::size_t found, std::size_t wanted) {
                      RANK_CHECK(
                          found == wanted,
                          "%s: %s are %zu, by formula %zu; %d ranks, stage %d, order %d, %zu passes, gradients %s",
                          model.name.c_str(), what, found, wanted, ranks, stage, order, passes,
                          zc_dtype_name(gradients));
                    };
                    check("parameters", ledger.parameter_bytes, estimate.parameter_bytes);
                    check("gradients", ledger.gradient_bytes, estimate.gradient_bytes);
                    check("masters", ledger.master_bytes, estimate.master_bytes);
                    check("moments", 8 * engine.state_count(), estimate.moment_bytes);
                    check(
                        "states",
                        ledger.parameter_bytes + ledger.gradient_bytes + ledger.master_bytes + 8 * engine.state_count(),
                        estimate.state_bytes);
                  });
                }
}

}  // namespace
}  // namespace zerocomm::test
