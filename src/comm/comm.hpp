// One rank's communicator: the shared group, its waits, its first error, its counters.
#pragma once

#include "base/clock.hpp"
#include "base/function_ref.hpp"
#include "comm/counters.hpp"
#include "comm/program_cache.hpp"
#include "comm/selection.hpp"
#include "transport/group.hpp"
#include "transport/keeper.hpp"

#include <zerocomm/comm.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

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
  std::int64_t told_ns = 0;  // how long it has waited when that is over, for the text; 0: the deadline
};

struct Settings {
  std::int64_t deadline_ns = 0;
  std::int64_t spin_ns = 0;
  std::int64_t yield_ns = 0;
  bool reproducible = true;
  std::int32_t requests = transport::Control::kDefaultRequests;
  bool helper_thread = false;
  Selection selection;
};

class Requests;

class Comm : public std::enable_shared_from_this<Comm> {
 public:
  Comm(std::shared_ptr<transport::Group> group, std::int32_t rank, const Settings& settings);

  ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  std::int32_t rank() const noexcept { return rank_; }
  std::int32_t ranks() const noexcept { return ranks_; }
  const Settings& settings() const noexcept { return settings_; }
  transport::Group& group() const noexcept { return *group_; }
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

  // Records TIMEOUT for all ranks; returns the first error.
  zc_status time_out(const WaitSpec& spec) const noexcept;

  // Makes this the first error of the communicator unless there is one already; returns the first error.
  zc_status record_first_error(zc_status status, const char* text) const noexcept;
  // The same for ABORTED, in a few stores: from any thread, also inside a signal handler.
  void abort() const noexcept;
  bool dead() const noexcept { return control().header().first_error.load() != 0; }

  // After an error: returns when no rank is copying from another rank's buffers.
  void wait_for_readers() const noexcept;

  // "rank 2", with its process where ranks are processes, and its rank in the parent where there is one. And what it
  // did last, as the flight recorder has it.
  void describe_rank(std::int32_t rank, char* text, std::size_t capacity_bytes) const noexcept;
  void describe_last(std::int32_t rank, char* text, std::size_t capacity_bytes) const noexcept;

  // Has the keeper of this process stand for this rank: from here on its end is PEER_LOST for the others.
  void stand(std::shared_ptr<transport::Keeper> keeper);
  const std::shared_ptr<transport::Keeper>& keeper() const noexcept { return keeper_; }  // nullptr for threads

  transport::FlightRing& flight() const noexcept { return control().flight(rank_); }
  // A note in it.
  void note(const char* label, std::uint64_t value) const noexcept;

  // How large private buffers are copied, for printing. Set once at creation.
  std::string private_copy = "none needed";
  std::uint64_t strangers = 0;  // turned away when it was made

  // Of a communicator that was split off: the rank in its parent that each of its ranks has. Set once at creation.
  std::vector<std::int32_t> parent_ranks;

  // Moves bytes between ranks, the leaves where traffic is counted. `from` and `to` are ranks; one of them is this one.
  void copy(void* destination, const void* source, std::size_t bytes, std::int32_t peer,
            zc_traffic traffic) const noexcept;
  void count_moved(std::int32_t peer, std::size_t bytes, zc_traffic traffic) const noexcept;

  // The requests of this rank, from the first one on. Throws as Requests does.
  Requests& requests();
  // Are any in flight?
  bool has_requests() const noexcept;

  // Detaches this rank.
  void detach() noexcept;

  // One collective at a time.
  std::atomic<bool> in_collective{false};
  std::uint64_t next_sequence = 0;
  mutable ProgramCache programs;            // schedules that moved data, made ready
  std::vector<std::size_t> source_offsets;  // one per rank: room for zc_all_to_all_v

  // Memory that this rank allocated through the communicator, for the ledger.
  std::atomic<std::size_t> window_bytes{0};
  std::atomic<std::size_t> word_bytes{0};
  std::atomic<std::size_t> memory_bytes{0};
  std::mutex memory_mutex;
  std::map<void*, std::shared_ptr<transport::Segment>> memory;  // zc_mem_alloc
  // The segment of zc_mem_alloc that holds all of this range, or nothing.
  std::shared_ptr<transport::Segment> find_memory(const void* address, std::size_t bytes) noexcept;

  // The caller's handle keeps its communicator; windows do too, so that they may be destroyed in any order.
  std::shared_ptr<Comm> handle;

 private:
  zc_status first_error() const noexcept;
  void record_lost(std::int32_t rank) const noexcept;

  std::shared_ptr<transport::Group> group_;
  std::int32_t rank_;
  std::int32_t ranks_;
  Settings settings_;
  std::uint32_t fork_generation_;
  mutable Counters counters_;
  mutable std::mutex record_mutex_;  // of this rank's error record
  std::shared_ptr<transport::Keeper> keeper_;
  std::uint64_t keeper_id_ = 0;
  std::mutex requests_mutex_;
  std::unique_ptr<Requests> requests_;
  std::atomic<Requests*> made_requests_{nullptr};
};

}  // namespace zerocomm::comm

// The handle of the C interface.
struct zc_comm final : zerocomm::comm::Comm {
  using Comm::Comm;
};
