// One-sided sums over windows, in all their forms.
#include "support/exact_data.hpp"
#include "support/rank_threads.hpp"
#include "support/window_of_rank.hpp"

#include <zerocomm/coll.h>

#include <gtest/gtest.h>

#include <array>

namespace zerocomm::test {
namespace {

constexpr std::int32_t kRanks = 3;
constexpr std::size_t kCount = 1500;
using Offsets = std::array<std::int64_t, kRanks>;

// Every rank's part holds kCount f32 values v(rank, i) = 1 + rank + i, then kCount elements to write to.
float value(std::int32_t rank, std::size_t i) { return static_cast<float>(1 + static_cast<std::size_t>(rank) + i); }
constexpr std::size_t kResultByte = kCount * sizeof(float);

zc_window_reduction reduction_of(const Offsets& sources, std::int32_t destination, std::size_t destination_bytes) {
  zc_window_reduction reduction{};
  reduction.struct_size = sizeof reduction;
  reduction.source_bytes = sources.data();
  reduction.count = kCount;
  reduction.dtype = ZC_DTYPE_F32;
  reduction.destination = destination;
  reduction.destination_bytes = destination_bytes;
  return reduction;
}

// Fills the window, has rank 1 reduce, and checks element i of rank r's result on every rank.
void run(zc_window_reduction reduction, float (*wanted)(std::int32_t rank, std::size_t i)) {
  run_ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
    const WindowOfRank window(comm, 2 * kResultByte);
    auto* part = window.part<float>(rank);
    for (std::size_t i = 0; i < kCount; ++i) part[i] = value(rank, i), part[kCount + i] = 1000.0f;
    RANK_OK(zc_barrier(comm, nullptr));
    if (rank == 1) RANK_OK(zc_window_reduce(window.get(), &reduction));
    RANK_OK(zc_barrier(comm, nullptr));
    const std::size_t first = reduction.destination_bytes / sizeof(float);
    for (std::size_t i = 0; i < kCount; ++i)
      RANK_CHECK(part[first + i] == wanted(rank, i), "element %zu is %g, not %g", i,
                 static_cast<double>(part[first + i]), static_cast<double>(wanted(rank, i)));
  });
}

TEST(WindowReduce, stores_the_ordered_sum_at_one_rank) {
  const Offsets all{};
  run(reduction_of(all, 2, kResultByte),
      [](std::int32_t rank, std::size_t i) { return rank == 2 ? value(0, i) + value(1, i) + value(2, i) : 1000.0f; });
}

TEST(WindowReduce, stores_the_same_sum_at_every_rank) {
  const Offsets all{};
  run(reduction_of(all, ZC_NONE, kResultByte),
      [](std::int32_t, std::size_t i) { return value(0, i) + value(1, i) + value(2, i); });
}

TEST(WindowReduce, takes_an_absent_source_for_zeros) {
  const Offsets some = {0, ZC_NONE, 0};
  run(reduction_of(some, 0, kResultByte),
      [](std::int32_t rank, std::size_t i) { return rank == 0 ? value(0, i) + value(2, i) : 1000.0f; });
  const Offsets none = {ZC_NONE, ZC_NONE, ZC_NONE};
  run(reduction_of(none, 0, kResultByte), [](std::int32_t rank, std::size_t) { return rank == 0 ? 0.0f : 1000.0f; });
}

TEST(WindowReduce, adds_to_what_is_there_before_it_divides) {
  const Offsets all{};
  zc_window_reduction reduction = reduction_of(all, 1, kResultByte);
  reduction.accumulate = 1;
  run(reduction, [](std::int32_t rank, std::size_t i) {
    return rank == 1 ? 1000.0f + (value(0, i) + value(1, i) + value(2, i)) : 1000.0f;
  });
  reduction.divisor = 7.0;
  run(reduction, [](std::int32_t rank, std::size_t i) {
    return rank == 1 ? (1000.0f + (value(0, i) + value(1, i) + value(2, i))) / 7.0f : 1000.0f;
  });
}

TEST(WindowReduce, divides_once_after_the_sum) {
  const Offsets all{};
  zc_window_reduction reduction = reduction_of(all, 1, kResultByte);
  reduction.divisor = 7.0;
  run(reduction, [](std::int32_t rank, std::size_t i) {
    return rank == 1 ? (value(0, i) + value(1, i) + value(2, i)) / 7.0f : 1000.0f;
  });
}

TEST(WindowReduce, may_write_over_one_of_its_sources) {
  const Offsets all{};
  run(reduction_of(all, 0, 0), [](std::int32_t rank, std::size_t i) {
    return rank == 0 ? value(0, i) + value(1, i) + value(2, i) : value(rank, i);
  });
  run(reduction_of(all, ZC_NONE, 0),
      [](std::int32_t, std::size_t i) { return value(0, i) + value(1, i) + value(2, i); });
}

