// The collectives on host memory in their native, direct forms: one pass, contributions in rank order.
//
// Arguments are checked here before anything is announced. What each computes is specified by the schedule "direct" of
// src/schedule, and tests hold the two against each other bit for bit.
#pragma once

#include "comm/comm.hpp"
#include "comm/schedules.hpp"

#include <zerocomm/request.h>

namespace zerocomm::comm {

struct Options {
  std::int64_t deadline_ns = 0;
  zc_dtype output_dtype = ZC_DTYPE_NONE;
  zc_traffic traffic = ZC_TRAFFIC_DATA;
  double premul = 1.0;
  ScheduleChoice schedule;
  zc_request** request = nullptr;  // where the request goes; nullptr: blocking
  std::int64_t tag = 0;
  bool held = false;  // the caller holds the communicator, over several calls
};

zc_status all_reduce(Comm& comm, const void* send, void* recv, std::size_t count, zc_dtype dtype, zc_op op,
                     const Options& options);

// `counts` NULL: `count` elements on every rank.
zc_status reduce_scatter(Comm& comm, const void* send, void* recv, std::size_t count, const std::size_t* counts,
                         zc_dtype dtype, zc_op op, const Options& options);
zc_status all_gather(Comm& comm, const void* send, void* recv, std::size_t count, const std::size_t* counts,
                     zc_dtype dtype, const Options& options);
zc_status reduce(Comm& comm, const void* send, void* recv, std::size_t count, zc_dtype dtype, zc_op op,
                 std::int32_t root, const Options& options);
zc_status all_to_all(Comm& comm, const void* send, void* recv, std::size_t count, zc_dtype dtype,
                     const Options& options);
zc_status all_to_all_v(Comm& comm, const void* send, const std::size_t* send_counts, void* recv,
                       const std::size_t* recv_counts, zc_dtype dtype, const Options& options);
zc_status gather_to_root(Comm& comm, const void* send, void* recv, std::size_t count, zc_dtype dtype, std::int32_t root,
                         const Options& options);
zc_status scatter_from_root(Comm& comm, const void* send, void* recv, std::size_t count, zc_dtype dtype,
                            std::int32_t root, const Options& options);
zc_status broadcast(Comm& comm, void* buffer, std::size_t count, zc_dtype dtype, std::int32_t root,
                    const Options& options);
zc_status send(Comm& comm, const void* send, std::size_t count, zc_dtype dtype, std::int32_t to,
               const Options& options);
zc_status recv(Comm& comm, void* recv, std::size_t count, zc_dtype dtype, std::int32_t from, const Options& options);
zc_status barrier(Comm& comm, const Options& options);

}  // namespace zerocomm::comm
