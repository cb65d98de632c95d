// Windows over memory that the caller keeps in a memfd of its own: every rank maps it, through the descriptor.
#pragma once

#include "comm/comm.hpp"

#include <memory>

namespace zerocomm::comm {

// Maps [offset_bytes, offset_bytes + bytes) of a sealed memfd. Throws Error: ARGUMENT if it is none, is not sealed
// against shrinking, or is shorter; SYSTEM.
std::shared_ptr<transport::Segment> map_descriptor(std::int32_t rank, int descriptor, std::uint64_t offset_bytes,
                                                   std::size_t bytes);

// In the move of a collective, on every rank: gives the descriptors of those parts that were adopted to all ranks, and
// maps them. `parts` are those of all ranks, as found. Returns the communicator's error if it fails.
zc_status exchange_adopted(const Comm& comm, std::uint64_t call, int own_descriptor,
                           std::shared_ptr<transport::Segment>* parts) noexcept;

}  // namespace zerocomm::comm
