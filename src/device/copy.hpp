// Copies of host memory that choose how they store.
#pragma once

#include "device/level.hpp"
#include "device/stores.hpp"

#include <cstddef>

namespace zerocomm::device {

// Any alignment. The ranges do not overlap.
void copy(void* output, const void* source, std::size_t bytes, Stores stores) noexcept;

// One source into several outputs: each line of it is read once. Streaming stores go to every output that lies on the
// same place in its cache line as the first.
using CopyToManyFn = void (*)(const void* source, void* const* outputs, std::size_t output_count, std::size_t bytes,
                              Stores stores) noexcept;
void copy_to_many(const void* source, void* const* outputs, std::size_t output_count, std::size_t bytes,
                  Stores stores) noexcept;

// The kernel of one level; nullptr if this host does not have it.
CopyToManyFn find_copy_to_many(Level level) noexcept;

}  // namespace zerocomm::device
