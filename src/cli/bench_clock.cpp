#include "cli/bench_clock.hpp"

#include <fmt/format.h>

#include <cmath>

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace zerocomm::cli {
namespace {

constexpr std::int64_t kLeastBaseNs = 10'000'000;  // over which a speed is measured

bool has_steady_counter() {
#ifdef __x86_64__
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kExtended = 0x80000001U, kPower = 0x80000007U;
  const bool has_rdtscp = __get_cpuid(kExtended, &a, &b, &c, &d) != 0 && (d & (1U << 27U)) != 0;
  return has_rdtscp && __get_cpuid(kPower, &a, &b, &c, &d) != 0 && (d & (1U << 8U)) != 0;
#else
  return false;
#endif
}

}  // namespace

BenchClock::BenchClock() : counts_(has_steady_counter()), first_(now()) {}

// The pair of readings that were closest together, of some.
BenchClock::Pair BenchClock::now() const {
  Pair best{};
  std::int64_t least = INT64_MAX;
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::int64_t before = stamp();
    const std::int64_t ns = bench_now_ns();
    const std::int64_t after = stamp();
    if (after - before >= least) continue;
    least = after - before;
    best = {before + (after - before) / 2, ns};
  }
  return best;
}

double BenchClock::ns_per_tick(const Pair& last) const {
  return static_cast<double>(last.ns - first_.ns) / static_cast<double>(last.ticks - first_.ticks);
}

void BenchClock::to_ns(std::vector<std::int64_t>& stamps) {
  if (!counts_) return;
  Pair last = now();
  while (last.ns - first_.ns < kLeastBaseNs) last = now();
  const double speed = ns_per_tick(last);
  for (std::int64_t& stamp : stamps) stamp = last.ns - std::llround(static_cast<double>(last.ticks - stamp) * speed);
}

std::string BenchClock::text() {
  if (!counts_) return "clock_gettime (this processor has no TSC that is told to be invariant)";
  std::vector<std::int64_t> none;
  to_ns(none);
  return fmt::format("TSC, invariant, {:.0f} MHz by CLOCK_MONOTONIC", 1e3 / ns_per_tick(now()));
}

}  // namespace zerocomm::cli
