// A process that waits takes no processor time, its keeper included.
#include "support/child_ranks.hpp"
#include "support/engine_world.hpp"

#include <zerocomm/coll.h>

#include <gtest/gtest.h>

#include <sys/resource.h>

namespace zerocomm::test {
namespace {

constexpr std::int32_t kRanks = 8;
constexpr std::int64_t kMostNs = kSlack * 10 * kMillisecondNs;

// Of all threads of this process.
std::int64_t process_cpu_ns() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * kSecondNs +
         (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1'000;
}

// What a rank uses in 5 seconds in which all others wait for the last one, in `wait`, which comes then.
void expect_idle(const RankThreads::Body& prepare, const std::function<void(zc_comm*)>& wait) {
  const SharedArray<std::int64_t> used_ns(kRanks);
  RankProcesses(kRanks).run([&](zc_comm* comm, std::int32_t rank) {
    prepare(comm, rank);
    RANK_OK(zc_barrier(comm, nullptr));
    const std::int64_t before_ns = process_cpu_ns();
    if (rank == kRanks - 1) sleep_ns(5 * kSecondNs);
    wait(comm);
    used_ns[rank] = process_cpu_ns() - before_ns;
    RANK_OK(zc_barrier(comm, nullptr));
  });
  std::int64_t most_ns = 0;
  for (const std::int64_t each : used_ns) {
    EXPECT_LE(each, kMostNs);
    most_ns = std::max(most_ns, each);
  }
  std::printf("at most %.2f ms of processor time in 5 s\n", static_cast<double>(most_ns) * 1e-6);
}

TEST(IdleProcesses, use_at_most_one_tick_in_5_seconds_of_a_barrier) {
  expect_idle([](zc_comm*, std::int32_t) {}, [](zc_comm* comm) { RANK_OK(zc_barrier(comm, nullptr)); });
}

TEST(IdleProcesses, use_at_most_one_tick_in_5_seconds_of_zc_zero_end) {
  slice_of_table(0, ZC_DTYPE_F32, 1);
  WorldSetup setup;
  setup.model = hand_model({{"a", "u", "", 4'000, ZC_DTYPE_F32, false}, {"b", "v", "", 4'000, ZC_DTYPE_F32, false}});
  setup.ranks = kRanks;
  setup.layout.stage = ZC_STAGE_2;
  std::unique_ptr<RankEngine> engine;  // of the child
  expect_idle(
      [&](zc_comm* comm, std::int32_t) {
        engine = std::make_unique<RankEngine>(comm, setup);
        engine->load();
        engine->step(0);
        RANK_OK(zc_zero_begin(engine->zero(), "train", ZC_PHASE_ONLY));
        RANK_OK(zc_zero_grad_absent(engine->zero(), 1));
      },
      [&](zc_comm*) {
        RANK_OK(zc_zero_grad_absent(engine->zero(), 0));
        RANK_OK(zc_zero_end(engine->zero()));
      });
}

}  // namespace
}  // namespace zerocomm::test
