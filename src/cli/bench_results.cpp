#include "cli/bench_results.hpp"

namespace zerocomm::cli {
namespace {

template <class Take>
void each_place(const BenchRun& run, Take take) {
  for (const BenchRow& row : run.rows)
    for (const std::optional<PlaceResult>* place : {&row.out, &row.in})
      if (*place) take(row, **place);
}

}  // namespace

void set_bandwidth(PlaceResult& place, const BenchCase& bench_case, int ranks) {
  const double bytes = static_cast<double>(bench_case.count) *
                       static_cast<double>(bench_case.count == 0 ? 0 : zc_dtype_bytes(bench_case.dtype));
  place.algbw = place.time.median > 0 ? bytes / place.time.median / 1e3 : 0;
  place.busbw = place.algbw * bus_factor(bench_case.collective, ranks);
}

std::int64_t wrong_of(const BenchRun& run) {
  std::int64_t wrong = 0;
  each_place(run, [&](const BenchRow&, const PlaceResult& place) {
    wrong += place.wrong.value_or(0);
    for (const auto& [name, peer] : place.peers) wrong += peer.wrong;
  });
  return wrong;
}

std::size_t different_bits_of(const BenchRun& run) {
  std::size_t rows = 0;
  for (const BenchRow& row : run.rows) rows += row.same_bits.value_or(true) ? 0U : 1U;
  return rows;
}

double average_busbw(const BenchRun& run) {
  double sum = 0;
  int places = 0;
  each_place(run, [&](const BenchRow& row, const PlaceResult& place) {
    if (row.bench_case.collective == Collective::barrier) return;
    sum += place.busbw;
    ++places;
  });
  return places > 0 ? sum / places : 0;
}

bool has_failed(const BenchRun& run) {
  return wrong_of(run) > 0 || different_bits_of(run) > 0 ||
         (run.min_busbw >= 0 && average_busbw(run) < 0.9 * run.min_busbw);
}

}  // namespace zerocomm::cli
