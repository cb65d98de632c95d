#include "transport/shm_group.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/math.hpp"
#include "base/memory.hpp"

#include <linux/futex.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace zerocomm::transport {
namespace {

constexpr std::uint64_t kStagingHalfBytes = Group::kStagingHalfBytes;

std::uint64_t control_extent(std::int32_t ranks) noexcept {
  return (Control::bytes(ranks) + kPageBytes - 1) / kPageBytes * kPageBytes;
}

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
  Use(std::shared_ptr<ShmArena> arena, std::uint64_t offset, std::shared_ptr<std::atomic<std::size_t>> own)
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
  std::shared_ptr<std::atomic<std::size_t>> own_;
};

}  // namespace

std::uint64_t ShmGroup::staging_offset(std::int32_t ranks, std::int32_t rank) noexcept {
  return control_extent(ranks) + static_cast<std::uint64_t>(rank) * 2 * kStagingHalfBytes;
}

Descriptor ShmGroup::create(std::int32_t ranks, std::uint64_t bytes) {
  const std::uint64_t dynamic = staging_offset(ranks, ranks);
  ZC_REQUIRE(bytes > dynamic, ZC_NO_MEMORY, "shared memory of %llu bytes: %d ranks need more than %llu (ZC_SHM_BYTES)",
             static_cast<unsigned long long>(bytes), ranks, static_cast<unsigned long long>(dynamic));
  Descriptor descriptor = ShmArena::create(bytes);
  const std::shared_ptr<ShmArena> arena = ShmArena::map(descriptor);
  std::atomic<std::uint64_t> nobody_else{0};
  arena->back(0, control_extent(ranks), "control segment", nobody_else);
  ControlHeader& header = Control::build(arena->address(), ranks).header();
  header.next_offset.store(dynamic);
  ZC_REQUIRE(getrandom(header.secret, sizeof header.secret, 0) == sizeof header.secret, ZC_SYSTEM, "getrandom: %s",
             std::strerror(errno));
  return descriptor;
}

ShmGroup::ShmGroup(const Descriptor& segment, topo::Topology topology, std::int32_t rank)
    : arena_(ShmArena::map(segment)), control_(arena_->address()), topology_(std::move(topology)), rank_(rank) {
  const auto ranks = static_cast<std::int32_t>(topology_.node_of_rank.size());
  ZC_REQUIRE(control_.header().magic == ControlHeader::kMagic && control_.ranks() == ranks, ZC_INTERNAL,
             "rank %d: the shared memory that came is not a communicator of %d ranks", rank, ranks);
  arena_->back(staging_offset(ranks, rank), 2 * kStagingHalfBytes, "staging", control_.header().wanted_bytes);
  PrivateRead& own = control_.rank(rank).private_read;
  own.token = static_cast<std::uint64_t>(now_ns()) ^ static_cast<std::uint64_t>(getpid()) << 40;
  token_ = std::make_unique<const std::uint64_t>(own.token);
  own.address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(token_.get()));
}

void ShmGroup::probe_private_reads(bool allowed) noexcept {
  PrivateRead& own = control_.rank(rank_).private_read;
  for (std::int32_t rank = 0; allowed && rank < control_.ranks(); ++rank) {
    const PrivateRead& other = control_.rank(rank).private_read;
    std::uint64_t token = 0;
    int result = read_private(rank, {0, other.address, sizeof token}, 0, &token, sizeof token);
    if (result == 0 && token != other.token) result = ESRCH;  // that process id means another process here
    if (result == 0) continue;
    own.failed_rank = rank;
    own.failed_errno = result;
    own.verdict.store(kCannotRead);
    return;
  }
  own.verdict.store(allowed ? kCanRead : kMayNotRead);
}

bool ShmGroup::can_read_private() const noexcept {
  for (std::int32_t rank = 0; rank < control_.ranks(); ++rank)
    if (control_.rank(rank).private_read.verdict.load() != kCanRead) return false;
  return true;
}

std::string ShmGroup::private_copy() const {
  for (std::int32_t rank = 0; rank < control_.ranks(); ++rank) {
    const PrivateRead& one = control_.rank(rank).private_read;
    if (one.verdict.load() == kMayNotRead) return format("staging: rank %d asked for it (ZC_COPY)", rank);
    if (one.verdict.load() == kCannotRead)
      return format("staging: rank %d cannot read the memory of rank %d: %s", rank, one.failed_rank,
                    std::strerror(one.failed_errno));
  }
  return "process_vm_readv";
}

