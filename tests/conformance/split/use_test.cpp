// Work on several communicators of one family: grids, threads, engines, and ends in any order.
#include "split/child.hpp"
#include "support/engine_world.hpp"
#include "support/window_of_rank.hpp"

#include <atomic>

namespace zerocomm::test {
namespace {

// rows * columns ranks: sums along rows and columns in turn, with sizes that move directly and by staging.
void run_grid(std::int32_t rows, std::int32_t columns) {
  run_ranks(rows * columns, [&](zc_comm* comm, std::int32_t rank) {
    const std::int32_t row = rank / columns, column = rank % columns;
    const Child tensor(comm, row, column), data(comm, column, row);
    RANK_CHECK(rank_in(tensor) == column && rank_in(data) == row, "ranks");
    std::vector<std::int64_t> values(1000);
    for (int turn = 0; turn < 10; ++turn) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = rank + turn + static_cast<std::int64_t>(i);
      const auto sum = [&](zc_comm* along) {
        RANK_OK(zc_all_reduce(along, values.data(), values.data(), values.size(), ZC_DTYPE_I64, ZC_OP_SUM, nullptr));
      };
      sum(turn % 2 == 0 ? tensor : data);
      sum(turn % 2 == 0 ? data : tensor);
      const std::int64_t all = rows * columns;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int64_t wanted = all * (all - 1) / 2 + all * (turn + static_cast<std::int64_t>(i));
        RANK_CHECK(values[i] == wanted, "element %zu is %lld", i, static_cast<long long>(values[i]));
      }
      if (turn % 4 == 3) RANK_OK(zc_barrier(comm, nullptr));
    }
  });
}

TEST(SplitGrid, of_two_by_two_sums_in_both_directions) { run_grid(2, 2); }
TEST(SplitGrid, of_two_by_three_sums_in_both_directions) { run_grid(2, 3); }

// Each thread of a rank has a communicator of its own, made beforehand by one thread.
TEST(SplitThreads, of_eight_split_and_use_their_own_communicators_at_once) {
  constexpr std::int32_t kRanks = 2;
  constexpr std::size_t kThreads = 8;
  run_ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
    std::vector<Child> own;
    for (std::size_t i = 0; i < kThreads; ++i) own.emplace_back(comm, 0, 0);
    std::vector<std::string> failures(kThreads);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        try {
          for (int turn = 0; turn < 5; ++turn) {
            const Child turned(own[i], static_cast<std::int32_t>(i), -rank);
            check_members(turned, rank, {1, 0});
            const Child alone(turned, rank, 0);
            check_members(alone, rank, {rank});
            check_members(own[i], rank, {0, 1});
          }
        } catch (const std::exception& failure) {
          failures[i] = failure.what();
          zc_comm_abort(own[i]);
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& failure : failures) RANK_CHECK(failure.empty(), "%s", failure.c_str());
  });
}

WorldSetup small_setup(std::int32_t ranks, zc_stage stage, std::uint64_t seed) {
  WorldSetup setup;
  const auto tensor = [](const char* name, std::size_t count, const char* unit) {
    cli::ManifestTensor result;
    result.name = name;
    result.count = count;
    result.dtype = ZC_DTYPE_F32;
    result.unit = unit;
    return result;
  };
  setup.model = hand_model({tensor("a", 1001, "u0"), tensor("b", 77, "u1"), tensor("c", 4096, "u1")});
  setup.ranks = ranks;
  setup.layout.stage = stage;
  setup.seed = seed;
  setup.clip = 1;
  return setup;
}

constexpr std::size_t kSteps = 3;

std::uint64_t train_on(zc_comm* comm, const WorldSetup& setup) {
  RankEngine engine(comm, setup);
  engine.load();
  for (std::size_t step = 0; step < kSteps; ++step) engine.step(step);
  return engine.digest();
}

class SplitEngines : public testing::TestWithParam<zc_stage> {};

// One on the parent, one on each child; steps interleave, and all come to the bits that each has alone.
TEST_P(SplitEngines, on_parent_and_child_and_two_on_one_child_train_as_alone) {
  const WorldSetup whole = small_setup(4, GetParam(), 1), half = small_setup(2, GetParam(), 2),
                   more = small_setup(2, GetParam(), 3);
  const std::uint64_t whole_alone = train_world(whole, kSteps).parameters,
                      half_alone = train_world(half, kSteps).parameters,
                      more_alone = train_world(more, kSteps).parameters;
  ASSERT_NE(half_alone, more_alone);
  run_ranks(4, [&](zc_comm* comm, std::int32_t rank) {
    const Child child(comm, rank / 2, -rank);
    RankEngine above(comm, whole), one(child, half), two(child, more);
    for (RankEngine* engine : {&above, &one, &two}) engine->load();
    for (std::size_t step = 0; step < kSteps; ++step) {
      one.step(step);
      above.step(step);
      two.step(step);
    }
    RANK_CHECK(above.digest() == whole_alone, "the engine on the parent");
    RANK_CHECK(one.digest() == half_alone && two.digest() == more_alone, "the engines on the child");
  });
}

