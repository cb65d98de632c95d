// What carries a communicator: the shared control segment, memory that other ranks can reach, and addresses of it.
//
// Two implementations: ranks that are threads of one process (thread_group.hpp) and ranks that are processes of one
// host (shm_group.hpp). Code above asks reach() for every address of another rank.
#pragma once

#include "topo/topology.hpp"
#include "transport/control.hpp"

#include <zerocomm/comm.h>

#include <memory>

namespace zerocomm::transport {

// Memory of one rank that others may reach. `keep` frees it with its last user, and is empty for memory that the caller
// keeps.
struct Segment {
  std::shared_ptr<void> keep;
  std::byte* address = nullptr;  // nullptr: adopted by another process, and not yet mapped here
  std::size_t bytes = 0;
  bool adopted = false;  // memory of the caller's own descriptor, at this place in it
  std::uint64_t file_offset_bytes = 0;
};

class Group {
 public:
  virtual ~Group() = default;
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  virtual const Control& control() const = 0;
  virtual const topo::Topology& topology() const = 0;
  virtual const char* name() const = 0;
  virtual zc_link link(std::int32_t from, std::int32_t to) const = 0;

  // Bytes that carry the communicator itself, as far as they are booked to this rank.
  virtual std::size_t control_bytes(std::int32_t rank) const = 0;

  // Zeroed memory that every rank can reach. Throws Error(NO_MEMORY) with the bytes wanted.
  virtual std::shared_ptr<Segment> allocate(std::int32_t rank, std::size_t bytes, const char* purpose) = 0;

  // What `address` is to the other ranks, and what a reference of another rank is to this process: nullptr if this
  // process cannot reach it.
  virtual BufferRef refer(const void* address, std::size_t bytes) const noexcept = 0;
  virtual void* reach(std::int32_t rank, const BufferRef& buffer) const noexcept = 0;
  // Do ranks that adopt memory have to hand its descriptor to the others?
  virtual bool exchanges_descriptors() const noexcept = 0;
  // Can every rank reach it?
  virtual bool is_shared(const BufferRef& buffer) const noexcept = 0;

  // Lay a segment out for others to find under (key, rank); find it; take it back. Two keys at a time, the second the
  // first plus 1 and even first. Every rank finds what it wants before the owner takes it back.
  virtual void offer(std::uint64_t key, std::int32_t rank, std::shared_ptr<Segment> segment) = 0;
  virtual std::shared_ptr<Segment> find(std::uint64_t key, std::int32_t rank) = 0;
  virtual void withdraw(std::uint64_t key, std::int32_t rank) = 0;

  // A group of some of these ranks, over the same memory; it lives on without this one. The first of its ranks makes
  // its core, which the others find like any segment, and every one joins with it. `rank` is the rank there. make_child
  // throws Error(NO_MEMORY).
  virtual std::shared_ptr<Segment> make_child(const topo::Topology& topology) = 0;
  virtual std::shared_ptr<Group> join_child(const std::shared_ptr<Segment>& core, topo::Topology topology,
                                            std::int32_t rank) = 0;

  // Staging of a rank, in two halves: for buffers that cannot be reached, and for what ranks tell each other in a call.
  static constexpr std::size_t kStagingHalfBytes = std::size_t{512} << 10;
  // Every rank calls prepare_staging before it announces a call that needs it. Throws Error(NO_MEMORY).
  virtual void prepare_staging() = 0;
  virtual std::byte* staging(std::int32_t rank, std::size_t half) const noexcept = 0;
  virtual std::size_t staging_half_bytes() const noexcept = 0;

  // Zeroed memory that every rank can reach and that stays until the last of them is gone. Throws Error(NO_MEMORY).
  virtual BufferRef allocate_for_all(std::int32_t rank, std::size_t bytes, const char* purpose) = 0;

  // Can every rank read every other's own memory? And the reading: 0, or what the system said.
  virtual bool can_read_private() const noexcept = 0;
  virtual int read_private(std::int32_t rank, const BufferRef& buffer, std::size_t offset_bytes, void* destination,
                           std::size_t bytes) const noexcept = 0;

  // Has this rank ended without saying so? Always false for threads.
  virtual bool has_died(std::int32_t rank) const noexcept = 0;
  // Nanoseconds since the rank's process was last seen running; 0 where nobody can tell.
  virtual std::int64_t silent_ns(std::int32_t rank) const noexcept = 0;
};

}  // namespace zerocomm::transport
