// From the times of all ranks to the figures of a row. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zerocomm::cli {

// Of a list in any order; `share` 0.5 is the median. 0 for an empty list.
double percentile(std::span<const double> values, double share);

// One value for each iteration, in ns: that of the slowest rank. Ranks have equally many iterations.
std::vector<double> slowest(std::span<const std::vector<std::int64_t>> by_rank);
// The same of the time between the first rank and the last.
std::vector<double> spread(std::span<const std::vector<std::int64_t>> by_rank);

// A time and its band, in us.
struct BenchTime {
  double median = 0, p10 = 0, p90 = 0;
};
// Of the iterations of one run, in ns.
BenchTime summary(std::span<const double> times_ns);
// Of several runs: the median of each member.
BenchTime median_of(std::span<const BenchTime> runs);

}  // namespace zerocomm::cli