// On a thread each, at the same time.
TEST_P(SplitEngines, on_parent_and_child_train_on_threads_of_their_own) {
  const WorldSetup whole = small_setup(4, GetParam(), 1), half = small_setup(2, GetParam(), 2);
  const std::uint64_t whole_alone = train_world(whole, kSteps).parameters,
                      half_alone = train_world(half, kSteps).parameters;
  run_ranks(4, [&](zc_comm* comm, std::int32_t rank) {
    const Child child(comm, rank % 2, 0);
    std::string failure;
    std::thread thread([&] {
      try {
        RANK_CHECK(train_on(child, half) == half_alone, "the engine on the child");
      } catch (const std::exception& found) {
        failure = found.what();
        zc_comm_abort(child);
      }
    });
    std::uint64_t digest = 0;
    try {
      digest = train_on(comm, whole);
    } catch (...) {
      zc_comm_abort(comm);
      thread.join();
      throw;
    }
    thread.join();
    RANK_CHECK(failure.empty(), "%s", failure.c_str());
    RANK_CHECK(digest == whole_alone, "the engine on the parent");
  });
}
INSTANTIATE_TEST_SUITE_P(Stages, SplitEngines, testing::Values(ZC_STAGE_0, ZC_STAGE_2, ZC_STAGE_3));

TEST(SplitLifetime, of_a_child_goes_on_when_the_parent_is_gone) {
  const WorldSetup setup = small_setup(2, ZC_STAGE_3, 4);
  const std::uint64_t alone = train_world(setup, kSteps).parameters;
  RankThreads ranks(4);
  ranks.run([&](zc_comm* comm, std::int32_t rank) {
    const Child child(comm, rank / 2, 0);
    const WindowOfRank before(child, 100);
    std::memset(before.part<char>(rank % 2), rank + 1, 100);
    ranks.destroy(rank);
    RANK_OK(zc_barrier(child, nullptr));
    RANK_CHECK(before.part<char>(1 - rank % 2)[99] == (rank ^ 1) + 1, "the window lost its memory");
    const WindowOfRank after(child, 5000);
    void* memory = nullptr;
    RANK_OK(zc_mem_alloc(child, 3000, &memory));
    const WindowOfRank over(child, 3000, 1, memory);
    zc_ledger ledger{};
    ledger.struct_size = sizeof ledger;
    RANK_OK(zc_comm_ledger(child, &ledger));
    RANK_CHECK(ledger.window_bytes == 5100 && ledger.memory_bytes == 3000, "%zu and %zu bytes", ledger.window_bytes,
               ledger.memory_bytes);
    RANK_CHECK(train_on(child, setup) == alone, "the engine");
    const Child grandchild(child, 0, -rank);
    check_members(grandchild, rank, {rank | 1, rank & ~1});
  });
}

TEST(SplitLifetime, of_a_parent_goes_on_when_its_children_are_gone_or_partly_gone) {
  run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
    for (int turn = 0; turn < 20; ++turn) {
      Child child(comm, 0, 0);
      check_members(child, rank, {0, 1, 2});
      if (rank == turn % 3) child.destroy();
      check_members(comm, rank, {0, 1, 2});
      if (rank != turn % 3) {
        RANK_STATUS(ZC_PEER_LOST, zc_barrier(child, nullptr));
        RANK_ERROR_SAYS(format("rank %d has destroyed its communicator", turn % 3));
      }
      check_members(comm, rank, {0, 1, 2});
    }
  });
}

TEST(SplitLedger, counts_the_child_apart) {
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    zc_ledger before{}, after{}, child_now{};
    before.struct_size = after.struct_size = child_now.struct_size = sizeof before;
    RANK_OK(zc_barrier(comm, nullptr));
    const Child first(comm, 0, 0);  // what the parent maps for its first call is there now
    RANK_OK(zc_comm_ledger(comm, &before));
    const Child child(comm, 0, 0);
    RANK_OK(zc_comm_ledger(comm, &after));
    RANK_OK(zc_comm_ledger(child, &child_now));
    RANK_CHECK(before.total_bytes == after.total_bytes, "%zu bytes became %zu", before.total_bytes, after.total_bytes);
    RANK_CHECK(child_now.total_bytes >= (rank == 0 ? 131072U : 0U), "%zu bytes", child_now.total_bytes);
    zc_stats stats{};
    stats.struct_size = sizeof stats;
    RANK_OK(zc_comm_stats(comm, &stats));
    RANK_CHECK(stats.logical_bytes == 0 && stats.control_logical_bytes > 0, "a split is control");
    RANK_OK(zc_comm_stats(child, &stats));
    RANK_CHECK(stats.collectives == 0 && stats.control_logical_bytes == 0, "counters of a fresh child");
  });
}

}  // namespace
}  // namespace zerocomm::test
