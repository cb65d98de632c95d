// Getting the memory of gathered units, or saying on all ranks who did not.
#include "engine/gathered_memory.hpp"

#include "base/check.hpp"

#include <vector>

namespace zerocomm::engine {

GatheredMemory::GatheredMemory(zc_comm* comm, std::size_t bytes, std::size_t alignment_bytes,
                               const zc_allocator& allocator, const zc_coll_options& control)
    : GatheredMemory(comm, bytes, allocator) {  // from here on the destructor runs
  if (bytes_ == 0) return;
  std::int32_t rank = 0, ranks = 0;
  if (zc_comm_rank(comm, &rank) != ZC_OK || zc_comm_size(comm, &ranks) != ZC_OK)
    throw Error(ZC_ARGUMENT, zc_last_error());
  const zc_status mine = allocate(alignment_bytes);
  const std::string text = mine == ZC_OK ? "" : zc_last_error();
  std::vector<std::int32_t> all(static_cast<std::size_t>(ranks));
  const auto word = static_cast<std::int32_t>(mine);
  zc_status first = zc_all_gather(comm, &word, all.data(), 1, ZC_DTYPE_I32, &control);
  std::string why = first == ZC_OK ? "" : zc_last_error();
  for (std::size_t r = 0; r < all.size() && first == ZC_OK; ++r) {
    first = static_cast<zc_status>(all[r]);
    why = r == static_cast<std::size_t>(rank)
              ? text
              : format("rank %d: rank %zu could not have %zu bytes for gathered units", rank, r, bytes_);
  }
  if (first != ZC_OK) throw Error(first, why);
}

zc_status GatheredMemory::allocate(std::size_t alignment_bytes) {
  if (allocator_.allocate == nullptr) return zc_mem_alloc(comm_, bytes_, &memory_);
  memory_ = allocator_.allocate(allocator_.context, bytes_, alignment_bytes);
  if (memory_ == nullptr) return fail(ZC_NO_MEMORY, "the allocator for gathered units gave no %zu bytes", bytes_);
  if (reinterpret_cast<std::uintptr_t>(memory_) % alignment_bytes != 0)
    return fail(ZC_ARGUMENT, "the allocator for gathered units gave %p for %zu bytes at a multiple of %zu", memory_,
                bytes_, alignment_bytes);
  return ZC_OK;
}

GatheredMemory::~GatheredMemory() {
  if (memory_ == nullptr) return;
  if (allocator_.allocate == nullptr)
    zc_mem_free(comm_, memory_);
  else
    allocator_.deallocate(allocator_.context, memory_, bytes_);
}

}  // namespace zerocomm::engine
