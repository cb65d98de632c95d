// The collectives in rounds through staging: same results, same order of every sum, for buffers that other processes
// cannot reach.
#pragma once

#include "comm/blocks.hpp"
#include "comm/staging.hpp"
#include "device/reduce.hpp"

namespace zerocomm::comm {

struct Reduction {
  zc_dtype dtype = ZC_DTYPE_NONE;
  zc_dtype output_dtype = ZC_DTYPE_NONE;
  zc_op op = ZC_OP_SUM;
  device::ReduceArgs args;
};

zc_status staged_all_reduce(const Comm& comm, Staging& staging, const void* send, void* recv, std::size_t count,
                            const Reduction& reduction, zc_traffic traffic) noexcept;
zc_status staged_reduce_scatter(const Comm& comm, Staging& staging, const void* send, void* recv, const Blocks& blocks,
                                const Reduction& reduction, zc_traffic traffic) noexcept;
zc_status staged_all_gather(const Comm& comm, Staging& staging, const void* send, void* recv, const Blocks& blocks,
                            zc_dtype dtype, bool in_place, zc_traffic traffic) noexcept;
zc_status staged_broadcast(const Comm& comm, Staging& staging, void* buffer, std::size_t bytes, std::int32_t root,
                           zc_traffic traffic) noexcept;

}  // namespace zerocomm::comm
