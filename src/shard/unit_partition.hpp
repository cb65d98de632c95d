// Cutting a unit, and finding it in whole buffers: what zc_partition and zc_layout_view do once their arguments are
// read.
#pragma once

#include "shard/layout.hpp"

namespace zerocomm::shard {

// Copies what `rank` owns of a unit into its shards and zeroes the padding of the unit's blocks. See zc_partition.
// Throws Error(ARGUMENT) before the first byte is written.
void partition_unit(const Layout& layout, std::int32_t rank, std::size_t unit, const void* const* full,
                    void* const* shards);

// Where the tensors of a unit lie in whole flat buffers. See zc_layout_view. Throws Error before anything is written.
void view_unit(const Layout& layout, std::size_t unit, const void* const* buffers, const void** tensors,
               std::size_t tensor_capacity);

}  // namespace zerocomm::shard
