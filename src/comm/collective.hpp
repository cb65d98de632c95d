// The frame of every collective: post, agree, move data, count the readers out.
#pragma once

#include "comm/operation.hpp"
#include "comm/posts.hpp"

namespace zerocomm::comm {

using Collect = Operation;

// The communicator for one blocking call, which may consist of several collectives: those say `held`. Another call of
// another thread is STATE meanwhile.
class Hold {
 public:
  explicit Hold(Comm& comm) noexcept : comm_(comm.in_collective.exchange(true) ? nullptr : &comm) {}
  ~Hold() {
    if (comm_ != nullptr) comm_->in_collective.store(false);
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  bool is_held() const noexcept { return comm_ != nullptr; }
  // Of a call that found it held by another.
  static zc_status refuse(const Comm& comm, const transport::CallRecord& call) noexcept;

 private:
  Comm* comm_;
};

// Runs one collective. Where `local` is given it runs once all ranks agree, in place of moving data, and does not wait
// for other ranks; the call is over when it has run on all.
//
// MISMATCH leaves the communicator as it was before the call. The call holds the communicator unless its
// caller does.
zc_status run_collective(Comm& comm, Operation& what, FunctionRef<zc_status(const Peers&)>* local) noexcept;

// Fills in a post, before it is made visible.
void announce(const Comm& comm, transport::Post& post, const Operation& what, std::uint64_t failed_bytes) noexcept;

}  // namespace zerocomm::comm
