// A rank that waits in an engine uses no processor time.
#include "world.hpp"

#include <gtest/gtest.h>

#include <ctime>

namespace zerocomm::test {
namespace {

std::int64_t thread_cpu_ns() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<std::int64_t>(used.tv_sec) * kSecondNs + used.tv_nsec;
}

TEST(IdleEngine, rank_that_waits_5_seconds_in_end_uses_at_most_one_tick_of_processor_time) {
  constexpr std::int64_t kTickNs = 10 * kMillisecondNs;
  const Model model({tensor("a", "u", 4'000), tensor("b", "v", 4'000)}, shape(8, ZC_STAGE_2, 4));
  run_ranks(8, [&](zc_comm* comm, std::int32_t rank) {
    const TestEngine engine(comm, model);
    engine.load_all();
    const std::vector<float> gradient(4'000, 1.0F);
    RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
    RANK_OK(zc_zero_grad_ready(engine, 1, gradient.data(), nullptr));
    if (rank == 7) std::this_thread::sleep_for(std::chrono::seconds(5));
    RANK_OK(zc_zero_grad_ready(engine, 0, gradient.data(), nullptr));
    const std::int64_t before_ns = thread_cpu_ns();
    RANK_OK(zc_zero_end(engine));
    const std::int64_t used_ns = thread_cpu_ns() - before_ns;
    RANK_CHECK(used_ns <= kTickNs, "rank %d used %lld ns of processor time while it waited", rank,
               static_cast<long long>(used_ns));
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

}  // namespace
}  // namespace zerocomm::test
