// Memory that the processes of one host share: one sealed memfd per communicator, mapped once per process.
//
// Its extent is fixed and large, and costs nothing until a part is backed; no name exists in any file system, so it
// goes with its last user however that ends. Before a part is backed, wish and limits are compared: a memory cgroup
// would answer with SIGKILL.
#pragma once

#include "base/descriptor.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace zerocomm::transport {

class ShmArena {
 public:
  // Extent where nothing else is said: four times the memory of the host, less where the process may map less.
  static std::uint64_t default_bytes();
  // Throws Error(SYSTEM).
  static Descriptor create(std::uint64_t bytes);
  // The mapping of this memory in this process; ranks that share a process share it. Throws Error(SYSTEM).
  static std::shared_ptr<ShmArena> map(const Descriptor& descriptor);

  ~ShmArena();
  ShmArena(const ShmArena&) = delete;
  ShmArena& operator=(const ShmArena&) = delete;

  std::byte* address() const noexcept { return address_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  // Offset of an address of this process, if all of [address, address + bytes) is in the arena.
  bool contains(const void* address, std::size_t bytes, std::uint64_t* offset) const noexcept;

  // Backs whole pages with memory, so that touching them cannot fail. `wanted_bytes` is shared by all who take memory
  // at the same time. Throws Error(NO_MEMORY) with the bytes wanted and the limit.
  void back(std::uint64_t offset, std::uint64_t bytes, const char* purpose,
            std::atomic<std::uint64_t>& wanted_bytes) const;
  // The word at an offset, without touching its page. Throws Error(SYSTEM).
  std::uint32_t peek(std::uint64_t offset) const;
  // Gives whole pages back; they read as zeros when they are backed again.
  void release(std::uint64_t offset, std::uint64_t bytes) const noexcept;

 private:
  ShmArena(Descriptor descriptor, std::byte* address, std::uint64_t bytes);

  Descriptor descriptor_;
  std::byte* address_;
  std::uint64_t bytes_;
};

}  // namespace zerocomm::transport
