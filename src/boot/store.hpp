// How ranks meet over a key-value store of the caller.
#pragma once

#include "boot/rendezvous.hpp"
#include "boot/tcp.hpp"

#include <zerocomm/store.h>

namespace zerocomm::boot {

// Collective. Keys begin with "zerocomm/" and a hash of request.job, which names the job and the call. What an earlier
// joining of the same name has left there does no harm, and nothing is left by one that ends well.
//
// Throws Error, the same for all that are there: TIMEOUT names the ranks that did not come, MISMATCH ranks that
// disagree, UNSUPPORTED ranks on several hosts. For one rank alone: TIMEOUT if rank 0 did not come, TRANSPORT if a
// function of the store failed. Calls request.progress while it waits.
Meeting meet_over_store(const JoinRequest& request, const zc_store& store);

// For JoinRequest: the store's progress, or nothing.
std::function<std::optional<Error>()> progress_of(const zc_store& store, std::int32_t rank);

}  // namespace zerocomm::boot
