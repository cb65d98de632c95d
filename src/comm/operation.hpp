// One rank's part in a collective as a plain value: what it says to the others, and where its buffers are.
#pragma once

#include "base/function_ref.hpp"
#include "comm/blocks.hpp"
#include "transport/control.hpp"

#include <zerocomm/coll.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace zerocomm::comm {

class Peers;
struct MovePlan;

struct Operation {
  transport::CallRecord call;
  const void* send = nullptr;
  std::size_t send_bytes = 0;
  void* recv = nullptr;
  std::size_t recv_bytes = 0;
  // Of the _v forms, one per rank; of zc_all_to_all_v what goes to each rank and what comes from it.
  const std::size_t* counts = nullptr;
  const std::size_t* recv_counts = nullptr;
  // zc_all_to_all_v: room for one number per rank, where in the other ranks' buffers this rank's blocks begin.
  std::size_t* source_offsets = nullptr;
  std::size_t longest =
      0;  // of zc_all_to_all_v: the longest block of any rank, once the ranks have compared their counts
  zc_traffic traffic = ZC_TRAFFIC_DATA;
  std::int64_t deadline_ns = 0;     // 0: the communicator's
  bool held = false;                // the caller holds the communicator, over several calls
  std::uint64_t logical_bytes = 0;  // what the definition makes this rank receive

  Collective collective() const { return static_cast<Collective>(call.collective); }
  zc_dtype dtype() const { return static_cast<zc_dtype>(call.dtype); }
  zc_dtype output_dtype() const { return static_cast<zc_dtype>(call.output_dtype); }
  zc_op op() const { return static_cast<zc_op>(call.op); }
  bool in_place() const { return call.in_place == 1; }

  // The schedule that moves the data; empty: the native form.
  std::shared_ptr<const MovePlan> plan;

  // Calls that move no data of their own.
  // `prepare` runs when the communicator is held and before the call is announced, with the number of the call. Returns
  // the bytes that it wanted and did not get, for failed_bytes.
  FunctionRef<std::uint64_t(std::uint64_t)>* prepare = nullptr;
};

// How the call's vector is cut into blocks. Counts are those of one rank where they are equal.
inline Blocks blocks_of(const Operation& operation, std::int32_t ranks) {
  return {static_cast<std::size_t>(ranks), static_cast<std::size_t>(operation.call.count), operation.counts};
}

}  // namespace zerocomm::comm
