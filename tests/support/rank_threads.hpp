// Ranks as threads of the test: a communicator whose handle r belongs to thread r, and a way to run code on all of
// them. With the variable ZC_TEST_SHARED_MEMORY the same threads use the transport of processes, so that every test of
// ranks is one of both.
#pragma once

#include "support/rank_failure.hpp"

#include <zerocomm/comm.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace zerocomm::test {

// How ranks are made. Zero means the default of a test: 60 s until a wait is given up.
struct RankOptions {
  std::int64_t deadline_ns = 0;
  std::int64_t spin_ns = 0;
  const char* topology = nullptr;
  std::int32_t requests = 0;
  bool helper_thread = false;
};

inline constexpr std::int64_t kSecondNs = 1'000'000'000;
inline constexpr std::int64_t kMillisecondNs = 1'000'000;

// Whether thread ranks use the transport of processes.
inline const bool kSharedMemory = std::getenv("ZC_TEST_SHARED_MEMORY") != nullptr;
// What carries bytes between two ranks of one node, and what is said of it.
inline const zc_link kNearLink = kSharedMemory ? ZC_LINK_HOST : ZC_LINK_THREAD;
inline const char* const kTransportName = kSharedMemory ? "shared memory" : "threads";

// How an error text names a rank: ranks of processes come with the process.
inline std::string rank_name(std::int32_t rank) {
  std::string text = "rank " + std::to_string(rank);
  if (kSharedMemory) text += " (pid " + std::to_string(getpid()) + ")";
  return text;
}

class RankThreads {
 public:
  using Body = std::function<void(zc_comm* comm, std::int32_t rank)>;

  explicit RankThreads(std::int32_t ranks, const RankOptions& options = {}) : comms_(static_cast<std::size_t>(ranks)) {
    zc_comm_config config{};
    config.struct_size = sizeof config;
    config.deadline_ns = options.deadline_ns != 0 ? options.deadline_ns : 60 * kSecondNs;
    config.spin_ns = options.spin_ns;
    config.topology = options.topology;
    config.requests = options.requests;
    config.helper_thread = options.helper_thread;
    create(ranks, config);
  }
  ~RankThreads() {
    for (zc_comm* comm : comms_) zc_comm_destroy(comm);
  }
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  std::int32_t ranks() const { return static_cast<std::int32_t>(comms_.size()); }
  zc_comm* comm(std::int32_t rank) const { return comms_[static_cast<std::size_t>(rank)]; }

  // Destroys one rank's handle before the others.
  void destroy(std::int32_t rank) {
    zc_comm*& comm = comms_[static_cast<std::size_t>(rank)];
    EXPECT_EQ(zc_comm_destroy(comm), ZC_OK) << zc_last_error();
    comm = nullptr;
  }

  // Runs `body` on every rank and returns when all have ended. A rank that throws kills the communicator, so that the
  // others do not wait for it; the first such text fails the test. May be called again.
  void run(const Body& body) {
    std::vector<std::thread> threads;
    for (std::int32_t rank = 0; rank < ranks(); ++rank) threads.emplace_back([&, rank] { run_one(body, rank); });
    for (std::thread& thread : threads) thread.join();
    if (!first_failure_.empty()) ADD_FAILURE() << first_failure_;
    first_failure_.clear();
  }

 private:
  void create(std::int32_t ranks, zc_comm_config& config) {
    if (!kSharedMemory) {
      if (zc_comm_create_threads(ranks, &config, comms_.data()) != ZC_OK) throw RankFailure(zc_last_error());
      return;
    }
    // The same threads over the transport of processes.
    zc_unique_id id;
    if (zc_unique_id_create(&id) != ZC_OK) throw RankFailure(zc_last_error());
    config.ranks = ranks;
    config.id = &id;
    std::vector<std::thread> threads;
    for (std::int32_t rank = 0; rank < ranks; ++rank)
      threads.emplace_back([this, rank, mine = config]() mutable {
        mine.rank = rank;
        if (zc_comm_create(&mine, &comms_[static_cast<std::size_t>(rank)]) == ZC_OK) return;
        const std::lock_guard lock(mutex_);
        first_failure_ = zc_last_error();
      });
    for (std::thread& thread : threads) thread.join();
    if (!first_failure_.empty()) throw RankFailure(first_failure_);
  }

  void run_one(const Body& body, std::int32_t rank) {
    try {
      body(comm(rank), rank);
    } catch (const std::exception& failure) {
      {
        const std::lock_guard lock(mutex_);
        if (first_failure_.empty()) first_failure_ = "rank " + std::to_string(rank) + ": " + failure.what();
      }
      if (comm(rank) != nullptr) zc_comm_abort(comm(rank));
    }
  }

  std::vector<zc_comm*> comms_;
  std::mutex mutex_;
  std::string first_failure_;
};

// One communicator for the length of one call of `body` on every rank.
inline void run_ranks(std::int32_t ranks, const RankThreads::Body& body, const RankOptions& options = {}) {
  RankThreads(ranks, options).run(body);
}

}  // namespace zerocomm::test
