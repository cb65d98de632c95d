// One rank gives a descriptor to others during one collective call.
#pragma once

#include "base/descriptor.hpp"
#include "base/function_ref.hpp"

#include <cstdint>
#include <string>

namespace zerocomm::boot {

// Both sides say the same `name`, which is used for one exchange at a time. Only processes of this user take part, in
// this network namespace. give_up() is asked about every 10 ms and ends the call with Error(CANCELED). Other errors:
// TIMEOUT, SYSTEM. Either side may come first.

// Returns when `receivers` have been served; each gets a duplicate.
void send_descriptor(const std::string& name, int descriptor, int receivers, std::int64_t deadline_ns,
                     FunctionRef<bool()> give_up);

// Called once by each receiver.
Descriptor receive_descriptor(const std::string& name, std::int64_t deadline_ns, FunctionRef<bool()> give_up);

}  // namespace zerocomm::boot
