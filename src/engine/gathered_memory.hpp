// Memory of the gathered units of one rank: the library's, or that of the caller's allocator.
#pragma once

#include <zerocomm/coll.h>
#include <zerocomm/mem.h>

#include <cstddef>
#include <cstdint>

namespace zerocomm::engine {

class GatheredMemory {
 public:
  // Collective where bytes is not 0; bytes are equal on all ranks. If one rank gets none, all throw Error with that
  // rank's status and the bytes.
  GatheredMemory(zc_comm* comm, std::size_t bytes, std::size_t alignment_bytes, const zc_allocator& allocator,
                 const zc_coll_options& control);
  ~GatheredMemory();
  GatheredMemory(const GatheredMemory&) = delete;
  GatheredMemory& operator=(const GatheredMemory&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  GatheredMemory(zc_comm* comm, std::size_t bytes, const zc_allocator& allocator) noexcept
      : comm_(comm), bytes_(bytes), allocator_(allocator) {}
  zc_status allocate(std::size_t alignment_bytes);

  zc_comm* comm_;
  std::size_t bytes_;
  zc_allocator allocator_;
  void* memory_ = nullptr;
};

}  // namespace zerocomm::engine
