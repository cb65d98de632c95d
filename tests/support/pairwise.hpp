// Few rows that hold every pair of levels of any two factors: a small stand-in for a full product.
#pragma once

#include "support/exact_data.hpp"

#include <cstddef>
#include <functional>
#include <set>
#include <tuple>
#include <vector>

namespace zerocomm::test {

using Row = std::vector<std::size_t>;                                         // one level per factor
using Pair = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;  // factor, level, factor, level

inline void for_pairs(const Row& row, const std::function<void(const Pair&)>& visit) {
  for (std::size_t f = 0; f < row.size(); ++f)
    for (std::size_t g = f + 1; g < row.size(); ++g) visit(Pair{f, row[f], g, row[g]});
}

// Every row of the full product, in order.
inline void for_rows(const std::vector<std::size_t>& levels, const std::function<void(const Row&)>& visit) {
  Row row(levels.size(), 0);
  for (std::size_t f = 0; f != levels.size();) {
    visit(row);
    for (f = 0; f < levels.size() && ++row[f] == levels[f]; ++f) row[f] = 0;
  }
}

// The pairs that some legal row of the full product has, and none of `rows`. It looks at the whole product.
inline std::set<Pair> uncovered_pairs(const std::vector<Row>& rows, const std::vector<std::size_t>& levels,
                                      const std::function<bool(const Row&)>& legal) {
  std::set<Pair> covered, open;
  for (const Row& row : rows) for_pairs(row, [&](const Pair& pair) { covered.insert(pair); });
  for_rows(levels, [&](const Row& row) {
    bool has_new = false;
    for_pairs(row, [&](const Pair& pair) { has_new = has_new || (!covered.contains(pair) && !open.contains(pair)); });
    if (!has_new || !legal(row)) return;
    for_pairs(row, [&](const Pair& pair) {
      if (!covered.contains(pair)) open.insert(pair);
    });
  });
  return open;
}

// `levels` has the number of levels of each factor; `legal` says which rows exist. A pair that no legal row was found
// for in many tries is left out. The same arguments always give the same rows.
inline std::vector<Row> pairwise_rows(const std::vector<std::size_t>& levels,
                                      const std::function<bool(const Row&)>& legal) {
  std::set<Pair> open;
  for (std::size_t f = 0; f < levels.size(); ++f)
    for (std::size_t g = f + 1; g < levels.size(); ++g)
      for (std::size_t a = 0; a < levels[f]; ++a)
        for (std::size_t b = 0; b < levels[g]; ++b) open.insert({f, a, g, b});
  std::vector<Row> rows;
  std::uint64_t draw = 1;
  while (!open.empty()) {
    const auto [f, a, g, b] = *open.begin();
    Row best;
    std::size_t best_gain = 0;
    for (int tries = 0, found = 0; tries < 2000 && found < 30; ++tries) {
      Row row(levels.size());
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = (draw = mix(draw)) % levels[i];
      row[f] = a, row[g] = b;
      if (!legal(row)) continue;
      ++found;
      std::size_t gain = 0;
      for_pairs(row, [&](const Pair& pair) { gain += open.count(pair); });
      if (gain > best_gain) best = row, best_gain = gain;
    }
    if (best.empty()) {
      open.erase(open.begin());
      continue;
    }
    for_pairs(best, [&](const Pair& pair) { open.erase(pair); });
    rows.push_back(best);
  }
  return rows;
}

}  // namespace zerocomm::test
