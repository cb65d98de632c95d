#include "cli/bench_stats.hpp"

#include <algorithm>
#include <cmath>

namespace zerocomm::cli {
namespace {

template <class Value>
std::vector<double> by_iteration(std::span<const std::vector<std::int64_t>> by_rank, Value value) {
  std::vector<double> result;
  if (by_rank.empty()) return result;
  std::vector<std::int64_t> column(by_rank.size());
  for (std::size_t i = 0; i < by_rank[0].size(); ++i) {
    for (std::size_t rank = 0; rank < column.size(); ++rank) column[rank] = by_rank[rank][i];
    const auto [least, most] = std::ranges::minmax(column);
    result.push_back(static_cast<double>(value(least, most)));
  }
  return result;
}

}  // namespace

double percentile(std::span<const double> values, double share) {
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  const auto last = static_cast<double>(sorted.size() - 1);
  const auto index = std::lround(share * last);
  std::nth_element(sorted.begin(), sorted.begin() + index, sorted.end());
  return sorted[static_cast<std::size_t>(index)];
}

std::vector<double> slowest(std::span<const std::vector<std::int64_t>> by_rank) {
  return by_iteration(by_rank, [](std::int64_t, std::int64_t most) { return most; });
}

std::vector<double> spread(std::span<const std::vector<std::int64_t>> by_rank) {
  return by_iteration(by_rank, [](std::int64_t least, std::int64_t most) { return most - least; });
}

BenchTime summary(std::span<const double> times_ns) {
  return {percentile(times_ns, 0.5) / 1e3, percentile(times_ns, 0.1) / 1e3, percentile(times_ns, 0.9) / 1e3};
}

BenchTime median_of(std::span<const BenchTime> runs) {
  std::vector<double> members[3];
  for (const BenchTime& run : runs) {
    members[0].push_back(run.median);
    members[1].push_back(run.p10);
    members[2].push_back(run.p90);
  }
  return {percentile(members[0], 0.5), percentile(members[1], 0.5), percentile(members[2], 0.5)};
}

}  // namespace zerocomm::cli
