// What ranks say of one call, compared; and who is missing.
#pragma once

#include "comm/operation.hpp"
#include "comm/posts.hpp"

namespace zerocomm::comm {

// Compares what all ranks said. Every rank sees the same posts, so every rank finds the same.
zc_status agree(Comm& comm, const Posts& posts, const Operation& what) noexcept;

// Names the ranks that have not posted, and what the first of them did last.
void blame_absent(const Comm& comm, const Posts& posts, const Operation& what, std::int32_t* culprit, char* text,
                  std::size_t capacity_bytes);

}  // namespace zerocomm::comm
