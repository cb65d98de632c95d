// The bytes that ranks move are the same, to the byte, when the ranks are processes: by formula, by definition and as
// counted, whichever way a buffer is reached.
#include "support/child_ranks.hpp"
#include "support/engine_world.hpp"

#include <zerocomm/mem.h>

#include <gtest/gtest.h>

#include <cstdlib>

namespace zerocomm::test {
namespace {

constexpr std::int32_t kRanks = 8;
constexpr std::size_t kElements = 1'048'576;  // of 2 bytes
constexpr std::size_t kEach = kElements / kRanks;

struct Counted {
  std::uint64_t logical = 0, host = 0, network = 0, other = 0, control = 0;

  std::uint64_t moved() const { return host + network; }
};

Counted count(zc_comm* comm) {
  zc_stats stats{};
  stats.struct_size = sizeof stats;
  RANK_OK(zc_comm_stats(comm, &stats));
  Counted result;
  result.logical = stats.logical_bytes;
  result.host = stats.moved_bytes[ZC_LINK_HOST];
  result.network = stats.moved_bytes[ZC_LINK_NETWORK];
  result.other = stats.moved_bytes[ZC_LINK_THREAD];
  result.control = stats.control_logical_bytes;
  for (const std::uint64_t each : stats.control_moved_bytes) result.control += each;
  return result;
}

// Where buffers lie: in memory that all reach, or in the processes' own, which is staged or read.
enum class Way : std::uint8_t { direct, staged, read };
constexpr Way kWays[] = {Way::direct, Way::staged, Way::read};

using Call = std::function<zc_status(zc_comm* comm, std::uint16_t* one, std::uint16_t* other)>;

// One call on every rank; what each counted.
std::vector<Counted> counted(Way way, const char* topology, const Call& call) {
  const SharedArray<Counted> results(kRanks);
  ChildRanks ranks(
      kRanks,
      [&](zc_comm* comm, std::int32_t rank) {
        std::vector<std::uint16_t> own(2 * kElements);
        void* memory = own.data();
        if (way == Way::direct) RANK_OK(zc_mem_alloc(comm, own.size() * sizeof own[0], &memory));
        auto* const data = static_cast<std::uint16_t*>(memory);
        RANK_OK(call(comm, data, data + kElements));
        results[rank] = count(comm);
      },
      {.topology = topology},
      [&](std::int32_t) {
        if (way == Way::staged) setenv("ZC_COPY", "staging", 1);
      });
  expect_ok(ranks.wait(kSlack * 60 * kSecondNs));
  return {results.begin(), results.end()};
}

void expect_bytes(std::uint64_t wanted, const Call& call) {
  for (const Way way : kWays)
    for (const Counted& rank : counted(way, nullptr, call)) {
      EXPECT_EQ(rank.logical, wanted) << "way " << static_cast<int>(way);
      EXPECT_EQ(rank.host, wanted) << "way " << static_cast<int>(way);
      EXPECT_EQ(rank.network + rank.other + rank.control, 0u);
    }
}

TEST(BytesOfProcesses, of_an_all_gather_are_1835008_per_rank) {
  expect_bytes(1'835'008, [](zc_comm* comm, std::uint16_t* one, std::uint16_t* other) {
    return zc_all_gather(comm, one, other, kEach, ZC_DTYPE_BF16, nullptr);
  });
}

TEST(BytesOfProcesses, of_a_reduce_scatter_are_1835008_per_rank) {
  expect_bytes(1'835'008, [](zc_comm* comm, std::uint16_t* one, std::uint16_t* other) {
    return zc_reduce_scatter(comm, one, other, kEach, ZC_DTYPE_BF16, ZC_OP_SUM, nullptr);
  });
}

TEST(BytesOfProcesses, of_an_all_reduce_are_3670016_per_rank) {
  expect_bytes(3'670'016, [](zc_comm* comm, std::uint16_t* one, std::uint16_t* other) {
    return zc_all_reduce(comm, one, other, kElements, ZC_DTYPE_BF16, ZC_OP_SUM, nullptr);
  });
}

TEST(BytesOfProcesses, of_a_broadcast_are_2097152_but_for_the_root) {
  for (const Way way : kWays) {
    const std::vector<Counted> ranks = counted(way, nullptr, [](zc_comm* comm, std::uint16_t* one, std::uint16_t*) {
      return zc_broadcast(comm, one, kElements, ZC_DTYPE_BF16, 3, nullptr);
    });
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      EXPECT_EQ(ranks[rank].logical, rank == 3 ? 0u : 2'097'152u);
      EXPECT_EQ(ranks[rank].host, rank == 3 ? 0u : 2'097'152u);
    }
  }
}

TEST(BytesOfProcesses, between_nodes_are_what_the_other_node_holds) {
  for (const Way way : kWays)
    for (const Counted& rank : counted(way, "a:0-3 b:4-7", [](zc_comm*comm, std::uint16_t*one, std::uint16_t*other) {
           return zc_all_gather(comm, one, other, kEach, ZC_DTYPE_BF16, nullptr);
         })) {
      EXPECT_EQ(rank.moved(), 1'835'008u);
      EXPECT_EQ(rank.network, 1'048'576u);
    }
}

// One step of the engine over one tensor of a million elements.
void expect_step(zc_stage stage, std::uint64_t wanted) {
  slice_of_table(0, ZC_DTYPE_BF16, 1);  // made once for all children
  for (const zc_placement placement : {ZC_PLACEMENT_PER_UNIT, ZC_PLACEMENT_FLAT}) {
    WorldSetup setup;
    setup.model = hand_model({{"w", "only", "", kElements, ZC_DTYPE_BF16, false}});
    setup.ranks = kRanks;
    setup.layout.stage = stage;
    setup.layout.placement = placement;
    setup.zero.drop_released = 1;
    setup.zero.prefetch = ZC_NONE;
    setup.zero.slices = ZC_SLICES_STATIC;
    struct Traffic {
      std::uint64_t logical = 0, reduced = 0, moved = 0;
    };
    const SharedArray<Traffic> traffic(kRanks);
    RankProcesses(kRanks).run([&](zc_comm* comm, std::int32_t rank) {
      RankEngine engine(comm, setup);
      engine.load();
      RANK_CHECK(count(comm).moved() == 0, "loading is no traffic of a step");
      engine.step(0);
      RANK_OK(zc_barrier(comm, nullptr));
      zc_zero_stats zero{};
      zero.struct_size = sizeof zero;
      RANK_OK(zc_zero_get_stats(engine.zero(), &zero));
      const Counted now = count(comm);
      RANK_CHECK(now.network + now.other == 0, "bytes on another link");
      traffic[rank] = {zero.gather_logical_bytes + zero.reduce_logical_bytes, zero.reduce_logical_bytes, now.host};
    });
    for (const Traffic& rank : traffic) {
      EXPECT_EQ(rank.logical, wanted);
      EXPECT_EQ(rank.moved, wanted);
      EXPECT_EQ(rank.reduced, stage == ZC_STAGE_0 ? wanted : 1'835'008u);
    }
  }
}

TEST(BytesOfAStepOfProcesses, are_5505024_in_stage_0) { expect_step(ZC_STAGE_0, 5'505'024); }
TEST(BytesOfAStepOfProcesses, are_3670016_in_stage_1) { expect_step(ZC_STAGE_1, 3'670'016); }
TEST(BytesOfAStepOfProcesses, are_3670016_in_stage_2) { expect_step(ZC_STAGE_2, 3'670'016); }
TEST(BytesOfAStepOfProcesses, are_5505024_in_stage_3) { expect_step(ZC_STAGE_3, 5'505'024); }

}  // namespace
}  // namespace zerocomm::test
