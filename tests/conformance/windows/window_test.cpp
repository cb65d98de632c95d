// Windows: reach, generations, words, and what is booked.
#include "support/exact_data.hpp"
#include "support/rank_threads.hpp"
#include "support/window_of_rank.hpp"

#include <zerocomm/coll.h>
#include <zerocomm/mem.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>

namespace zerocomm::test {
namespace {

zc_stats stats_of(zc_comm* comm) {
  zc_stats stats{};
  stats.struct_size = sizeof stats;
  RANK_OK(zc_comm_stats(comm, &stats));
  return stats;
}

zc_ledger ledger_of(zc_comm* comm) {
  zc_ledger ledger{};
  ledger.struct_size = sizeof ledger;
  RANK_OK(zc_comm_ledger(comm, &ledger));
  return ledger;
}

TEST(Window, has_parts_of_different_bytes_that_every_rank_reaches_zeroed) {
  run_ranks(4, [](zc_comm* comm, std::int32_t rank) {
    const WindowOfRank window(comm, static_cast<std::size_t>(rank) * 5000);
    for (std::int32_t other = 0; other < 4; ++other) {
      void* memory = &memory;
      std::size_t bytes = 99;
      RANK_OK(zc_window_ptr(window.get(), other, &memory, &bytes));
      RANK_CHECK(bytes == static_cast<std::size_t>(other) * 5000 && (memory == nullptr) == (other == 0), "rank %d",
                 other);
      for (std::size_t i = 0; i < bytes; ++i) RANK_CHECK(static_cast<char*>(memory)[i] == 0, "byte %zu", i);
    }
    RANK_STATUS(ZC_ARGUMENT, zc_window_signal(nullptr, 1));
    void* memory = nullptr;
    std::size_t bytes = 0;
    RANK_STATUS(ZC_ARGUMENT, zc_window_ptr(window.get(), 4, &memory, &bytes));
    RANK_STATUS(ZC_ARGUMENT, zc_window_ptr(window.get(), ZC_NONE, &memory, &bytes));
  });
}

TEST(Window, reader_of_a_generation_waits_and_then_sees_its_bytes) {
  std::atomic<bool> signalled{false};
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    const WindowOfRank window(comm, 256);
    if (rank == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      std::memset(window.part<char>(0), 7, 256);
      signalled = true;
      RANK_OK(zc_window_signal(window.get(), 3));
    } else {
      char bytes[10] = {};
      RANK_OK(zc_window_read(window.get(), 0, 246, bytes, 10, 3, nullptr));
      RANK_CHECK(signalled.load(), "it did not wait");
      for (const char byte : bytes) RANK_CHECK(byte == 7, "%d", byte);
      // A later generation than was asked for will do.
      RANK_OK(zc_window_wait(window.get(), 0, 2, nullptr));
    }
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

TEST(Window, thousand_generations_hand_over_whole_values_only) {
  run_ranks(3, [](zc_comm* comm, std::int32_t rank) {
    const WindowOfRank window(comm, 1024);
    std::uint64_t seen[128];
    for (std::uint64_t generation = 1; generation <= 1000; ++generation) {
      if (rank == 0) {
        std::fill_n(window.part<std::uint64_t>(0), 128, generation);
        RANK_OK(zc_window_signal(window.get(), generation));
        for (std::int32_t reader = 1; reader < 3; ++reader)
          RANK_OK(zc_window_wait(window.get(), reader, generation, nullptr));
      } else {
        RANK_OK(zc_window_read(window.get(), 0, 0, seen, sizeof seen, generation, nullptr));
        for (const std::uint64_t value : seen)
          RANK_CHECK(value == generation, "%llu", static_cast<unsigned long long>(value));
        RANK_OK(zc_window_signal(window.get(), generation));
      }
    }
  });
}

TEST(Window, generation_may_not_fall) {
  run_ranks(1, [](zc_comm* comm, std::int32_t) {
    const WindowOfRank window(comm, 8);
    RANK_OK(zc_window_signal(window.get(), 5));
    RANK_OK(zc_window_signal(window.get(), 5));
    RANK_STATUS(ZC_STATE, zc_window_signal(window.get(), 4));
    RANK_OK(zc_window_wait(window.get(), 0, 5, nullptr));
  });
}

TEST(Window, wait_names_the_rank_and_its_generation_when_the_deadline_passes) {
  run_ranks(3, [](zc_comm* comm, std::int32_t rank) {
    const WindowOfRank window(comm, 8);
    if (rank == 2) RANK_OK(zc_window_signal(window.get(), 1));
    RANK_OK(zc_barrier(comm, nullptr));
    if (rank != 0) return;
    zc_wait_options options{};
    options.struct_size = sizeof options;
    options.deadline_ns = ZC_POLL;
    char byte = 9;
    RANK_STATUS(ZC_AGAIN, zc_window_wait(window.get(), 2, 4, &options));
    RANK_STATUS(ZC_AGAIN, zc_window_read(window.get(), 2, 0, &byte, 1, 4, &options));
    RANK_OK(zc_window_wait(window.get(), 2, 1, &options));
    options.deadline_ns = 50 * kMillisecondNs;
    RANK_STATUS(ZC_TIMEOUT, zc_window_read(window.get(), 2, 0, &byte, 1, 4, &options));
    RANK_CHECK(byte == 9, "a byte was copied");
    RANK_ERROR_SAYS("rank 2 has announced generation 1, and 4 is waited for");
    RANK_STATUS(ZC_TIMEOUT, zc_comm_status(comm));
  });
}

TEST(Window, reads_outside_a_part_are_refused) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    const WindowOfRank window(comm, rank == 0 ? 100 : 10);
    char bytes[100] = {};
    RANK_OK(zc_window_read(window.get(), 1, 0, bytes, 10, 0, nullptr));
    RANK_OK(zc_window_read(window.get(), 1, 10, nullptr, 0, 0, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_window_read(window.get(), 1, 1, bytes, 10, 0, nullptr));
    RANK_ERROR_SAYS("whose part has 10 bytes");
    RANK_STATUS(ZC_ARGUMENT, zc_window_read(window.get(), 1, SIZE_MAX, bytes, 2, 0, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_window_read(window.get(), 1, 2, bytes, SIZE_MAX, 0, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_window_read(window.get(), 2, 0, bytes, 1, 0, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_window_read(window.get(), 1, 0, nullptr, 1, 0, nullptr));
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

TEST(Window, words_count_exactly_under_many_threads) {
  constexpr std::uint64_t kTurns = 2000, kAdds = 30000;  // long enough for ranks to run at the same time
  run_ranks(8, [](zc_comm* comm, std::int32_t rank) {
    const WindowOfRank window(comm, 0, 3);
    const auto self = static_cast<std::uint64_t>(rank);
    for (std::uint64_t turn = 0, before = 0; turn < kAdds; ++turn)
      RANK_OK(zc_window_add(window.get(), 5, 1, 1 + turn % 2, turn % 3 == 0 ? nullptr : &before));
    for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
      // A counter made of compare_swap: what it gives back is what the word held.
      for (std::uint64_t expected = 0;;) {
        std::uint64_t held = 0;
        RANK_OK(zc_window_compare_swap(window.get(), 2, 2, expected, expected + 1, &held));
        if (held == expected) break;
        expected = held;
      }
    }
    RANK_OK(zc_window_store(window.get(), rank, 0, 100 + self));
    RANK_OK(zc_barrier(comm, nullptr));
    std::uint64_t added = 0, swapped = 0, stored = 0;
    RANK_OK(zc_window_load(window.get(), 5, 1, &added));
    RANK_OK(zc_window_load(window.get(), 2, 2, &swapped));
    RANK_OK(zc_window_load(window.get(), (rank + 1) % 8, 0, &stored));
    RANK_CHECK(added == 8 * kAdds * 3 / 2 && swapped == 8 * kTurns && stored == 100 + (self + 1) % 8, "%llu %llu %llu",
               static_cast<unsigned long long>(added), static_cast<unsigned long long>(swapped),
               static_cast<unsigned long long>(stored));
    RANK_STATUS(ZC_ARGUMENT, zc_window_load(window.get(), 0, 3, &added));
    RANK_ERROR_SAYS("word 3 of a window with 3 words");
    RANK_STATUS(ZC_ARGUMENT, zc_window_add(window.get(), 8, 0, 1, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_window_load(window.get(), 0, 0, nullptr));
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

TEST(Window, may_lie_over_memory_of_the_library_or_of_the_caller) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    void* memory = nullptr;
    RANK_OK(zc_mem_alloc(comm, 5000, &memory));
    RANK_CHECK(reinterpret_cast<std::uintptr_t>(memory) % 4096 == 0, "%p", memory);
    std::memset(memory, 10 + rank, 5000);
    int own = rank;
    {
      const WindowOfRank over_library(comm, 5000, 1, memory);
      char byte = 0;
      RANK_OK(zc_window_read(over_library.get(), 1 - rank, 4999, &byte, 1, 0, nullptr));
      RANK_CHECK(byte == 11 - rank, "%d", byte);
      if (kSharedMemory) {  // other processes cannot reach it
        zc_window_config config{};
        config.struct_size = sizeof config;
        config.bytes = sizeof own;
        config.memory = &own;
        zc_window* window = nullptr;
        RANK_STATUS(ZC_ARGUMENT, zc_window_create(comm, &config, &window));
        RANK_ERROR_SAYS("cannot be reached by other processes");
      } else {
        const WindowOfRank over_caller(comm, sizeof own, 1, &own);
        int value = -1;
        RANK_OK(zc_window_read(over_caller.get(), 1 - rank, 0, &value, sizeof value, 0, nullptr));
        RANK_CHECK(value == 1 - rank, "%d", value);
        RANK_OK(zc_barrier(comm, nullptr));
      }
      RANK_OK(zc_barrier(comm, nullptr));
    }
    RANK_OK(zc_barrier(comm, nullptr));
    RANK_STATUS(ZC_ARGUMENT, zc_mem_free(comm, &own));
    RANK_OK(zc_mem_free(comm, memory));
    RANK_STATUS(ZC_ARGUMENT, zc_mem_free(comm, memory));
  });
}

TEST(Window, that_cannot_be_allocated_on_one_rank_is_no_memory_on_all) {
  run_ranks(3, [](zc_comm* comm, std::int32_t rank) {
    zc_window_config config{};
    config.struct_size = sizeof config;
    config.bytes = rank == 1 ? std::size_t{1} << 60 : 8;
    zc_window* window = nullptr;
    RANK_STATUS(ZC_NO_MEMORY, zc_window_create(comm, &config, &window));
    RANK_CHECK(window == nullptr, "a window was made");
    RANK_ERROR_SAYS("rank 1 could not get 1152921504606846984 bytes");
    RANK_OK(zc_barrier(comm, nullptr));
    config.bytes = SIZE_MAX;
    if (rank == 0) RANK_STATUS(ZC_OVERFLOW, zc_window_create(comm, &config, &window));
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

TEST(Window, bytes_are_booked_to_the_reader_by_what_lies_between) {
  run_ranks(
      4,
      [](zc_comm* comm, std::int32_t rank) {
        const WindowOfRank window(comm, 1000);
        RANK_OK(zc_barrier(comm, nullptr));
        RANK_OK(zc_comm_stats_reset(comm));
        char bytes[1000];
        for (std::int32_t other = 0; other < 4; ++other)
          RANK_OK(zc_window_read(window.get(), other, 0, bytes, static_cast<std::size_t>(100 + other), 0, nullptr));
        const zc_stats stats = stats_of(comm);
        const std::int32_t neighbour = rank ^ 1, far = rank < 2 ? 2 + 3 : 0 + 1;
        RANK_CHECK(stats.moved_bytes[ZC_LINK_SELF] == static_cast<std::uint64_t>(100 + rank), "self");
        RANK_CHECK(stats.moved_bytes[kNearLink] == static_cast<std::uint64_t>(100 + neighbour), "near");
        RANK_CHECK(stats.moved_bytes[ZC_LINK_NETWORK] == static_cast<std::uint64_t>(200 + far), "network");
        const zc_link other_link = kSharedMemory ? ZC_LINK_THREAD : ZC_LINK_HOST;
        RANK_CHECK(stats.moved_bytes[other_link] == 0 && stats.logical_bytes == 0, "the other transport");
        RANK_OK(zc_barrier(comm, nullptr));
      },
      {.topology = "a:0-1 b:2-3"});
}

TEST(Ledger, holds_what_windows_and_memory_take) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    const zc_ledger empty = ledger_of(comm);
    RANK_CHECK(empty.window_bytes == 0 && empty.memory_bytes == 0 && empty.total_bytes == empty.control_bytes,
               "not empty");
    // The control segment is booked to rank 0; ranks of processes have staging.
    RANK_CHECK((empty.control_bytes != 0) == (rank == 0 || kSharedMemory), "%zu", empty.control_bytes);
    const std::size_t headers_bytes = kSharedMemory ? 4 * 4096 : 0;  // a page for each allocation
    void* memory = nullptr;
    RANK_OK(zc_mem_alloc(comm, 5000, &memory));
    {
      const WindowOfRank window(comm, 700, 5), over(comm, 5000, 1, memory);
      const zc_ledger full = ledger_of(comm);
      RANK_CHECK(full.window_bytes == 700, "%zu", full.window_bytes);
      RANK_CHECK(full.memory_bytes == 5000, "%zu", full.memory_bytes);
      RANK_CHECK(full.control_bytes == empty.control_bytes + 6 * 8 + headers_bytes, "%zu", full.control_bytes);
      RANK_CHECK(full.total_bytes == full.control_bytes + 5700, "%zu", full.total_bytes);
    }
    RANK_OK(zc_mem_free(comm, memory));
    RANK_CHECK(ledger_of(comm).total_bytes == empty.total_bytes, "something is left");
  });
}

}  // namespace
}  // namespace zerocomm::test
