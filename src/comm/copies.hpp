// The collectives that only copy, as data: which block goes from which rank to which. Pure, but for the moving itself.
//
// A sender has one or more lanes: blocks of its send buffer. All lanes are read by one rank each, or the only one by
// all. What is said here holds for the direct form and for rounds through staging.
#pragma once

#include "comm/operation.hpp"
#include "comm/posts.hpp"

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

// Copies at most about `slice_bytes` from the peers' send buffers. `*done` when nothing is left.
zc_status copy_slice(const Comm& comm, const Operation& operation, const Peers& peers, CopyCursor* cursor,
                     std::size_t slice_bytes, bool* done) noexcept;

// The same in rounds through halves of staging: how many, and what is done in each. Round numbers from 0; `first_round`
// is the staging's own number of round 0.
std::size_t copy_rounds(const Operation& operation, std::int32_t ranks, std::size_t half_bytes);
void fill_copies(const Comm& comm, const Operation& operation, std::size_t round, std::byte* half,
                 std::size_t half_bytes) noexcept;
void read_copies(const Comm& comm, const Operation& operation, const Posts& posts, std::size_t round,
                 std::size_t staging_round) noexcept;

}  // namespace zerocomm::comm
