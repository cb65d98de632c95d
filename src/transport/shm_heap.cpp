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
  std::uint64_t bytes = 0;  // of the allocation, this page included
};

Header& header_at(const ShmArena& arena, std::uint64_t offset) {
  return *reinterpret_cast<Header*>(arena.address() + offset);
}

// One user of an allocation. The last one gives the memory back, whichever rank it is.
class Use {
 public:
  // `own` counts the uses of the rank that took the memory; nullptr for others.
  Use(std::shared_ptr<ShmArena> arena, std::uint64_t offset, ShmHeap::Count own)
      : arena_(std::move(arena)), offset_(offset), own_(std::move(own)) {
    if (own_) own_->fetch_add(1);
  }
  ~Use() {
    if (own_) own_->fetch_sub(1);
    Header& header = header_at(*arena_, offset_);
    std::uint32_t seen = header.users.load(), next = 0;
    do {
      next = seen == 1 ? Header::kBeingFreed : seen - 1;
    } while (!header.users.compare_exchange_weak(seen, next));
    if (next != Header::kBeingFreed) return;
    arena_->release(offset_ + kPageBytes, header.bytes - kPageBytes);
    arena_->release(offset_, kPageBytes);  // only now may the owner take the place again
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
  header.bytes = needed;
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

std::shared_ptr<void> ShmHeap::use(std::uint64_t header_offset) const {
  auto& users = header_at(*arena_, header_offset).users;
  std::uint32_t seen = users.load();
  do {
    if (seen == 0 || seen == Header::kBeingFreed) return nullptr;
  } while (!users.compare_exchange_weak(seen, seen + 1));
  return std::make_shared<Use>(arena_, header_offset, nullptr);
}

}  // namespace zerocomm::transport