int ShmGroup::read_private(std::int32_t rank, const BufferRef& buffer, std::size_t offset_bytes, void* destination,
                           std::size_t bytes) const noexcept {
  auto* to = static_cast<std::byte*>(destination);
  std::uint64_t from = buffer.offset + offset_bytes;
  while (bytes != 0) {
    const iovec local{to, bytes};
    // An address of the other process.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    const iovec remote{reinterpret_cast<void*>(static_cast<std::uintptr_t>(from)), bytes};
    const ssize_t done = process_vm_readv(control_.rank(rank).liveness.pid, &local, 1, &remote, 1, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : EFAULT;
    to += done;
    from += static_cast<std::uint64_t>(done);
    bytes -= static_cast<std::size_t>(done);
  }
  return 0;
}

zc_link ShmGroup::link(std::int32_t from, std::int32_t to) const {
  if (from == to) return ZC_LINK_SELF;
  const auto& node = topology_.node_of_rank;
  return node[static_cast<std::size_t>(from)] == node[static_cast<std::size_t>(to)] ? ZC_LINK_HOST : ZC_LINK_NETWORK;
}

std::size_t ShmGroup::control_bytes(std::int32_t rank) const {
  return (rank == 0 ? control_extent(control_.ranks()) : 0) + 2 * kStagingHalfBytes + own_uses_->load() * kPageBytes;
}

// Read through the descriptor: touching the page would bring it back.
bool ShmGroup::is_free(const Place& place) const { return arena_->peek(place.offset) == 0; }

// The smallest place that is free and large enough, else a new one. Under the lock.
ShmGroup::Place ShmGroup::find_place(std::uint64_t bytes, bool* is_new) {
  const Place* best = nullptr;
  for (const Place& place : places_)
    if (place.bytes >= bytes && (best == nullptr || place.bytes < best->bytes) && is_free(place)) best = &place;
  *is_new = best == nullptr;
  if (best != nullptr) return *best;
  auto& next = control_.header().next_offset;
  std::uint64_t offset = next.load();
  do {
    ZC_REQUIRE(bytes <= arena_->bytes() - offset, ZC_NO_MEMORY,
               "%llu bytes of shared memory wanted, and %llu of the extent of %llu bytes are left (ZC_SHM_BYTES)",
               static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(arena_->bytes() - offset),
               static_cast<unsigned long long>(arena_->bytes()));
  } while (!next.compare_exchange_weak(offset, offset + bytes));
  return {offset, bytes};
}

std::shared_ptr<Segment> ShmGroup::allocate(std::int32_t rank, std::size_t bytes, const char* purpose) {
  ZC_ASSERT(rank == rank_);
  if (bytes == 0) return std::make_shared<Segment>();
  const std::uint64_t needed = checked_add(round_up(bytes, kPageBytes), kPageBytes);
  const std::lock_guard lock(mutex_);
  bool is_new = false;
  const Place place = find_place(needed, &is_new);
  if (is_new) places_.push_back(place);  // free again if there is no memory for it
  arena_->back(place.offset, needed, purpose, control_.header().wanted_bytes);
  Header& header = header_at(*arena_, place.offset);
  header.bytes = needed;
  header.users.store(1);
  auto segment = std::make_shared<Segment>();
  segment->keep = std::make_shared<Use>(arena_, place.offset, own_uses_);
  segment->address = arena_->address() + place.offset + kPageBytes;
  segment->bytes = bytes;
  return segment;
}

BufferRef ShmGroup::refer(const void* address, std::size_t bytes) const noexcept {
  std::uint64_t offset = 0;
  if (arena_->contains(address, bytes, &offset)) return {1, offset, bytes};
  return {0, static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address)), bytes};
}

void* ShmGroup::reach(std::int32_t rank, const BufferRef& buffer) const noexcept {
  if (buffer.segment == 1) return arena_->address() + buffer.offset;
  // An offset in segment 0 is an address of its rank's process.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return rank == rank_ ? reinterpret_cast<void*>(static_cast<std::uintptr_t>(buffer.offset)) : nullptr;
}

void ShmGroup::offer(std::uint64_t key, std::int32_t rank, std::shared_ptr<Segment> segment) {
  ZC_ASSERT(rank == rank_);
  Offer& offer = control_.rank(rank).offers[key % 2];
  const auto* use = segment->adopted ? nullptr : static_cast<const Use*>(segment->keep.get());
  offer.header_offset = use != nullptr ? use->offset() : 0;
  offer.adopted = segment->adopted ? 1 : 0;
  offer.file_offset_bytes = segment->file_offset_bytes;
  offer.memory = refer(segment->address, segment->bytes);
  offer.key.store(key + 1);
  offered_[key % 2] = std::move(segment);
}

std::shared_ptr<Segment> ShmGroup::find(std::uint64_t key, std::int32_t rank) {
  if (rank == rank_) return offered_[key % 2];
  const Offer& offer = control_.rank(rank).offers[key % 2];
  if (offer.key.load() != key + 1) return nullptr;
  auto segment = std::make_shared<Segment>();
  segment->bytes = offer.memory.bytes;
  segment->adopted = offer.adopted != 0;
  segment->file_offset_bytes = offer.file_offset_bytes;
  if (offer.memory.bytes == 0) return segment;
  segment->address = static_cast<std::byte*>(reach(rank, offer.memory));
  if (offer.header_offset != 0) {
    // The owner keeps its own use until everybody has found the segment, unless it was told of an error meanwhile.
    auto& users = header_at(*arena_, offer.header_offset).users;
    std::uint32_t seen = users.load();
    do {
      if (seen == 0 || seen == Header::kBeingFreed) return nullptr;
    } while (!users.compare_exchange_weak(seen, seen + 1));
    segment->keep = std::make_shared<Use>(arena_, offer.header_offset, nullptr);
  }
  return segment;
}

void ShmGroup::withdraw(std::uint64_t key, std::int32_t rank) {
  ZC_ASSERT(rank == rank_);
  control_.rank(rank).offers[key % 2].key.store(0);
  offered_[key % 2] = nullptr;
}

std::byte* ShmGroup::staging(std::int32_t rank, std::size_t half) const noexcept {
  return arena_->address() + staging_offset(control_.ranks(), rank) + half * kStagingHalfBytes;
}

std::size_t ShmGroup::staging_half_bytes() const noexcept { return kStagingHalfBytes; }

bool ShmGroup::has_died(std::int32_t rank) const noexcept {
  return (control_.rank(rank).liveness.word.load() & FUTEX_OWNER_DIED) != 0;
}

std::int64_t ShmGroup::silent_ns(std::int32_t rank) const noexcept {
  const Liveness& other = control_.rank(rank).liveness;
  return other.left.load() != 0 ? 0 : now_ns() - other.beat_ns.load();
}

}  // namespace zerocomm::transport
