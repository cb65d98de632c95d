// What the ranks of one call have posted, and their buffers as this process sees them.
#pragma once

#include "comm/comm.hpp"

#include <zerocomm/coll.h>

namespace zerocomm::comm {

// The posts of one call, matched by its number or found by its key. A plain value; it refers to the arrays it was
// given.
class Posts {
 public:
  // Of call `sequence`: every rank takes part.
  Posts(const Comm& comm, std::uint64_t sequence) : comm_(&comm), sequence_(sequence) {}

  std::uint64_t sequence() const { return sequence_; }
  // The ranks that take part.
  std::size_t count() const { return static_cast<std::size_t>(comm_->ranks()); }
  std::int32_t rank(std::size_t index) const { return static_cast<std::int32_t>(index); }

  transport::Post& of(std::int32_t rank) const { return comm_->control().rank(rank).slots[sequence_ % 2].post; }
  transport::Post& own() const { return of(comm_->rank()); }
  bool has_come(std::int32_t rank) const {
    return comm_->control().rank(rank).slots[sequence_ % 2].sequence.load() > sequence_;
  }

  // The staging of a rank in a round.
  std::byte* half(std::int32_t rank, std::size_t round) const { return comm_->group().staging(rank, round % 2); }
  std::size_t half_bytes() const { return comm_->group().staging_half_bytes(); }

 private:
  const Comm* comm_;
  std::uint64_t sequence_;
};

// Addresses of the ranks' buffers in a call, as this process sees them.
class Peers {
 public:
  Peers(const Comm& comm, const Posts& posts) : comm_(&comm), posts_(&posts) {}
  const std::byte* send(std::int32_t rank) const { return address(rank, posts_->of(rank).send); }
  std::byte* recv(std::int32_t rank) const { return address(rank, posts_->of(rank).recv); }

  // Copies from a rank's send buffer, from wherever it is.
  zc_status copy_from(std::int32_t rank, std::size_t offset_bytes, void* destination, std::size_t bytes,
                      zc_traffic traffic) const noexcept;

 private:
  std::byte* address(std::int32_t rank, const transport::BufferRef& buffer) const {
    return static_cast<std::byte*>(comm_->group().reach(rank, buffer));
  }
  const Comm* comm_;
  const Posts* posts_;
};

}  // namespace zerocomm::comm
