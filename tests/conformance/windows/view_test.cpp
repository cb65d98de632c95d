// Views of contiguous windows: all parts, nothing moved, and calls that do not fit.
#include "support/child_ranks.hpp"
#include "support/rank_threads.hpp"

#include <zerocomm/zerocomm.h>

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace zerocomm::test {
namespace {

zc_window* contiguous(zc_comm* comm, std::size_t bytes) {
  zc_window_config config{};
  config.struct_size = sizeof config;
  config.bytes = bytes;
  config.contiguous = 1;
  zc_window* window = nullptr;
  RANK_OK(zc_window_create(comm, &config, &window));
  return window;
}

std::uint64_t moved(zc_comm* comm) {
  zc_stats stats{};
  stats.struct_size = sizeof stats;
  RANK_OK(zc_comm_stats(comm, &stats));
  std::uint64_t bytes = stats.logical_bytes;
  for (const std::uint64_t of_link : stats.moved_bytes) bytes += of_link;
  return bytes;
}

// Three rounds of: write the own part, see all, agree that all have seen.
void check_views(zc_comm* comm, std::int32_t rank) {
  std::int32_t ranks = 0;
  RANK_OK(zc_comm_size(comm, &ranks));
  const auto bytes_of = [](std::int32_t of) { return static_cast<std::size_t>(of) * 40; };  // rank 0 has none
  zc_window* const window = contiguous(comm, bytes_of(rank));
  const std::uint64_t before = moved(comm);
  for (int round = 0; round < 3; ++round) {
    void* own = nullptr;
    std::size_t own_bytes = 0;
    RANK_OK(zc_window_ptr(window, rank, &own, &own_bytes));
    if (own_bytes != 0) std::memset(own, 16 * round + rank, own_bytes);
    const void* all = nullptr;
    std::size_t all_bytes = 0;
    RANK_OK(zc_window_view(window, &all, &all_bytes, nullptr));
    RANK_CHECK(all_bytes == bytes_of(ranks) * static_cast<std::size_t>(ranks - 1) / 2, "%zu bytes", all_bytes);
    const auto* at = static_cast<const unsigned char*>(all);
    for (std::int32_t peer = 0; peer < ranks; ++peer)
      for (std::size_t i = 0; i < bytes_of(peer); ++i, ++at)
        RANK_CHECK(*at == 16 * round + peer, "round %d: byte %zu of rank %d is %d", round, i, peer, *at);
    RANK_OK(zc_barrier(comm, nullptr));
  }
  RANK_CHECK(moved(comm) == before, "%llu bytes were moved", static_cast<unsigned long long>(moved(comm) - before));
  RANK_OK(zc_window_destroy(window));
}

TEST(WindowView, shows_all_parts_and_moves_nothing) {
  for (const std::int32_t ranks : {1, 2, 5}) run_ranks(ranks, check_views);
}

TEST(WindowView, is_the_same_for_processes) { RankProcesses(3).run(check_views); }

TEST(WindowView, of_two_windows_is_a_mismatch_and_the_windows_live) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    zc_window* const windows[] = {contiguous(comm, 8), contiguous(comm, 8)};
    const void* all = nullptr;
    std::size_t bytes = 0;
    RANK_STATUS(ZC_MISMATCH, zc_window_view(windows[rank], &all, &bytes, nullptr));
    RANK_ERROR_SAYS("rank 0 calls zc_window_view(window of call");
    RANK_CHECK(all == nullptr && bytes == 0, "an address was given out");
    RANK_OK(zc_window_view(windows[1], &all, &bytes, nullptr));
    RANK_CHECK(bytes == 16, "%zu bytes", bytes);
    RANK_OK(zc_barrier(comm, nullptr));
    for (zc_window* window : windows) RANK_OK(zc_window_destroy(window));
  });
}

TEST(WindowView, and_another_collective_are_a_mismatch) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    zc_window* const window = contiguous(comm, 8);
    const void* all = nullptr;
    std::size_t bytes = 0;
    RANK_STATUS(ZC_MISMATCH, rank == 0 ? zc_window_view(window, &all, &bytes, nullptr) : zc_barrier(comm, nullptr));
    RANK_OK(zc_barrier(comm, nullptr));
    RANK_OK(zc_window_destroy(window));
  });
}

TEST(WindowView, is_refused_where_it_cannot_be_had) {
  run_ranks(1, [](zc_comm* comm, std::int32_t) {
    zc_window_config config{};
    config.struct_size = sizeof config;
    config.bytes = 8;
    zc_window* apart = nullptr;
    RANK_OK(zc_window_create(comm, &config, &apart));
    const void* all = nullptr;
    std::size_t bytes = 0;
    RANK_STATUS(ZC_UNSUPPORTED, zc_window_view(apart, &all, &bytes, nullptr));
    RANK_ERROR_SAYS("do not lie end to end");
    RANK_OK(zc_window_destroy(apart));
    zc_window* const window = contiguous(comm, 8);
    RANK_STATUS(ZC_ARGUMENT, zc_window_view(nullptr, &all, &bytes, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_window_view(window, nullptr, &bytes, nullptr));
    zc_coll_options options{};
    options.struct_size = sizeof options;
    options.algorithm = "ring";
    RANK_STATUS(ZC_UNSUPPORTED, zc_window_view(window, &all, &bytes, &options));
    options.algorithm = nullptr;
    options.premul = 2;
    RANK_STATUS(ZC_ARGUMENT, zc_window_view(window, &all, &bytes, &options));
    RANK_OK(zc_window_destroy(window));
  });
}

}  // namespace
}  // namespace zerocomm::test
