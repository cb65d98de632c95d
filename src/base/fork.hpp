// Detects use of the library's objects in a child made by fork.
#pragma once

#include <cstdint>

namespace zerocomm {

// Changes in the child of a fork, and never otherwise. An object notes it at creation and compares later.
std::uint32_t fork_generation() noexcept;

}  // namespace zerocomm
