// The bytes that collectives move, exactly: by definition (logical) and as counted where a peer's memory is touched
// (moved).
#include "support/exact_data.hpp"
#include "support/rank_threads.hpp"

#include <zerocomm/coll.h>

#include <gtest/gtest.h>

#include <array>
#include <functional>

namespace zerocomm::test {
namespace {

constexpr std::size_t kElements = 1'048'576;  // P, of 2 bytes
constexpr std::int32_t kRanks = 8;

struct Counted {
  std::uint64_t logical = 0, moved = 0, network = 0, control_logical = 0, control_moved = 0;
};

Counted count(zc_comm* comm) {
  zc_stats stats{};
  stats.struct_size = sizeof stats;
  RANK_OK(zc_comm_stats(comm, &stats));
  Counted result;
  result.logical = stats.logical_bytes;
  result.control_logical = stats.control_logical_bytes;
  result.network = stats.moved_bytes[ZC_LINK_NETWORK];
  for (int link = ZC_LINK_SELF + 1; link < ZC_LINK_COUNT_; ++link) {
    result.moved += stats.moved_bytes[link];
    result.control_moved += stats.control_moved_bytes[link];
  }
  return result;
}

// Runs `body` on `ranks` ranks; what each counted.
std::vector<Counted> counted(std::int32_t ranks, const char* topology, const RankThreads::Body& body) {
  std::vector<Counted> result(static_cast<std::size_t>(ranks));
  run_ranks(ranks,
            [&](zc_comm* comm, std::int32_t rank) {
              body(comm, rank);
              result[static_cast<std::size_t>(rank)] = count(comm);
            },
            {.topology = topology});
  return result;
}

TEST(GoldenBytes, of_reduce_scatter_and_all_gather_are_1835008_per_rank) {
  for (const bool gather : {false, true}) {
    for (const Counted& rank : counted(kRanks, nullptr, [&](zc_comm*comm, std::int32_t) {
           const std::size_t each = kElements / kRanks;
           std::vector<std::uint16_t> few(each), all(kElements);
           if (gather)
             RANK_OK(zc_all_gather(comm, few.data(), all.data(), each, ZC_DTYPE_BF16, nullptr));
           else
             RANK_OK(zc_reduce_scatter(comm, all.data(), few.data(), each, ZC_DTYPE_BF16, ZC_OP_SUM, nullptr));
         })) {
      EXPECT_EQ(rank.logical, 1'835'008u);
      EXPECT_EQ(rank.moved, 1'835'008u);
      EXPECT_EQ(rank.control_logical + rank.control_moved, 0u);
    }
  }
}

TEST(GoldenBytes, of_all_reduce_are_3670016_per_rank) {
  for (const Counted& rank : counted(kRanks, nullptr, [&](zc_comm*comm, std::int32_t) {
         std::vector<std::uint16_t> send(kElements), recv(kElements);
         RANK_OK(zc_all_reduce(comm, send.data(), recv.data(), kElements, ZC_DTYPE_BF16, ZC_OP_SUM, nullptr));
       })) {
    EXPECT_EQ(rank.logical, 3'670'016u);
    EXPECT_EQ(rank.moved, 3'670'016u);
  }
}

TEST(GoldenBytes, between_nodes_are_what_the_other_node_holds) {
  for (const Counted& rank : counted(kRanks, "a:0-3 b:4-7", [&](zc_comm*comm, std::int32_t) {
         const std::size_t each = kElements / kRanks;
         std::vector<std::uint16_t> few(each), all(kElements);
         RANK_OK(zc_all_gather(comm, few.data(), all.data(), each, ZC_DTYPE_BF16, nullptr));
       })) {
    EXPECT_EQ(rank.moved, 1'835'008u);
    EXPECT_EQ(rank.network, 1'048'576u);
  }
}

// Uneven shares, other output types, odd counts: the sums over ranks follow from the definition.
TEST(GoldenBytes, summed_over_ranks_agree_with_the_formula) {
  for (const std::int32_t ranks : {1, 2, 3, 5, 8}) {
    const auto p = static_cast<std::uint64_t>(ranks);
    const auto expect_sums = [&](std::uint64_t wanted, const RankThreads::Body& body) {
      std::uint64_t logical = 0, moved = 0;
      for (const Counted& rank : counted(ranks, nullptr, body)) logical += rank.logical, moved += rank.moved;
      EXPECT_EQ(logical, wanted) << ranks << " ranks";
      EXPECT_EQ(moved, wanted) << ranks << " ranks";
    };
    constexpr std::size_t kCount = 10007;
    zc_coll_options to_f32{};
    to_f32.struct_size = sizeof to_f32;
    to_f32.output_dtype = ZC_DTYPE_F32;
    // Every element is read by its owner p-1 times as bf16 and written to p-1 others as f32.
    expect_sums((p - 1) * kCount * (2 + 4), [&](zc_comm* comm, std::int32_t) {
      std::vector<std::uint16_t> send(kCount);
      std::vector<float> recv(kCount);
      RANK_OK(zc_all_reduce(comm, send.data(), recv.data(), kCount, ZC_DTYPE_BF16, ZC_OP_AVG, &to_f32));
    });
    std::vector<std::size_t> counts(p, 0);
    for (std::size_t r = 1; r < p; ++r) counts[r] = 100 * r + 1;
    std::uint64_t total = 0;
    for (const std::size_t each : counts) total += each;
    expect_sums((p - 1) * total * 8, [&](zc_comm* comm, std::int32_t rank) {
      std::vector<double> all(total), few(counts[static_cast<std::size_t>(rank)]);
      RANK_OK(zc_reduce_scatter_v(comm, all.data(), few.data(), counts.data(), ZC_DTYPE_F64, ZC_OP_MAX, nullptr));
    });
    expect_sums((p - 1) * total * 8, [&](zc_comm* comm, std::int32_t rank) {
      std::vector<double> all(total), few(counts[static_cast<std::size_t>(rank)]);
      RANK_OK(zc_all_gather_v(comm, few.data(), all.data(), counts.data(), ZC_DTYPE_F64, nullptr));
    });
    expect_sums((p - 1) * kCount, [&](zc_comm* comm, std::int32_t) {
      std::vector<std::uint8_t> data(kCount);
      RANK_OK(zc_broadcast(comm, data.data(), kCount, ZC_DTYPE_U8, 0, nullptr));
      RANK_OK(zc_barrier(comm, nullptr));
    });
  }
}

TEST(GoldenBytes, of_control_traffic_are_booked_apart) {
  for (const Counted& rank : counted(4, nullptr, [&](zc_comm*comm, std::int32_t) {
         zc_coll_options options{};
         options.struct_size = sizeof options;
         options.traffic = ZC_TRAFFIC_CONTROL;
         std::int64_t data[4] = {};
         RANK_OK(zc_all_reduce(comm, data, data, 4, ZC_DTYPE_I64, ZC_OP_SUM, &options));
       })) {
    EXPECT_EQ(rank.logical + rank.moved, 0u);
    EXPECT_EQ(rank.control_logical, 48u);
    EXPECT_EQ(rank.control_moved, 48u);
  }
}

TEST(GoldenBytes, count_calls_and_start_again_after_a_reset) {
  run_ranks(2, [](zc_comm* comm, std::int32_t) {
    zc_stats stats{};
    stats.struct_size = sizeof stats;
    for (int turn = 0; turn < 5; ++turn) RANK_OK(zc_barrier(comm, nullptr));
    RANK_OK(zc_comm_stats(comm, &stats));
    RANK_CHECK(stats.collectives == 5, "%llu", static_cast<unsigned long long>(stats.collectives));
    RANK_OK(zc_comm_stats_reset(comm));
    RANK_OK(zc_comm_stats(comm, &stats));
    RANK_CHECK(stats.collectives == 0 && stats.sleeps == 0, "not zero");
  });
}

}  // namespace
}  // namespace zerocomm::test
