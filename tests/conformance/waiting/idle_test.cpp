// Waiting costs nothing, and more ranks than cores are normal.
#include "support/rank_threads.hpp"

#include <zerocomm/coll.h>

#include <gtest/gtest.h>

#include <sched.h>

#include <chrono>
#include <ctime>

namespace zerocomm::test {
namespace {

constexpr std::int32_t kRanks = 8;

// Keeps this process on two cores while it lives.
class TwoCores {
 public:
  TwoCores() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t two;
    CPU_ZERO(&two);
    for (std::size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++core)
      if (CPU_ISSET(core, &before_)) CPU_SET(core, &two);
    sched_setaffinity(0, sizeof two, &two);
  }
  ~TwoCores() { sched_setaffinity(0, sizeof before_, &before_); }
  TwoCores(const TwoCores&) = delete;
  TwoCores& operator=(const TwoCores&) = delete;

 private:
  cpu_set_t before_;
};

std::int64_t own_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

TEST(Idle, rank_that_waits_5_seconds_uses_at_most_one_tick_of_processor_time) {
  const TwoCores two;
  run_ranks(kRanks, [](zc_comm* comm, std::int32_t rank) {
    RANK_OK(zc_barrier(comm, nullptr));
    if (rank == kRanks - 1) std::this_thread::sleep_for(std::chrono::seconds(5));
    const std::int64_t before_ns = own_cpu_ns();
    RANK_OK(zc_barrier(comm, nullptr));
    const std::int64_t used_ns = own_cpu_ns() - before_ns;
    RANK_CHECK(used_ns <= 10 * kMillisecondNs, "%.3f ms", static_cast<double>(used_ns) * 1e-6);
  });
}

TEST(Idle, thousand_barriers_and_thousand_small_sums_pass_with_4_ranks_a_core) {
  const TwoCores two;
  const auto start = std::chrono::steady_clock::now();
  run_ranks(kRanks, [](zc_comm* comm, std::int32_t rank) {
    for (std::int64_t turn = 0; turn < 1000; ++turn) {
      RANK_OK(zc_barrier(comm, nullptr));
      std::int64_t value = rank + turn;
      RANK_OK(zc_all_reduce(comm, &value, &value, 1, ZC_DTYPE_I64, ZC_OP_SUM, nullptr));
      RANK_CHECK(value == 28 + 8 * turn, "turn %lld: %lld", static_cast<long long>(turn),
                 static_cast<long long>(value));
    }
  });
  RecordProperty(
      "milliseconds",
      static_cast<int>(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count()));
}

// Spinning changes no result, only who wakes whom.
TEST(Idle, every_spin_setting_works_with_more_ranks_than_cores) {
  for (const std::int64_t spin_ns : {ZC_POLL, std::int64_t{1000}, 5 * kMillisecondNs}) {
    run_ranks(5,
              [](zc_comm* comm, std::int32_t) {
                for (int turn = 0; turn < 100; ++turn) RANK_OK(zc_barrier(comm, nullptr));
              },
              {.spin_ns = spin_ns});
  }
}

}  // namespace
}  // namespace zerocomm::test
