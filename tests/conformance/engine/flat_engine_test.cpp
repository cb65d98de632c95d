// Engines of flat layouts: where parameters lie, who is asked for a unit, and what two ranks may not disagree about.
#include "world.hpp"

namespace {

using namespace zerocomm::test;

// The shards of all ranks lie end to end, buffer by buffer, in one segment.
TEST(FlatEngine, keeps_the_parameter_shards_of_all_ranks_in_one_run_in_stage_3) {
  constexpr std::size_t kRanks = 3;
  const Model model(mixed(), shape(kRanks, ZC_STAGE_3, 0, ZC_PLACEMENT_FLAT));
  std::vector<std::vector<const std::byte*>> shards(kRanks);
  run_ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
    const TestEngine engine(comm, model);
    for (std::size_t buffer = 0; buffer < model.info().buffer_count; ++buffer) {
      void* shard = nullptr;
      std::size_t count = 0;
      RANK_OK(zc_zero_state(engine, ZC_STATE_PARAMETER, buffer, &shard, &count));
      shards[static_cast<std::size_t>(rank)].push_back(static_cast<const std::byte*>(shard));
    }
    RANK_OK(zc_barrier(comm, nullptr));
    if (kSharedMemory) return;  // every rank has the segment at an address of its own
    for (std::size_t buffer = 0; buffer < model.info().buffer_count; ++buffer) {
      zc_buffer_info info{};
      info.struct_size = sizeof info;
      RANK_OK(zc_layout_get_buffer(model.get(), buffer, &info));
      for (std::size_t other = 1; other < kRanks; ++other)
        RANK_CHECK(shards[other][buffer] == shards[0][buffer] + other * info.shard_count * zc_dtype_bytes(info.dtype),
                   "buffer %zu of rank %zu", buffer, other);
    }
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

TEST(FlatEngine, has_no_shards_apart_from_the_replica_in_stage_0) {
  const Model model(mixed(), shape(2, ZC_STAGE_0, 0, ZC_PLACEMENT_FLAT));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    const TestEngine engine(comm, model);
    void* shard = nullptr;
    std::size_t count = 0;
    for (const zc_state state : {ZC_STATE_PARAMETER, ZC_STATE_MASTER, ZC_STATE_GRADIENT})
      RANK_STATUS(ZC_UNSUPPORTED, zc_zero_state(engine, state, 0, &shard, &count));
  });
}

// Two units of 64 elements over two ranks: each has one.
TEST(FlatEngine, reads_a_unit_from_its_owners_alone) {
  const Model model({tensor("a", "u", 64), tensor("b", "v", 64)}, shape(2, ZC_STAGE_3, 0, ZC_PLACEMENT_FLAT));
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    zc_zero_config config = options();
    config.prefetch = ZC_NONE;
    const TestEngine engine(comm, model, config);
    engine.load_all(1);
    const auto moved = [&](zc_link link) {
      zc_stats stats{};
      stats.struct_size = sizeof stats;
      RANK_OK(zc_comm_stats(comm, &stats));
      return stats.moved_bytes[link];
    };
    for (std::size_t unit = 0; unit < 2; ++unit) {
      const bool owner = rank == static_cast<std::int32_t>(unit);
      const std::uint64_t near_before = moved(kNearLink), self_before = moved(ZC_LINK_SELF);
      const std::uint64_t logical_before = engine.stats().gather_logical_bytes;
      RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
      engine.visit(unit, 1);
      RANK_OK(zc_zero_end(engine));
      RANK_CHECK(moved(kNearLink) - near_before == (owner ? 0 : 256), "from the other rank");
      RANK_CHECK(moved(ZC_LINK_SELF) - self_before == (owner ? 256 : 0), "from itself");
      RANK_CHECK(engine.stats().gather_logical_bytes - logical_before == (owner ? 0 : 256), "logical bytes");
    }
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

// Nothing but parameters: no gradients, masters or slots.
TEST(FlatEngine, of_frozen_and_of_empty_models_works) {
  for (const std::size_t count : {std::size_t{70}, std::size_t{0}}) {
    const Model model({frozen(tensor("a", "u", count)), frozen(tensor("b", "v", count, ZC_DTYPE_BF16))},
                      shape(3, ZC_STAGE_3, 0, ZC_PLACEMENT_FLAT));
    run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
      const TestEngine engine(comm, model);
      engine.load_all();
      RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
      for (const std::size_t unit : std::vector<std::size_t>{0, 1}) engine.visit(unit, 0);
      RANK_OK(zc_zero_end(engine));
      engine.update(1);
      engine.check_padding(rank);
    });
  }
}

TEST(FlatEngine, and_one_of_per_unit_placement_are_a_mismatch) {
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    const Model model(mixed(), shape(2, ZC_STAGE_2, 0, rank == 0 ? ZC_PLACEMENT_FLAT : ZC_PLACEMENT_PER_UNIT));
    const zc_zero_config config = options();
    zc_zero* zero = nullptr;
    RANK_STATUS(ZC_MISMATCH, zc_zero_create(comm, model.get(), &config, &zero));
    RANK_ERROR_SAYS("layout hash");
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

}  // namespace
