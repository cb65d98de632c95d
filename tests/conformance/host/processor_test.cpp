// Little processor time: one core, or a quota of one. Ranks end, and those that wait take none of it.
#include "host/box.hpp"

#include <sys/resource.h>

namespace zerocomm::test {
namespace {

constexpr std::int32_t kRanks = 8;

class ProcessorGroup : public ControlGroup {
 public:
  ProcessorGroup() : ControlGroup("cpu") { set("cpu.cfs_quota_us", "100000", "cpu.max", "100000 100000"); }
};

std::int64_t own_cpu_ns() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * kSecondNs +
         (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1'000;
}

// Many small calls, then a long wait for one rank.
void work_and_wait(zc_comm* comm, std::int32_t rank) {
  for (std::int64_t turn = 0; turn < 200; ++turn) {
    std::int64_t value = rank + turn;
    RANK_OK(zc_barrier(comm, nullptr));
    RANK_OK(zc_all_reduce(comm, &value, &value, 1, ZC_DTYPE_I64, ZC_OP_SUM, nullptr));
    RANK_CHECK(value == 28 + 8 * turn, "turn %lld: %lld", static_cast<long long>(turn), static_cast<long long>(value));
  }
  use_everything(comm, rank);
  RANK_OK(zc_barrier(comm, nullptr));
  if (rank == kRanks - 1) sleep_ns(2 * kSecondNs);
  const std::int64_t before_ns = own_cpu_ns();
  RANK_OK(zc_barrier(comm, nullptr));
  const std::int64_t used_ns = own_cpu_ns() - before_ns;
  RANK_CHECK(used_ns <= kSlack * 10 * kMillisecondNs, "%.3f ms of processor time in a wait",
             static_cast<double>(used_ns) * 1e-6);
}

void stay_on_one_core() {
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  for (std::size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
  RANK_CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "%s", std::strerror(errno));
}

TEST(Processor, of_one_core_is_enough_for_8_ranks) {
  ChildRanks ranks(kRanks, work_and_wait, {}, [](std::int32_t) { stay_on_one_core(); });
  expect_ok(ranks.wait(kSlack * 60 * kSecondNs));
}

TEST(Processor, quota_of_one_core_is_enough_for_8_ranks) {
  const ProcessorGroup group;
  if (!group.why_not().empty()) GTEST_SKIP() << group.why_not();
  ChildRanks ranks(kRanks, work_and_wait, {}, [&](std::int32_t) { group.enter(); });
  expect_ok(ranks.wait(kSlack * 60 * kSecondNs));
}

std::int64_t spin_of(const Children::Body& before) {
  const SharedArray<std::int64_t> spins(2);
  ChildRanks ranks(
      2,
      [&](zc_comm* comm, std::int32_t rank) {
        zc_comm_info info{};
        info.struct_size = sizeof info;
        RANK_OK(zc_comm_get_info(comm, &info));
        spins[rank] = info.spin_ns;
      },
      {}, before);
  expect_ok(ranks.wait());
  EXPECT_EQ(spins[0], spins[1]);
  return spins[0];
}

// Two ranks that share one core must not spin against each other; on a core each they may.
TEST(Processor, decides_whether_ranks_spin) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "there is one core only";
  EXPECT_GT(spin_of([](std::int32_t) {}), 0);
  EXPECT_EQ(spin_of([](std::int32_t) { stay_on_one_core(); }), 0);
}

TEST(Processor, quota_decides_whether_ranks_spin) {
  const ProcessorGroup group;
  if (!group.why_not().empty()) GTEST_SKIP() << group.why_not();
  EXPECT_EQ(spin_of([&](std::int32_t) { group.enter(); }), 0);
}

}  // namespace
}  // namespace zerocomm::test
