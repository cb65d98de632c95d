// Reductions over ranks' buffers: the leaf that runs a kernel and counts what it reads from and writes to other ranks.
#pragma once

#include "comm/comm.hpp"
#include "device/reduce.hpp"

namespace zerocomm::comm {

struct ReduceLeaf {
  const void* const* inputs = nullptr;  // one per rank, in rank order; nullptr: zeros
  void* const* outputs = nullptr;       // output_count addresses
  const std::int32_t* output_ranks = nullptr;
  std::size_t output_count = 0;
  std::size_t count = 0;  // elements
  zc_dtype dtype = ZC_DTYPE_NONE;
  zc_dtype output_dtype = ZC_DTYPE_NONE;
  zc_op op = ZC_OP_SUM;
  device::ReduceArgs args;
  zc_traffic traffic = ZC_TRAFFIC_DATA;
};

// The combination has been checked with device::check_reduce.
void reduce_over_ranks(const Comm& comm, const ReduceLeaf& leaf) noexcept;

}  // namespace zerocomm::comm
