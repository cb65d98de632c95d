// The collectives that reduce: which part each rank reduces, directly or in rounds through staging. Same results, same
// order of every sum.
#pragma once

#include "comm/operation.hpp"
#include "comm/posts.hpp"

#include <cstddef>

namespace zerocomm::comm {

bool is_reduction(Collective collective);

// Elements that a rank reduces in the direct form, and where they begin in the vector.
Part own_share(const Operation& operation, std::int32_t ranks, std::int32_t self);

// Reduces elements [first, first + count) of the own share over all ranks' send buffers, into all outputs.
void reduce_share(const Comm& comm, const Operation& operation, const Peers& peers, std::size_t first,
                  std::size_t count) noexcept;

// The same in rounds through halves of staging (copies.hpp).
std::size_t reduction_rounds(const Operation& operation, std::int32_t ranks, std::size_t half_bytes);
void fill_reduction(const Comm& comm, const Operation& operation, std::size_t round, std::byte* half,
                    std::size_t half_bytes) noexcept;
void read_reduction(const Comm& comm, const Operation& operation, const Posts& posts, std::size_t round,
                    std::size_t staging_round) noexcept;

}  // namespace zerocomm::comm
