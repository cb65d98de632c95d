// The frame of every collective: post, agree, move data, count the readers out.
#pragma once

#include "comm/call.hpp"
#include "comm/comm.hpp"

namespace zerocomm::comm {

// Which buffers other ranks touch when data moves directly. Where one of them cannot be reached, data goes through
// staging.
enum class Touches : std::uint8_t {
  nothing,
  send_of_all,
  send_of_root,
  both_of_all,
};

class Staging;

// What one rank brings to a collective.
struct Collect {
  transport::CallRecord call;
  const void* send = nullptr;
  std::size_t send_bytes = 0;
  void* recv = nullptr;
  std::size_t recv_bytes = 0;
  Touches touches = Touches::nothing;
  bool copies_alone = false;        // what is touched is read with Peers::copy_from
  std::int64_t deadline_ns = 0;     // 0: the communicator's
  std::uint64_t logical_bytes = 0;  // what the definition makes this rank receive
  zc_traffic traffic = ZC_TRAFFIC_DATA;
  // The same work in rounds through staging; needed where `touches` is not nothing.
  FunctionRef<zc_status(Staging&)>* staged = nullptr;
  // Runs when the communicator is held and before the call is announced, with the number of the call. Returns the bytes
  // that it wanted and did not get, for failed_bytes.
  FunctionRef<std::uint64_t(std::uint64_t)>* prepare = nullptr;
};

// Addresses of the ranks' buffers in a call, as this process sees them.
class Peers {
 public:
  Peers(const Comm& comm, std::uint64_t sequence) : comm_(&comm), slot_(sequence % 2) {}
  const std::byte* send(std::int32_t rank) const {
    return address(rank, comm_->control().rank(rank).slots[slot_].send);
  }
  std::byte* recv(std::int32_t rank) const { return address(rank, comm_->control().rank(rank).slots[slot_].recv); }

  // Copies from a rank's send buffer, from wherever it is.
  zc_status copy_from(std::int32_t rank, std::size_t offset_bytes, void* destination, std::size_t bytes,
                      zc_traffic traffic) const noexcept;

 private:
  std::byte* address(std::int32_t rank, const transport::BufferRef& buffer) const {
    return static_cast<std::byte*>(comm_->group().reach(rank, buffer));
  }
  const Comm* comm_;
  std::size_t slot_;
};

// Runs one collective. `move` copies or reduces this rank's share of the work; it runs once all ranks agree, and does
// not wait for them. It may be empty (nullptr): then the call is over when all ranks have come.
//
// MISMATCH leaves the communicator as it was before the call. The call holds the communicator: a second one at the same
// time is STATE.
zc_status run_collective(Comm& comm, const Collect& what, FunctionRef<zc_status(const Peers&)>* move) noexcept;

}  // namespace zerocomm::comm
