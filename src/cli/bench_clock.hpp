// A clock for very short times: the processor's counter where it runs at one speed, else clock_gettime.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace zerocomm::cli {

// CLOCK_MONOTONIC, in ns.
inline std::int64_t bench_now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

class BenchClock {
 public:
  BenchClock();

  // Does the processor have a counter that no frequency and no sleep of a core changes?
  bool counts() const { return counts_; }
  // "TSC at 2100.0 MHz, invariant" or "clock_gettime: ..." and why.
  std::string text();

  // Waits for earlier instructions, so that a stamp after a call does not come before its end.
  std::int64_t stamp() const {
#ifdef __x86_64__
    if (counts_) {
      unsigned core = 0;
      return static_cast<std::int64_t>(__rdtscp(&core));
    }
#endif
    return bench_now_ns();
  }
  // Turns stamps of this run into ns of CLOCK_MONOTONIC, which all processes of a host share. The speed is measured
  // anew over the whole life of this object, so that stamps of different processes agree to some tens of ns.
  void to_ns(std::vector<std::int64_t>& stamps);

 private:
  struct Pair {
    std::int64_t ticks, ns;
  };
  Pair now() const;
  double ns_per_tick(const Pair& last) const;

  bool counts_;
  Pair first_;
};

}  // namespace zerocomm::cli