TEST(WindowReduce, reads_bf16_and_stores_f32_in_another_window_and_books_both_ways) {
  run_ranks(4,
            [](zc_comm* comm, std::int32_t rank) {
              const WindowOfRank from(comm, 2 * kCount + 64), to(comm, 4 * kCount);
              auto* part = from.part<std::uint16_t>(rank) + 8 * rank;  // another offset on every rank
              for (std::size_t i = 0; i < kCount; ++i)
                part[i] = bf16_from_float(static_cast<float>(exact_element(rank, i)));
              RANK_OK(zc_barrier(comm, nullptr));
              RANK_OK(zc_comm_stats_reset(comm));
              if (rank == 1) {
                const std::array<std::int64_t, 4> sources = {0, 16, 32, 48};
                zc_window_reduction reduction{};
                reduction.struct_size = sizeof reduction;
                reduction.source_bytes = sources.data();
                reduction.count = kCount;
                reduction.dtype = ZC_DTYPE_BF16;
                reduction.output_dtype = ZC_DTYPE_F32;
                reduction.destination = 2;
                reduction.to = to.get();
                RANK_OK(zc_window_reduce(from.get(), &reduction));
              }
              RANK_OK(zc_barrier(comm, nullptr));
              for (std::size_t i = 0; i < kCount; ++i)
                RANK_CHECK(static_cast<double>(to.part<float>(2)[i]) == exact_sum(4, i), "element %zu", i);
              zc_stats stats{};
              stats.struct_size = sizeof stats;
              RANK_OK(zc_comm_stats(comm, &stats));
              // Rank 1 shares a node with rank 0; it reads two far parts and writes one of twice the bytes.
              const std::uint64_t each = rank == 1 ? 2 * kCount : 0;
              RANK_CHECK(stats.moved_bytes[ZC_LINK_SELF] == each && stats.moved_bytes[kNearLink] == each, "near");
              RANK_CHECK(stats.moved_bytes[ZC_LINK_NETWORK] == 4 * each, "far: %llu",
                         static_cast<unsigned long long>(stats.moved_bytes[ZC_LINK_NETWORK]));
              RANK_OK(zc_barrier(comm, nullptr));
            },
            {.topology = "a:0-1 b:2-3"});
}

TEST(WindowReduce, refuses_what_cannot_be_done_and_writes_nothing) {
  run_ranks(kRanks, [](zc_comm* comm, std::int32_t rank) {
    const WindowOfRank window(comm, 2 * kResultByte);
    RANK_OK(zc_barrier(comm, nullptr));
    if (rank == 0) {
      const Offsets all{};
      const zc_window_reduction good = reduction_of(all, 0, kResultByte);
      const auto refused = [&](zc_status status, auto&& change) {
        zc_window_reduction bad = good;
        change(bad);
        RANK_STATUS(status, zc_window_reduce(window.get(), &bad));
      };
      refused(ZC_ARGUMENT, [](auto& r) { r.source_bytes = nullptr; });
      refused(ZC_ARGUMENT, [](auto& r) { r.count = kCount + 1; });
      refused(ZC_OVERFLOW, [](auto& r) { r.count = SIZE_MAX / 2; });
      refused(ZC_ARGUMENT, [](auto& r) { r.destination = kRanks; });
      refused(ZC_ARGUMENT, [](auto& r) { r.destination = -2; });
      refused(ZC_ARGUMENT, [](auto& r) { r.dtype = ZC_DTYPE_NONE; });
      refused(ZC_UNSUPPORTED, [](auto& r) { r.output_dtype = ZC_DTYPE_F64; });
      refused(ZC_UNSUPPORTED, [](auto& r) { r.dtype = ZC_DTYPE_F8E4M3; });
      refused(ZC_ARGUMENT, [](auto& r) { r.dtype = ZC_DTYPE_I32, r.divisor = 2; });
      refused(ZC_ALIGNMENT, [](auto& r) { r.destination_bytes = kResultByte - 2; });
      const Offsets odd = {0, 2, 0}, negative = {0, -7, 0};
      refused(ZC_ALIGNMENT, [&](auto& r) { r.source_bytes = odd.data(); });
      refused(ZC_ARGUMENT, [&](auto& r) { r.source_bytes = negative.data(); });
    }
    RANK_OK(zc_barrier(comm, nullptr));
    for (std::size_t i = 0; i < 2 * kCount; ++i)
      RANK_CHECK(window.part<float>(rank)[i] == 0, "element %zu was written", i);
  });
}

TEST(WindowReduce, refuses_a_destination_in_a_window_of_another_communicator) {
  RankThreads three(kRanks), one(1);
  three.run([&](zc_comm* comm, std::int32_t rank) {
    const WindowOfRank window(comm, 2 * kResultByte);
    if (rank == 0) {
      const WindowOfRank stranger(one.comm(0), 2 * kResultByte);
      const Offsets all{};
      zc_window_reduction reduction = reduction_of(all, 0, 0);
      reduction.to = stranger.get();
      RANK_STATUS(ZC_ARGUMENT, zc_window_reduce(window.get(), &reduction));
    }
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

}  // namespace
}  // namespace zerocomm::test
