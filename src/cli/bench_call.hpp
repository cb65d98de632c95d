// One collective with its arguments, ready to be called again and again.
#pragma once

#include "cli/bench_wire.hpp"

#include <zerocomm/coll.h>

#include <vector>

namespace zerocomm::cli {

struct BenchCall {
  zc_comm* comm = nullptr;
  Collective collective = Collective::barrier;
  zc_dtype dtype = ZC_DTYPE_NONE;
  zc_op op = ZC_OP_NONE;
  std::int32_t root = 0;
  std::size_t count = 0;  // as the function takes it
  std::vector<std::size_t> counts, recv_counts;
  std::byte* send = nullptr;
  std::byte* recv = nullptr;
  std::size_t send_count = 0, recv_count = 0;  // elements at send and recv of this rank
  std::size_t send_offset = 0;                 // of this rank's own block, in the whole vector
  zc_coll_options options{};

  zc_status operator()() const;
};

// `first` and `second` are the two buffers; in place only the first is used.
BenchCall make_call(const BenchRequest& request, zc_comm* comm, std::int32_t rank, std::int32_t ranks, std::byte* first,
                    std::byte* second);

}  // namespace zerocomm::cli
