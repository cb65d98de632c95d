// Cutting a unit: what zc_partition does once its arguments are read.
#pragma once

#include "shard/layout.hpp"

namespace zerocomm::shard {

// Copies what `rank` owns of a unit into its shards and zeroes the padding of the unit's blocks. See zc_partition.
// Throws Error(ARGUMENT) before the first byte is written.
void partition_unit(const Layout& layout, std::int32_t rank, std::size_t unit, const void* const* full,
                    void* const* shards);

}  // namespace zerocomm::shard
