// What the ranks of one call have posted, and their buffers as this process sees them.
#pragma once

#include "comm/comm.hpp"
#include "device/stores.hpp"

#include <zerocomm/coll.h>

#include <algorithm>
#include <string>

namespace zerocomm::comm {

// Where the post of one request lies in a rank's table, as far as this rank knows.
struct Place {
  static constexpr std::int32_t kNeverLooked = -2, kAbsent = -1;
  std::int32_t slot = kNeverLooked;
  std::uint32_t looked = 0;  // posts of that rank when it was looked for last
  bool told = false;         // that rank has been told that the request is over here

  bool is_known() const { return slot >= 0; }
};

// The posts of one call, matched by its number or found by its key. A plain value; it refers to the arrays it was
// given.
class Posts {
 public:
  // Of call `sequence`: every rank takes part.
  Posts(const Comm& comm, std::uint64_t sequence) : comm_(&comm), sequence_(sequence) {}
  // Of a request: the ranks of its key. `places` has one entry per rank.
  Posts(const Comm& comm, const transport::RequestKey& key, const Place* places)
      : comm_(&comm), key_(key), places_(places) {}

  // "call 7", "tag 3, turn 0" or "tag 3, turn 0 from rank 1 to 2".
  std::string name() const;
  // The ranks that take part, in rank order.
  std::size_t count() const { return key_.is_pair() ? 2 : static_cast<std::size_t>(comm_->ranks()); }
  std::int32_t rank(std::size_t index) const {
    if (!key_.is_pair()) return static_cast<std::int32_t>(index);
    return (index == 0) == (key_.from < key_.to) ? key_.from : key_.to;
  }

  transport::Post& of(std::int32_t rank) const {
    return places_ != nullptr ? slot(rank).post : comm_->control().rank(rank).slots[sequence_ % 2].post;
  }
  transport::Post& own() const { return of(comm_->rank()); }
  bool has_come(std::int32_t rank) const {
    if (places_ != nullptr) return places_[rank].is_known();
    return comm_->control().rank(rank).slots[sequence_ % 2].sequence.load() > sequence_;
  }
  // Of a request, of a rank that has come.
  transport::RequestSlot& slot(std::int32_t rank) const {
    return comm_->control().request(rank, static_cast<std::size_t>(places_[rank].slot));
  }

  // The staging of a rank in a round. That of a request belongs to its slot.
  std::byte* half(std::int32_t rank, std::size_t round) const {
    if (places_ == nullptr) return comm_->group().staging(rank, round % 2);
    return static_cast<std::byte*>(comm_->group().reach(rank, comm_->control().rank(rank).request_staging)) +
           (static_cast<std::size_t>(places_[rank].slot) * 2 + round % 2) * half_bytes();
  }
  std::size_t half_bytes() const {
    return places_ != nullptr ? request_half_bytes(comm_->ranks()) : comm_->group().staging_half_bytes();
  }
  static std::size_t request_half_bytes(std::int32_t ranks) {
    constexpr std::size_t kLeastBytes = std::size_t{16} << 10, kLaneBytes = 64;
    return std::max(kLeastBytes, kLaneBytes * static_cast<std::size_t>(ranks));
  }

 private:
  const Comm* comm_;
  std::uint64_t sequence_ = 0;
  transport::RequestKey key_;
  const Place* places_ = nullptr;
};

// Addresses of the ranks' buffers in a call, as this process sees them.
class Peers {
 public:
  Peers(const Comm& comm, const Posts& posts) : comm_(&comm), posts_(&posts) {}
  const std::byte* send(std::int32_t rank) const { return address(rank, posts_->of(rank).send); }
  std::byte* recv(std::int32_t rank) const { return address(rank, posts_->of(rank).recv); }

  // Copies from a rank's send buffer, from wherever it is.
  zc_status copy_from(std::int32_t rank, std::size_t offset_bytes, void* destination, std::size_t bytes,
                      device::Stores stores, zc_traffic traffic) const noexcept;

 private:
  std::byte* address(std::int32_t rank, const transport::BufferRef& buffer) const {
    return static_cast<std::byte*>(comm_->group().reach(rank, buffer));
  }
  const Comm* comm_;
  const Posts* posts_;
};

}  // namespace zerocomm::comm
