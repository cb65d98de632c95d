#include "transport/shm_heap.hpp"

#include "base/check.hpp"
#include "base/math.hpp"
#include "base/memory.hpp"

#include <utility>

namespace zerocomm::transport {
namespace {

// The first page of every allocation. It is given back after all others, and reads as zeros then: the place is free.
struct Header {
  static constexpr std::uint32_t kBeingFreed = 1U << 31;
  std::atomic<std::uint32_t> users{0};
  // Atomic, because what makes a place another's goes through the kernel: the page is punched out, and read as zeros.
  std::atomic<std::uint64_t> bytes{0};    // of the allocation, this page included
  std::atomic<std::uint32_t> is_core{0};  // 1: it begins with the control segment of a group
};

Header& header_at(const ShmArena& arena, std::uint64_t offset) {
  return *reinterpret_cast<Header*>(arena.address() + offset);
}

// One user less. The last one gives the memory back, whichever rank it is, and with the core of a group what belongs to
// all of its ranks.
void leave(const ShmArena& arena, std::uint64_t offset) {
  Header& header = header_at(arena, offset);
  std::uint32_t seen = header.users.load(), next = 0;
  do {
    next = seen == 1 ? Header::kBeingFreed : seen - 1;
  } while (!header.users.compare_exchange_weak(seen, next));
  if (next != Header::kBeingFreed) return;
  if (header.is_core.load() != 0) {
    const Control control(arena.address() + offset + kPageBytes);
    for (std::int32_t rank = 0; rank < control.ranks(); ++rank)
      if (const BufferRef& staging = control.rank(rank).request_staging; staging.bytes != 0)
        leave(arena, staging.offset - kPageBytes);
  }
  arena.release(offset + kPageBytes, header.bytes.load() - kPageBytes);
  arena.release(offset, kPageBytes);  // only now may the owner take the place again
}

// One user of an allocation.
class Use {
 public:
  // `own` counts the uses of the rank that took the memory; nullptr for others.
  Use(std::shared_ptr<ShmArena> arena, std::uint64_t offset, ShmHeap::Count own)
      : arena_(std::move(arena)), offset_(offset), own_(std::move(own)) {
    if (own_) own_->fetch_add(1);
  }
  ~Use() {
    if (own_) own_->fetch_sub(1);
    leave(*arena_, offset_);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  std::uint64_t offset() const { return offset_; }

 private:
  std::shared_ptr<ShmArena> arena_;
  std::uint64_t offset_;
  ShmHeap::Count own_;
};

}  // namespace

// Read through the descriptor: touching the page would bring it back.
bool ShmHeap::is_free(const Place& place) const { return arena_->peek(place.offset) == 0; }

// The smallest place that is free and large enough, else a new one. Under the lock.
ShmHeap::Place ShmHeap::find_place(std::uint64_t bytes, bool* is_new) {
  const Place* best = nullptr;
  for (const Place& place : places_)
    if (place.bytes >= bytes && (best == nullptr || place.bytes < best->bytes) && is_free(place)) best = &place;
  *is_new = best == nullptr;
  if (best != nullptr) return *best;
  auto& next = root_.header().next_offset;
  std::uint64_t offset = next.load();
  do {
    ZC_REQUIRE(bytes <= arena_->bytes() - offset, ZC_NO_MEMORY,
               "%llu bytes of shared memory wanted, and %llu of the extent of %llu bytes are left (ZC_SHM_BYTES)",
               static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(arena_->bytes() - offset),
               static_cast<unsigned long long>(arena_->bytes()));
  } while (!next.compare_exchange_weak(offset, offset + bytes));
  return {offset, bytes};
}

std::shared_ptr<Segment> ShmHeap::allocate(std::size_t bytes, const char* purpose, const Count& own) {
  if (bytes == 0) return std::make_shared<Segment>();
  const std::uint64_t needed = checked_add(round_up(bytes, kPageBytes), kPageBytes);
  const std::lock_guard lock(mutex_);
  bool is_new = false;
  const Place place = find_place(needed, &is_new);
  if (is_new) places_.push_back(place);  // free again if there is no memory for it
  arena_->back(place.offset, needed, purpose, root_.header().wanted_bytes);
  Header& header = header_at(*arena_, place.offset);
  header.bytes.store(needed);
  header.is_core.store(0);
  header.users.store(1);
  auto segment = std::make_shared<Segment>();
  segment->keep = std::make_shared<Use>(arena_, place.offset, own);
  segment->address = arena_->address() + place.offset + kPageBytes;
  segment->bytes = bytes;
  return segment;
}

std::uint64_t ShmHeap::header_of(const Segment& segment) {
  const auto* use = segment.adopted ? nullptr : static_cast<const Use*>(segment.keep.get());
  return use != nullptr ? use->offset() : 0;
}

void ShmHeap::mark_core(const Segment& segment) const { header_at(*arena_, header_of(segment)).is_core.store(1); }

void ShmHeap::leave_to_core(const Segment& segment) const { header_at(*arena_, header_of(segment)).users.fetch_add(1); }

std::shared_ptr<void> ShmHeap::use(std::uint64_t header_offset) const {
  auto& users = header_at(*arena_, header_offset).users;
  std::uint32_t seen = users.load();
  do {
    if (seen == 0 || seen == Header::kBeingFreed) return nullptr;
  } while (!users.compare_exchange_weak(seen, seen + 1));
  return std::make_shared<Use>(arena_, header_offset, nullptr);
}

}  // namespace zerocomm::transport
