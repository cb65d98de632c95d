#include "transport/shm_group.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
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

std::uint64_t control_extent(std::int32_t ranks, std::int32_t requests) noexcept {
  return (Control::bytes(ranks, requests) + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// Builds the control segment of a group of processes in zeroed memory.
Control build_control(std::byte* memory, std::int32_t ranks, std::int32_t requests) {
  const Control control = Control::build(memory, ranks, requests);
  ControlHeader& header = control.header();
  ZC_REQUIRE(getrandom(header.secret, sizeof header.secret, 0) == sizeof header.secret, ZC_SYSTEM, "getrandom: %s",
             std::strerror(errno));
  return control;
}

}  // namespace

std::uint64_t ShmGroup::staging_offset(std::int32_t ranks, std::int32_t requests, std::int32_t rank) noexcept {
  return control_extent(ranks, requests) + static_cast<std::uint64_t>(rank) * 2 * kStagingHalfBytes;
}

Descriptor ShmGroup::create(std::int32_t ranks, std::int32_t requests, std::uint64_t bytes) {
  const std::uint64_t dynamic = staging_offset(ranks, requests, ranks);
  ZC_REQUIRE(bytes > dynamic, ZC_NO_MEMORY, "shared memory of %llu bytes: %d ranks need more than %llu (ZC_SHM_BYTES)",
             static_cast<unsigned long long>(bytes), ranks, static_cast<unsigned long long>(dynamic));
  Descriptor descriptor = ShmArena::create(bytes);
  const std::shared_ptr<ShmArena> arena = ShmArena::map(descriptor);
  std::atomic<std::uint64_t> nobody_else{0};
  arena->back(0, control_extent(ranks, requests), "control segment", nobody_else);
  build_control(arena->address(), ranks, requests).header().next_offset.store(dynamic);
  return descriptor;
}

ShmGroup::ShmGroup(const Descriptor& segment, topo::Topology topology, std::int32_t rank)
    : arena_(ShmArena::map(segment)),
      heap_(std::make_shared<ShmHeap>(arena_, Control(arena_->address()))),
      base_(arena_->address()),
      control_(base_),
      topology_(std::move(topology)),
      rank_(rank) {
  const auto ranks = static_cast<std::int32_t>(topology_.node_of_rank.size());
  ZC_REQUIRE(control_.header().magic == ControlHeader::kMagic && control_.ranks() == ranks, ZC_INTERNAL,
             "rank %d: the shared memory that came is not a communicator of %d ranks", rank, ranks);
  arena_->back(staging_offset(ranks, control_.requests(), rank), 2 * kStagingHalfBytes, "staging",
               control_.header().wanted_bytes);
  PrivateRead& own = control_.rank(rank).private_read;
  own.token = static_cast<std::uint64_t>(now_ns()) ^ static_cast<std::uint64_t>(getpid()) << 40;
  token_ = std::make_unique<const std::uint64_t>(own.token);
  own.address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(token_.get()));
}

ShmGroup::ShmGroup(const ShmGroup& parent, std::shared_ptr<Segment> core, topo::Topology topology, std::int32_t rank)
    : arena_(parent.arena_),
      heap_(parent.heap_),
      core_(std::move(core)),
      base_(core_->address),
      control_(base_),
      topology_(std::move(topology)),
      rank_(rank) {}

std::shared_ptr<Segment> ShmGroup::make_child(const topo::Topology& topology) {
  const auto ranks = static_cast<std::int32_t>(topology.node_of_rank.size());
  auto core = heap_->allocate(staging_offset(ranks, control_.requests(), ranks),
                              "control segment and staging of a child", nullptr);
  const Control control = build_control(core->address, ranks, control_.requests());
  heap_->mark_core(*core);
  // Whether ranks read each other's memory was found out when the first of the family was made.
  const ReadVerdict verdict = can_read_private() ? kCanRead : kMayNotRead;
  for (std::int32_t rank = 0; rank < ranks; ++rank) control.rank(rank).private_read.verdict.store(verdict);
  return core;
}

std::shared_ptr<Group> ShmGroup::join_child(const std::shared_ptr<Segment>& core, topo::Topology topology,
                                            std::int32_t rank) {
  return std::shared_ptr<Group>(new ShmGroup(*this, core, std::move(topology), rank));
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
  const std::size_t core_header_bytes = core_ ? kPageBytes : 0;
  return (rank == 0 ? control_extent(control_.ranks(), control_.requests()) + core_header_bytes : 0) +
         2 * kStagingHalfBytes + own_uses_->load() * kPageBytes;
}

std::shared_ptr<Segment> ShmGroup::allocate(std::int32_t rank, std::size_t bytes, const char* purpose) {
  ZC_ASSERT(rank == rank_);
  return heap_->allocate(bytes, purpose, own_uses_);
}

BufferRef ShmGroup::allocate_for_all(std::int32_t rank, std::size_t bytes, const char* purpose) {
  ZC_ASSERT(rank == rank_);
  const std::shared_ptr<Segment> segment = heap_->allocate(bytes, purpose, nullptr);
  heap_->leave_to_core(*segment);
  return refer(segment->address, bytes);
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
  offer.header_offset = ShmHeap::header_of(*segment);
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
    segment->keep = heap_->use(offer.header_offset);
    if (!segment->keep) return nullptr;
  }
  return segment;
}

void ShmGroup::withdraw(std::uint64_t key, std::int32_t rank) {
  ZC_ASSERT(rank == rank_);
  control_.rank(rank).offers[key % 2].key.store(0);
  offered_[key % 2] = nullptr;
}

std::byte* ShmGroup::staging(std::int32_t rank, std::size_t half) const noexcept {
  return base_ + staging_offset(control_.ranks(), control_.requests(), rank) + half * kStagingHalfBytes;
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
