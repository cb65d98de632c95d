// Ranks that are processes of one host: one arena holds the control segment, every rank's staging, and all memory that
// windows and zc_mem_alloc bring. An object of this class is one rank's. A group of some of another's ranks lies in the
// same arena: control segment and staging are an allocation there.
#pragma once

#include "transport/group.hpp"
#include "transport/shm_arena.hpp"
#include "transport/shm_heap.hpp"

#include <string>

namespace zerocomm::transport {

class ShmGroup final : public Group {
 public:
  // Where things lie behind the beginning of the control segment.
  static std::uint64_t staging_offset(std::int32_t ranks, std::int32_t requests, std::int32_t rank) noexcept;
  // Makes the arena of a new communicator, with its control segment built. Throws Error.
  static Descriptor create(std::int32_t ranks, std::int32_t requests, std::uint64_t bytes);

  // Joins it as `rank`. Throws Error(NO_MEMORY) if there is none for the staging of this rank.
  ShmGroup(const Descriptor& segment, topo::Topology topology, std::int32_t rank);

  // Tries to read the token of every other rank, all of which have joined, and says so in the own block.
  void probe_private_reads(bool allowed) noexcept;
  // "process_vm_readv", or "staging" and why.
  std::string private_copy() const;

  const Control& control() const override { return control_; }
  const topo::Topology& topology() const override { return topology_; }
  const char* name() const override { return "shared memory"; }
  zc_link link(std::int32_t from, std::int32_t to) const override;
  std::size_t control_bytes(std::int32_t rank) const override;

  std::shared_ptr<Segment> allocate(std::int32_t rank, std::size_t bytes, const char* purpose) override;
  BufferRef refer(const void* address, std::size_t bytes) const noexcept override;
  void* reach(std::int32_t rank, const BufferRef& buffer) const noexcept override;
  bool exchanges_descriptors() const noexcept override { return true; }
  bool is_shared(const BufferRef& buffer) const noexcept override { return buffer.segment == 1 || buffer.bytes == 0; }

  void offer(std::uint64_t key, std::int32_t rank, std::shared_ptr<Segment> segment) override;
  std::shared_ptr<Segment> find(std::uint64_t key, std::int32_t rank) override;
  void withdraw(std::uint64_t key, std::int32_t rank) override;

  std::shared_ptr<Segment> make_child(const topo::Topology& topology) override;
  std::shared_ptr<Group> join_child(const std::shared_ptr<Segment>& core, topo::Topology topology,
                                    std::int32_t rank) override;

  void prepare_staging() override {}  // it is there from the beginning
  std::byte* staging(std::int32_t rank, std::size_t half) const noexcept override;
  std::size_t staging_half_bytes() const noexcept override;
  BufferRef allocate_for_all(std::int32_t rank, std::size_t bytes, const char* purpose) override;
  bool can_read_private() const noexcept override;
  int read_private(std::int32_t rank, const BufferRef& buffer, std::size_t offset_bytes, void* destination,
                   std::size_t bytes) const noexcept override;
  bool has_died(std::int32_t rank) const noexcept override;
  std::int64_t silent_ns(std::int32_t rank) const noexcept override;

 private:
  // Rank `rank` of a child of `parent`, whose memory is `core`.
  ShmGroup(const ShmGroup& parent, std::shared_ptr<Segment> core, topo::Topology topology, std::int32_t rank);

  std::shared_ptr<ShmArena> arena_;
  std::shared_ptr<ShmHeap> heap_;  // of this rank, shared with its parent and children
  std::shared_ptr<Segment> core_;  // of a child: control segment and staging
  std::byte* base_;                // the beginning of the control segment
  Control control_;
  topo::Topology topology_;
  std::int32_t rank_;
  ShmHeap::Count own_uses_ = std::make_shared<std::atomic<std::size_t>>(0);
  std::shared_ptr<Segment> offered_[2];
  std::unique_ptr<const std::uint64_t> token_;  // in memory of this process alone
};

}  // namespace zerocomm::transport
