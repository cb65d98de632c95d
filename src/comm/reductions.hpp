// The collectives that reduce: which part each rank reduces, and where it goes. Same results, same order of every sum,
// in each form.
#pragma once

#include "comm/operation.hpp"
#include "comm/posts.hpp"
#include "comm/selection.hpp"

#include <cstddef>

namespace zerocomm::comm {

bool is_reduction(Collective collective);
// Has each rank a block of the result?
bool scatters(const Operation& operation);

// Elements of the whole vector that a rank reduces: its own block of the result, or a part as large as everybody's.
Part reduced_share(const Operation& operation, Form form, std::int32_t ranks, std::int32_t self);

// Reduces elements [first, first + count) of the whole vector over all ranks' send buffers, into all results that they
// belong to.
void reduce_elements(const Comm& comm, const Operation& operation, const Peers& peers, device::Stores stores,
                     std::size_t first, std::size_t count) noexcept;

// Of inputs in rank order, into the outputs of the ranks named.
void reduce_to(const Comm& comm, const Operation& operation, const void* const* inputs, void* const* outputs,
               const std::int32_t* output_ranks, std::size_t output_count, std::size_t count,
               device::Stores stores) noexcept;

}  // namespace zerocomm::comm
