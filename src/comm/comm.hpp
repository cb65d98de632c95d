// One rank's communicator: the shared group, its waits, its first error, its counters.
#pragma once

#include "base/clock.hpp"
#include "base/function_ref.hpp"
#include "comm/counters.hpp"
#include "transport/thread_group.hpp"

#include <zerocomm/comm.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace zerocomm::comm {

// What a wait is about. Zero means the default.
struct WaitSpec {
  std::int64_t deadline_ns = 0;
  const char* label = nullptr;
  // Writes the rank that is waited for (or ZC_NONE) and a short text.
  FunctionRef<void(std::int32_t*, char*, std::size_t)>* blame = nullptr;
  // Others count on this rank already: a poll that finds nothing is TIMEOUT, not AGAIN.
  bool announced = false;
  // Nanoseconds more to wait when the deadline has passed; 0: none.
  FunctionRef<std::int64_t()>* extend_ns = nullptr;
};

struct Settings {
  std::int64_t deadline_ns = 0;
  std::int64_t spin_ns = 0;
};

class Comm : public std::enable_shared_from_this<Comm> {
 public:
  Comm(std::shared_ptr<transport::ThreadGroup> group, std::int32_t rank, const Settings& settings);

  std::int32_t rank() const noexcept { return rank_; }
  std::int32_t ranks() const noexcept { return ranks_; }
  const Settings& settings() const noexcept { return settings_; }
  transport::ThreadGroup& group() const noexcept { return *group_; }
  const transport::Control& control() const noexcept { return group_->control(); }
  transport::RankBlock& own_block() const noexcept { return control().rank(rank_); }
  Counters& counters() const noexcept { return counters_; }

  // FORKED in a child of the creator; else ZC_OK.
  zc_status check_process() const noexcept;

  // FORKED in a child of the creator; the first error if there is one; else ZC_OK. Sets the last error text.
  zc_status check_alive() const noexcept;

  // Spin, then sleep, until ready() is not 0. 1: ZC_OK. Negative: minus that status, whose text ready() has set.
  // Runs progress meanwhile. When the deadline passes, records TIMEOUT for all ranks.
  zc_status wait(FunctionRef<int()> ready, const WaitSpec& spec) const noexcept;

  // Makes this the first error of the communicator unless there is one already; returns the first error.
  zc_status record_first_error(zc_status status, const char* text) const noexcept;
  bool dead() const noexcept;

  // After an error: returns when no rank is copying from another rank's buffers.
  void wait_for_readers() const noexcept;

  // Moves bytes between ranks, the leaves where traffic is counted. `from` and `to` are ranks; one of them is this one.
  void copy(void* destination, const void* source, std::size_t bytes, std::int32_t peer,
            zc_traffic traffic) const noexcept;
  void count_moved(std::int32_t peer, std::size_t bytes, zc_traffic traffic) const noexcept;

  // Detaches this rank.
  void detach() const noexcept;

  // One collective at a time.
  std::atomic<bool> in_collective{false};
  std::uint64_t next_sequence = 0;

  // Memory that this rank allocated through the communicator, for the ledger.
  std::atomic<std::size_t> window_bytes{0};
  std::atomic<std::size_t> word_bytes{0};
  std::atomic<std::size_t> memory_bytes{0};
  std::mutex memory_mutex;
  std::map<void*, std::shared_ptr<Pages>> memory;  // zc_mem_alloc
  // The pages of zc_mem_alloc that hold all of this range, or nothing.
  std::shared_ptr<Pages> find_memory(const void* address, std::size_t bytes) noexcept;

  // The caller's handle keeps its communicator; windows do too, so that they may be destroyed in any order.
  std::shared_ptr<Comm> handle;

 private:
  zc_status time_out(const WaitSpec& spec) const noexcept;

  std::shared_ptr<transport::ThreadGroup> group_;
  std::int32_t rank_;
  std::int32_t ranks_;
  Settings settings_;
  std::uint32_t fork_generation_;
  mutable Counters counters_;
};

}  // namespace zerocomm::comm

// The handle of the C interface.
struct zc_comm final : zerocomm::comm::Comm {
  using Comm::Comm;
};
