// Parameters read where their owners keep them: no copies, the right generation, and what cannot be had with it.
#include "world.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace {

using namespace zerocomm::test;

zc_zero_config with_views() {
  zc_zero_config config = options();
  config.shared_views = 1;
  return config;
}

Model flat_model(std::int32_t ranks) { return {mixed(), shape(ranks, ZC_STAGE_3, 0, ZC_PLACEMENT_FLAT)}; }

zc_stats stats_of(zc_comm* comm) {
  zc_stats stats{};
  stats.struct_size = sizeof stats;
  RANK_OK(zc_comm_stats(comm, &stats));
  return stats;
}

TEST(Views, move_no_byte_and_take_no_memory) {
  constexpr std::int32_t kRanks = 3;
  const Model model = flat_model(kRanks);
  run_ranks(kRanks, [&](zc_comm* comm, std::int32_t) {
    const TestEngine engine(comm, model, with_views());
    RANK_CHECK(engine.ledger().gather_bytes == 0, "%zu bytes for gathered units", engine.ledger().gather_bytes);
    engine.load_all(1);
    const zc_stats before = stats_of(comm);
    for (int pass = 0; pass < 2; ++pass) {
      RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
      RANK_OK(zc_zero_prefetch(engine, 1));
      for (const std::size_t unit : std::vector<std::size_t>{0, 1, 2}) engine.visit(unit, 1);
      RANK_OK(zc_zero_end(engine));
    }
    const zc_stats after = stats_of(comm);
    for (std::size_t link = 0; link < std::size(after.moved_bytes); ++link)
      RANK_CHECK(after.moved_bytes[link] == before.moved_bytes[link], "link %zu", link);
    const zc_zero_stats stats = engine.stats();
    RANK_CHECK(stats.views == 6 && stats.misses == 0 && stats.hits == 0 && stats.gathered_peak_bytes == 0,
               "%llu views, %llu misses", static_cast<unsigned long long>(stats.views),
               static_cast<unsigned long long>(stats.misses));
    RANK_CHECK(stats.gather_logical_bytes == 0, "logical bytes");
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

// A tied tensor is where its owner is, and every rank of a process sees one address.
TEST(Views, are_of_one_place) {
  constexpr std::int32_t kRanks = 2;
  const Model model = flat_model(kRanks);
  std::vector<std::vector<const void*>> seen(kRanks);
  run_ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
    const TestEngine engine(comm, model, with_views());
    engine.load_all(1);
    RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
    for (const std::size_t unit : std::vector<std::size_t>{0, 2}) {
      const void* tensors[2] = {};
      RANK_OK(zc_zero_acquire(engine, unit, tensors, 2, nullptr));
      seen[static_cast<std::size_t>(rank)].insert(seen[static_cast<std::size_t>(rank)].end(), tensors, tensors + 2);
      RANK_OK(zc_zero_release(engine, unit, nullptr));
    }
    RANK_OK(zc_zero_end(engine));
    RANK_OK(zc_barrier(comm, nullptr));
  });
  EXPECT_EQ(seen[0][0], seen[0][2]);
  if (kSharedMemory) return;  // every rank has the segment at an address of its own
  EXPECT_EQ(seen[0], seen[1]);
}

// The owner's update waits for a rank that still reads.
TEST(Views, stay_as_they_are_until_they_are_released) {
  const Model model({tensor("a", "u", 64)}, shape(2, ZC_STAGE_3, 0, ZC_PLACEMENT_FLAT));
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    const TestEngine engine(comm, model, with_views());
    engine.load_all(1);
    if (rank == 1) {
      RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
      const void* tensors[1] = {};
      RANK_OK(zc_zero_acquire(engine, 0, tensors, 1, nullptr));
      RANK_OK(zc_barrier(comm, nullptr));
      const auto* const values = static_cast<const float*>(tensors[0]);
      const std::vector<float> before(values, values + 64);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      RANK_CHECK(std::equal(before.begin(), before.end(), values), "the owner wrote while it was read");
      RANK_OK(zc_zero_release(engine, 0, nullptr));
      RANK_OK(zc_zero_end(engine));
    } else {
      RANK_OK(zc_barrier(comm, nullptr));
    }
    engine.update(2);
    RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
    engine.visit(0, 2);  // waits for both owners
    RANK_OK(zc_zero_end(engine));
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

TEST(Views, are_refused_where_they_cannot_be_had) {
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    zc_zero* zero = nullptr;
    const auto refused = [&](const Model& model, const zc_zero_config& config, zc_status status, const char* text) {
      RANK_STATUS(status, zc_zero_create(comm, model.get(), &config, &zero));
      RANK_ERROR_SAYS(text);
    };
    refused(
        Model(mixed(), shape(2, ZC_STAGE_2, 0, ZC_PLACEMENT_FLAT)), with_views(), ZC_UNSUPPORTED,
        "zc_zero_config.shared_views needs stage 3, flat placement and shards of the library; this is stage 2, flat");
    refused(Model(mixed(), shape(2, ZC_STAGE_3)), with_views(), ZC_UNSUPPORTED, "this is stage 3, per-unit placement");
    zc_zero_config config = with_views();
    config.prefetch = 2;
    refused(flat_model(2), config, ZC_ARGUMENT, "zc_zero_config.prefetch is about gathered units");
    config = with_views();
    config.max_held_bytes = 1000;
    refused(flat_model(2), config, ZC_ARGUMENT, "zc_zero_config.max_held_bytes is about gathered units");
    config = with_views();
    config.drop_released = 1;
    refused(flat_model(2), config, ZC_ARGUMENT, "zc_zero_config.drop_released is about gathered units");
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

TEST(Views, of_one_rank_alone_are_a_mismatch) {
  const Model model = flat_model(2);
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    const zc_zero_config config = rank == 0 ? with_views() : options();
    zc_zero* zero = nullptr;
    RANK_STATUS(ZC_MISMATCH, zc_zero_create(comm, model.get(), &config, &zero));
    RANK_ERROR_SAYS("shared_views is 1 on rank 0 and 0 on rank 1");
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

}  // namespace
