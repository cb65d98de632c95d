// The frame of every collective: post, agree, move data, count the readers out.
#pragma once

#include "comm/operation.hpp"
#include "comm/posts.hpp"

namespace zerocomm::comm {

using Collect = Operation;

// Runs one collective. Where `local` is given it runs once all ranks agree, in place of moving data, and does not wait
// for other ranks; the call is over when it has run on all.
//
// MISMATCH leaves the communicator as it was before the call. The call holds the communicator: a second one at the same
// time is STATE.
zc_status run_collective(Comm& comm, Operation& what, FunctionRef<zc_status(const Peers&)>* local) noexcept;

// Fills in a post, before it is made visible.
void announce(const Comm& comm, transport::Post& post, const Operation& what, std::uint64_t failed_bytes) noexcept;

}  // namespace zerocomm::comm
