// Windows whose parts lie end to end, and windows over memory of the caller's own descriptors.
#include "support/child_ranks.hpp"
#include "support/rank_threads.hpp"

#include <zerocomm/coll.h>
#include <zerocomm/window.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace zerocomm::test {
namespace {

std::size_t bytes_of(std::int32_t rank) { return rank == 1 ? 0 : 5000 * static_cast<std::size_t>(rank) + 33; }

std::byte* part_of(zc_window* window, std::int32_t rank, std::size_t bytes) {
  void* memory = nullptr;
  std::size_t found = 0;
  RANK_OK(zc_window_ptr(window, rank, &memory, &found));
  RANK_CHECK(found == bytes, "rank %d has %zu bytes, not %zu", rank, found, bytes);
  return static_cast<std::byte*>(memory);
}

// Every rank writes its number into its part, and finds all parts one after the other.
void check_contiguous(zc_comm* comm, std::int32_t rank) {
  std::int32_t ranks = 0;
  RANK_OK(zc_comm_size(comm, &ranks));
  zc_window_config config{};
  config.struct_size = sizeof config;
  config.bytes = bytes_of(rank);
  config.contiguous = 1;
  zc_window* window = nullptr;
  RANK_OK(zc_window_create(comm, &config, &window));
  std::memset(part_of(window, rank, bytes_of(rank)), rank + 1, bytes_of(rank));
  RANK_OK(zc_barrier(comm, nullptr));
  const std::byte* at = part_of(window, 0, bytes_of(0));
  for (std::int32_t peer = 0; peer < ranks; ++peer) {
    RANK_CHECK(part_of(window, peer, bytes_of(peer)) == at || bytes_of(peer) == 0, "the part of rank %d is elsewhere",
               peer);
    for (std::size_t i = 0; i < bytes_of(peer); ++i, ++at)
      RANK_CHECK(*at == static_cast<std::byte>(peer + 1), "byte %zu of rank %d", i, peer);
  }
  RANK_OK(zc_barrier(comm, nullptr));
  RANK_OK(zc_window_destroy(window));
}

TEST(ContiguousWindow, holds_the_parts_of_all_ranks_end_to_end) {
  for (const std::int32_t ranks : {1, 2, 3, 5}) run_ranks(ranks, check_contiguous);
}

TEST(ContiguousWindow, is_one_mapping_in_every_process) { RankProcesses(4).run(check_contiguous); }

TEST(ContiguousWindow, is_asked_for_by_all_ranks_or_by_none) {
  run_ranks(2, [](zc_comm* comm, std::int32_t rank) {
    zc_window_config config{};
    config.struct_size = sizeof config;
    config.bytes = 64;
    config.memory = &config;
    config.contiguous = 1;
    zc_window* window = nullptr;
    RANK_STATUS(ZC_ARGUMENT, zc_window_create(comm, &config, &window));
    config.memory = nullptr;
    config.contiguous = rank;
    RANK_STATUS(ZC_MISMATCH, zc_window_create(comm, &config, &window));
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

// A memfd of `bytes` bytes, sealed unless the test wants to see what happens.
int make_memfd(std::size_t bytes, bool sealed) {
  const int descriptor = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  RANK_CHECK(descriptor >= 0 && ftruncate(descriptor, static_cast<off_t>(bytes)) == 0, "no memfd");
  RANK_CHECK(!sealed || fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0, "no seal");
  return descriptor;
}

// Ranks 0 and 2 adopt, the others let the library allocate.
void check_adopted(zc_comm* comm, std::int32_t rank) {
  constexpr std::size_t kOffset = 4096 + 128, kBytes = 10'000;
  std::int32_t ranks = 0;
  RANK_OK(zc_comm_size(comm, &ranks));
  zc_window_config config{};
  config.struct_size = sizeof config;
  config.bytes = kBytes;
  std::int32_t descriptor = -1;
  std::byte* own = nullptr;
  if (rank % 2 == 0) {
    descriptor = make_memfd(kOffset + kBytes, true);
    own = static_cast<std::byte*>(mmap(nullptr, kOffset + kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0));
    config.descriptor = &descriptor;
    config.descriptor_offset_bytes = kOffset;
  }
  zc_window* window = nullptr;
  RANK_OK(zc_window_create(comm, &config, &window));
  if (descriptor >= 0) close(descriptor);
  std::memset(part_of(window, rank, kBytes), rank + 1, kBytes);
  RANK_OK(zc_barrier(comm, nullptr));
  for (std::int32_t peer = 0; peer < ranks; ++peer) {
    std::byte last{};
    RANK_OK(zc_window_read(window, peer, kBytes - 1, &last, 1, 0, nullptr));
    RANK_CHECK(last == static_cast<std::byte>(peer + 1), "rank %d", peer);
  }
  RANK_OK(zc_barrier(comm, nullptr));
  RANK_OK(zc_window_destroy(window));
  if (own == nullptr) return;
  RANK_CHECK(own[kOffset] == static_cast<std::byte>(rank + 1) && own[kOffset - 1] == std::byte{}, "own memory");
  munmap(own, kOffset + kBytes);
}

TEST(AdoptedWindow, lies_in_the_callers_own_memory_on_every_rank) { run_ranks(4, check_adopted); }

TEST(AdoptedWindow, is_mapped_by_every_process) { RankProcesses(4).run(check_adopted); }

TEST(AdoptedWindow, needs_a_sealed_memfd_that_is_long_enough) {
  run_ranks(1, [](zc_comm* comm, std::int32_t) {
    zc_window_config config{};
    config.struct_size = sizeof config;
    config.bytes = 100;
    zc_window* window = nullptr;
    const auto refuse = [&](std::int32_t descriptor, const char* why) {
      config.descriptor = &descriptor;
      RANK_STATUS(ZC_ARGUMENT, zc_window_create(comm, &config, &window));
      RANK_ERROR_SAYS(why);
      close(descriptor);
    };
    refuse(make_memfd(4096, false), "not sealed with F_SEAL_SHRINK");
    refuse(make_memfd(99, true), "100 bytes at 0 of a memfd of 99 bytes");
    refuse(open("/dev/null", O_RDWR | O_CLOEXEC), "no memfd");
    config.descriptor = nullptr;
    RANK_OK(zc_window_create(comm, &config, &window));
    RANK_OK(zc_window_destroy(window));
  });
}

}  // namespace
}  // namespace zerocomm::test
