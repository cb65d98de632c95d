// Bells: no wake is ever lost.
#include "base/wait.hpp"

#include "base/clock.hpp"

#include <gtest/gtest.h>

#include <sched.h>

#include <thread>

namespace zerocomm {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

// Waits as the library does, always sleeping, and fails the test if a sleep runs into its limit.
template <class Ready>
void wait_for(Bell& bell, Ready&& ready) {
  bell.sleepers.fetch_add(1);
  for (;;) {
    const std::uint32_t seen = bell.count.load();
    if (ready()) break;
    const std::int64_t before_ns = now_ns();
    sleep_on(bell, seen, 20 * kSecondNs);
    if (now_ns() - before_ns > 19 * kSecondNs) {
      ADD_FAILURE() << "a wake was lost";
      break;
    }
  }
  bell.sleepers.fetch_sub(1);
}

TEST(Bell, two_threads_hand_over_200000_times) {
  constexpr std::uint32_t kTurns = 100'000;
  Bell bells[2];
  std::atomic<std::uint32_t> turn{0};
  const auto play = [&](std::uint32_t self) {
    for (std::uint32_t i = 0; i < kTurns; ++i) {
      const std::uint32_t wanted = 2 * i + self;
      wait_for(bells[self], [&] { return turn.load() == wanted; });
      turn.store(wanted + 1);
      ring(bells[1 - self]);
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  EXPECT_EQ(turn.load(), 2 * kTurns);
}

TEST(Bell, wakes_all_its_sleepers) {
  Bell bell;
  std::atomic<bool> open{false};
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 10; ++i) sleepers.emplace_back([&] { wait_for(bell, [&] { return open.load(); }); });
  while (bell.sleepers.load() < 10) std::this_thread::yield();
  open = true;
  ring(bell);
  for (std::thread& sleeper : sleepers) sleeper.join();
  EXPECT_EQ(bell.sleepers.load(), 0u);
}

TEST(Bell, that_rings_between_the_look_and_the_sleep_ends_the_sleep) {
  Bell bell;
  bell.sleepers = 1;
  const std::uint32_t seen = bell.count.load();
  ring(bell);
  const std::int64_t start_ns = now_ns();
  sleep_on(bell, seen, 20 * kSecondNs);
  EXPECT_LT(now_ns() - start_ns, 10 * kSecondNs);
}

TEST(Bell, without_sleepers_costs_no_wake) {
  Bell bell;
  ring(bell);
  EXPECT_EQ(bell.count.load(), 0u);
}

TEST(Bell, sleep_ends_at_its_limit_and_at_once_if_the_bell_has_rung) {
  Bell bell;
  const std::int64_t start_ns = now_ns();
  sleep_on(bell, 0, kSecondNs / 50);
  EXPECT_GE(now_ns() - start_ns, kSecondNs / 50);
  sleep_on(bell, 1, 100 * kSecondNs);  // the count is not what was seen
  EXPECT_LT(now_ns() - start_ns, 50 * kSecondNs);
}

TEST(Clock, deadlines_saturate_and_polls_have_passed) {
  EXPECT_TRUE(Deadline::after(-1).is_poll());
  EXPECT_EQ(Deadline::after(-1).left_ns(), 0);
  EXPECT_FALSE(Deadline::after(INT64_MAX).is_poll());
  EXPECT_GT(Deadline::after(INT64_MAX).left_ns(), INT64_MAX / 2);
  EXPECT_EQ(Deadline::after(1).is_poll(), false);
  EXPECT_LE(Deadline::after(kSecondNs).left_ns(), kSecondNs);
}

TEST(Cores, are_at_least_one_and_at_most_those_of_the_affinity_mask) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), CPU_COUNT(&before));
  CPU_ZERO(&one);
  for (std::size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(Cores, decide_whether_to_spin) {
  EXPECT_GT(default_spin_ns(2, 2), 0);
  EXPECT_EQ(default_spin_ns(3, 2), 0);
}

}  // namespace
}  // namespace zerocomm
