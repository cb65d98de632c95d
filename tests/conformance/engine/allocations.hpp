// Counts what a program asks the system for: mmap and munmap, and blocks of operator new and malloc of a page and more.
// Include in one file of a program. Counting is off until it is switched on.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

#include <malloc.h>

namespace zerocomm::test {

inline constexpr std::size_t kPage = 4096;

struct Allocations {
  std::size_t mapped_bytes = 0;  // whole pages, as mapped
  std::size_t mapped_count = 0;  // mappings
  std::size_t heap_bytes = 0;    // operator new, all sizes
  std::size_t large_bytes = 0;   // of those, in blocks of a page and more
};

struct AllocationCounter {
  std::mutex mutex;
  bool on = false;
  Allocations now;
  // Mappings seen while counting, by address; a fixed table, so that counting allocates nothing.
  struct Mapping {
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
  };
  Mapping mappings[4096];
};
inline AllocationCounter counter;

inline void count_allocations(bool on) {
  const std::lock_guard lock(counter.mutex);
  counter.on = on;
}
inline Allocations allocations() {
  const std::lock_guard lock(counter.mutex);
  return counter.now;
}

inline void note_map(void* address, std::size_t bytes) {
  if (address == MAP_FAILED) return;
  const std::lock_guard lock(counter.mutex);
  if (!counter.on) return;
  for (AllocationCounter::Mapping& mapping : counter.mappings) {
    if (mapping.address != 0) continue;
    mapping = {reinterpret_cast<std::uintptr_t>(address), (bytes + kPage - 1) / kPage * kPage};
    counter.now.mapped_bytes += mapping.bytes;
    ++counter.now.mapped_count;
    return;
  }
}
inline void note_unmap(void* address) {
  const std::lock_guard lock(counter.mutex);
  for (AllocationCounter::Mapping& mapping : counter.mappings) {
    if (mapping.address != reinterpret_cast<std::uintptr_t>(address)) continue;
    counter.now.mapped_bytes -= mapping.bytes;
    --counter.now.mapped_count;
    mapping = {};
    return;
  }
}

// Blocks carry their size and whether they were counted, in a header of 16 bytes.
struct BlockHeader {
  std::size_t bytes;
  std::size_t counted;
};
inline void* allocate_block(std::size_t bytes) {
  auto* header = static_cast<BlockHeader*>(std::malloc(bytes + sizeof(BlockHeader)));
  if (header == nullptr) throw std::bad_alloc();
  const std::lock_guard lock(counter.mutex);
  *header = {bytes, counter.on ? std::size_t{1} : 0};
  if (counter.on) {
    counter.now.heap_bytes += bytes;
    if (bytes >= kPage) counter.now.large_bytes += bytes;
  }
  return header + 1;
}
inline void free_block(void* block) noexcept {
  if (block == nullptr) return;
  auto* header = static_cast<BlockHeader*>(block) - 1;
  {
    const std::lock_guard lock(counter.mutex);
    if (header->counted != 0) {
      counter.now.heap_bytes -= header->bytes;
      if (header->bytes >= kPage) counter.now.large_bytes -= header->bytes;
    }
  }
  std::free(header);
}

}  // namespace zerocomm::test

void* operator new(std::size_t bytes) { return zerocomm::test::allocate_block(bytes); }
void* operator new[](std::size_t bytes) { return zerocomm::test::allocate_block(bytes); }
void operator delete(void* block) noexcept { zerocomm::test::free_block(block); }
void operator delete[](void* block) noexcept { zerocomm::test::free_block(block); }
void operator delete(void* block, std::size_t) noexcept { zerocomm::test::free_block(block); }
void operator delete[](void* block, std::size_t) noexcept { zerocomm::test::free_block(block); }

extern "C" void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  const long result = syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
  void* const mapped = result == -1 ? MAP_FAILED : reinterpret_cast<void*>(result);
  zerocomm::test::note_map(mapped, bytes);
  return mapped;
}
extern "C" int munmap(void* address, std::size_t bytes) noexcept {
  zerocomm::test::note_unmap(address);
  return static_cast<int>(syscall(SYS_munmap, address, bytes));
}
