// What this machine gives at most: the measurements of zc bench limits.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace zerocomm::cli {

// One figure. `value` is the median, `best` the best of all (of a time: the least).
struct Limit {
  std::string what;  // "stream copy, bypass"
  int threads = 1;
  std::size_t bytes = 0;  // 0: it has no size
  double value = 0, best = 0;
  std::string unit;  // "GB/s", "ns", "us"
};

// Read, fill, copy and triad over arrays of `bytes`, cut among `threads` pinned threads; bytes are counted as STREAM
// does, without the lines that ordinary stores fetch first.
std::vector<Limit> measure_streams(int threads, std::size_t bytes);
// memcpy by one thread, of 4 KiB up to `bytes`.
std::vector<Limit> measure_copies(std::size_t bytes);
// A cache line from one core to another, by threads that spin; nothing on a single core.
std::vector<Limit> measure_line();
// From a futex wake to the woken thread that runs, after some time of sleep.
std::vector<Limit> measure_wakes();
// First touch of private memory and of a memfd, by page.
std::vector<Limit> measure_faults(std::size_t bytes);

std::string limits_table(const std::vector<Limit>& limits);
std::string limits_json(const std::vector<Limit>& limits, const std::string& host, const std::string& model);

}  // namespace zerocomm::cli
