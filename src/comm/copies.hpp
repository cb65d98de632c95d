// The collectives that only copy, as data: which block goes from which rank to which. Pure, but for the moving itself.
//
// A sender has one or more lanes: blocks of its send buffer. All lanes are read by one rank each, or the only one by
// all. What is said here holds for the direct form and for rounds through staging.
#pragma once

#include "comm/operation.hpp"
#include "comm/posts.hpp"
#include "comm/selection.hpp"

#include <cstddef>
#include <cstdint>

namespace zerocomm::comm {

// A block that a rank gets from a peer, in elements. None: count 0.
struct Incoming {
  std::size_t source_offset = 0;       // in the peer's send buffer
  std::size_t destination_offset = 0;  // in the own recv buffer
  std::size_t count = 0;
  std::size_t lane = 0;  // of the peer
};

bool is_copy(Collective collective);

Incoming incoming(const Operation& operation, std::int32_t ranks, std::int32_t self, std::int32_t peer);

// Has a sender a lane for every rank?
bool has_lane_per_rank(Collective collective);
// The lanes of a sender, and what lies in one of them.
std::size_t lanes(const Operation& operation, std::int32_t ranks);
Part outgoing(const Operation& operation, std::int32_t ranks, std::int32_t self, std::size_t lane);
// The most elements of any lane of any rank.
std::size_t longest_lane(const Operation& operation, std::int32_t ranks);

// How far the direct form has come.
struct CopyCursor {
  std::int32_t step = 0;  // peers done
  std::size_t first = 0;  // elements of the present one
};

// Pull: copies at most about `slice_bytes` from the peers' send buffers. `*done` when nothing is left.
zc_status copy_slice(const Comm& comm, const Operation& operation, const Peers& peers, device::Stores stores,
                     CopyCursor* cursor, std::size_t slice_bytes, bool* done) noexcept;

// Spread, of all-gathers and broadcasts: the elements of the whole vector that a rank moves, and the moving of `count`
// of them from `first` on into all results.
Part spread_share(const Operation& operation, std::int32_t ranks, std::int32_t self);
void spread_copies(const Comm& comm, const Operation& operation, const Peers& peers, device::Stores stores,
                   std::size_t first, std::size_t count) noexcept;

}  // namespace zerocomm::comm
