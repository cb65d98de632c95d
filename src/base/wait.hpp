// How ranks wait for each other: a bell per rank, which is spun on for a while and then slept on.
//
// A waiter counts itself as a sleeper, looks at its condition once more, and sleeps on the bell's count; whoever
// changes shared state does so first and then rings the bells that have sleepers. Both sides use sequentially
// consistent atomics, so that one of them sees the other: no wake is lost, and a sleep needs no time limit of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace zerocomm {

// Lives in shared memory: two futex-sized words, no pointers.
struct Bell {
  std::atomic<std::uint32_t> count{0};
  std::atomic<std::uint32_t> sleepers{0};
};

// Wakes all sleepers of a bell. Costs one load when there are none.
void ring(Bell& bell) noexcept;

// Sleeps until the bell is rung after `seen` was read, or until limit_ns have passed. May return early.
void sleep_on(Bell& bell, std::uint32_t seen, std::int64_t limit_ns) noexcept;

// Tells the core that this is a spin loop.
inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Cores that the CPU quotas of this process's cgroups allow, the least of them; 0: no quota. / is the folder `root`.
int quota_cores_below(const std::string& root);

// Cores in the affinity mask of this process.
int affinity_cores();

// Cores that this process may use: affinity mask, capped by the cgroups' CPU quotas (v1 and v2). At least 1.
int usable_cores();

// Time to spin before sleeping when `ranks` threads may wait at once.
std::int64_t default_spin_ns(int ranks, int cores);

// Time, after that, in which a waiter offers its core to others over and over before it sleeps. With more ranks than
// cores the rank that is waited for is likely to run there, and a sleep and a wake cost more than a few such offers.
inline constexpr std::int64_t kYieldNs = 100'000;

}  // namespace zerocomm
