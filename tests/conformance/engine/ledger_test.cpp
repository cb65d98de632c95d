// What the library says that it holds is what it asked the system for, and it gives all of it back.
#include "allocations.hpp"
#include "world.hpp"

#include <tuple>

namespace {

using namespace zerocomm::test;

std::size_t pages_of(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

zc_ledger ledger_of(zc_comm* comm) {
  zc_ledger ledger{};
  ledger.struct_size = sizeof ledger;
  RANK_OK(zc_comm_ledger(comm, &ledger));
  return ledger;
}

class Ledger : public testing::TestWithParam<std::tuple<zc_stage, zc_placement>> {};

// What the windows of parameters that lie apart have mapped: each buffer whole, once, and a word of every rank.
std::size_t pages_apart(const Model& model, std::size_t* window_count) {
  std::size_t pages = 0;
  for (std::size_t buffer = 0; buffer < model.info().buffer_count; ++buffer) {
    zc_buffer_info info{};
    info.struct_size = sizeof info;
    RANK_OK(zc_layout_get_buffer(model.get(), buffer, &info));
    const auto ranks = static_cast<std::size_t>(model.info().ranks);
    pages += pages_of(ranks * info.shard_count * zc_dtype_bytes(info.dtype)) + ranks * kPage;
  }
  *window_count = model.info().buffer_count;
  return pages;
}

// All memory for data is mapped: per rank a window, its words, and gathered units; once the control segment; in stage 3
// of flat placement the parameters of each buffer, once. The rest is bookkeeping of layouts and machines, which grows
// with tensors, not with elements.
TEST_P(Ledger, equals_what_was_mapped_page_by_page_and_everything_is_returned) {
  constexpr std::int32_t kRanks = 3;
  constexpr std::size_t kBookkeepingBytes = 160 * 1024;  // of a rank, with eleven tensors
  const auto [stage, placement] = GetParam();
  const bool apart = stage == ZC_STAGE_3 && placement == ZC_PLACEMENT_FLAT;
  for (const zc_accumulation accumulation : {ZC_ACCUMULATE_REDUCE_EACH, ZC_ACCUMULATE_FIRST}) {
    const Model model(
        {tensor("a", "u0", 50'000), tensor("b", "u0", 7, ZC_DTYPE_BF16), tensor("c", "u1", 70'001, ZC_DTYPE_BF16),
         frozen(tensor("d", "u2", 12'345)), tied(tensor("e", "u3", 50'000), "a")},
        shape(kRanks, stage, 100'000, placement));
    zc_zero_config config = options();
    config.micro_steps = 2;
    config.accumulation = accumulation;
    const Allocations before = allocations();
    count_allocations(true);
    zc_comm* comms[kRanks] = {};
    ASSERT_EQ(zc_comm_create_threads(kRanks, nullptr, comms), ZC_OK);
    zc_zero* engines[kRanks] = {};
    std::string failures[kRanks];
    const auto on_ranks = [&](auto body) {
      std::thread threads[kRanks];
      for (int rank = 0; rank < kRanks; ++rank)
        threads[rank] = std::thread([&, rank] {
          try {
            body(rank);
          } catch (const std::exception& failure) {
            failures[rank] = failure.what();
          }
        });
      for (std::thread& thread : threads) thread.join();
    };
    on_ranks([&](int rank) { RANK_OK(zc_zero_create(comms[rank], model.get(), &config, &engines[rank])); });
    count_allocations(false);
    const Allocations held = allocations();
    std::size_t apart_count = 0, engines_total_bytes = 0, comms_total_bytes = 0;
    std::size_t ledger_pages = apart ? pages_apart(model, &apart_count) : 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      ASSERT_TRUE(failures[rank].empty()) << failures[rank];
      const zc_ledger comm = ledger_of(comms[rank]);
      zc_zero_ledger engine{};
      engine.struct_size = sizeof engine;
      ASSERT_EQ(zc_zero_get_ledger(engines[rank], &engine), ZC_OK);
      EXPECT_EQ(comm.total_bytes, comm.control_bytes + comm.window_bytes + comm.memory_bytes);
      EXPECT_EQ(engine.total_bytes, engine.parameter_bytes + engine.gradient_bytes + engine.master_bytes +
                                        engine.slot_bytes + engine.gather_bytes + engine.control_bytes);
      // The engine's memory is a window, gathered units and words of its communicator: its ledger says what they are
      // for.
      const std::size_t control_segment_bytes = comm.control_bytes - engine.control_bytes;
      EXPECT_EQ(rank == 0, control_segment_bytes != 0);
      EXPECT_EQ(comm.memory_bytes, engine.gather_bytes);
      const std::size_t in_window_bytes =
          engine.parameter_bytes + engine.gradient_bytes + engine.master_bytes + engine.slot_bytes;
      EXPECT_GE(comm.window_bytes, in_window_bytes);
      EXPECT_LT(comm.window_bytes - in_window_bytes, 64U * 32) << "more than the gaps between aligned places";
      ledger_pages += pages_of(control_segment_bytes) + pages_of(comm.memory_bytes) +
                      pages_of(comm.window_bytes - (apart ? engine.parameter_bytes : 0)) +
                      pages_of(engine.control_bytes - apart_count * sizeof(std::uint64_t));
      comms_total_bytes += comm.total_bytes;
      engines_total_bytes += engine.total_bytes;
    }
    EXPECT_EQ(held.mapped_bytes - before.mapped_bytes, ledger_pages);
    EXPECT_LE(engines_total_bytes, comms_total_bytes);
    EXPECT_LE(held.heap_bytes - before.heap_bytes, kRanks * kBookkeepingBytes);
    // Nothing but the caller's own memory is asked for by a whole step.
    count_allocations(true);
    const Allocations stepping = allocations();
    on_ranks([&](int rank) {
      RANK_OK(zc_zero_begin(engines[rank], "eval", ZC_PHASE_EVAL));
      const void* tensors[2];
      for (std::size_t unit = 0; unit < 4; ++unit) {
        RANK_OK(zc_zero_acquire(engines[rank], unit, tensors, 2, nullptr));
        RANK_OK(zc_zero_release(engines[rank], unit, nullptr));
      }
      RANK_OK(zc_zero_end(engines[rank]));
      RANK_OK(zc_zero_update_begin(engines[rank]));
      RANK_OK(zc_zero_publish(engines[rank], nullptr));
    });
    EXPECT_EQ(allocations().large_bytes, stepping.large_bytes);
    count_allocations(false);
    for (zc_zero* engine : engines) EXPECT_EQ(zc_zero_destroy(engine), ZC_OK);
    for (zc_comm* comm : comms) EXPECT_EQ(ledger_of(comm).window_bytes + ledger_of(comm).memory_bytes, 0U);
    for (zc_comm* comm : comms) EXPECT_EQ(zc_comm_destroy(comm), ZC_OK);
    for (const std::string& failure : failures) EXPECT_TRUE(failure.empty()) << failure;
    EXPECT_EQ(allocations().large_bytes, before.large_bytes);
    // Stacks of the threads above may be kept for the next ones; memory of the library may not.
    EXPECT_EQ(allocations().heap_bytes, before.heap_bytes);
    EXPECT_EQ(allocations().mapped_bytes, before.mapped_bytes);
  }
}
INSTANTIATE_TEST_SUITE_P(StagesAndPlacements, Ledger,
                         testing::Combine(testing::Values(ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3),
                                          testing::Values(ZC_PLACEMENT_PER_UNIT, ZC_PLACEMENT_FLAT)));

TEST(AllocationCounter, sees_a_mapping_and_a_block) {
  count_allocations(true);
  const Allocations before = allocations();
  void* mapped = mmap(nullptr, 5000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* block = new std::vector<char>(5000);
  EXPECT_EQ(allocations().mapped_bytes - before.mapped_bytes, 8192U);
  EXPECT_EQ(allocations().large_bytes - before.large_bytes, 5000U);
  delete block;
  munmap(mapped, 5000);
  EXPECT_EQ(allocations().mapped_bytes, before.mapped_bytes);
  EXPECT_EQ(allocations().heap_bytes, before.heap_bytes);
  count_allocations(false);
}

}  // namespace
