// That the products of collectives hold what they say: every pair, or everything.
#include "collectives/product_suite.hpp"

#include <array>

namespace zerocomm::test {
namespace {

std::string text_of(const std::set<Pair>& pairs) {
  std::string text;
  for (const auto& [f, a, g, b] : pairs) text += format("factor %zu at %zu with factor %zu at %zu\n", f, a, g, b);
  return text;
}

TEST(PairwiseRows, hold_every_pair_of_levels_that_a_legal_call_has) {
  const auto open = uncovered_pairs(Product::pairs(), Product::levels(), Product::is_legal_row);
  EXPECT_TRUE(open.empty()) << text_of(open);
}

TEST(PairwiseRows, that_lack_a_pair_are_found_out) {
  const std::vector<std::size_t> levels = {3, 2, 4};
  const auto legal = [](const Row& row) {
    return row[0] != 1 || row[2] < 3;
  };  // 1 of the first never with 3 of the last
  std::vector<Row> rows = pairwise_rows(levels, legal);
  EXPECT_TRUE(uncovered_pairs(rows, levels, legal).empty());
  for (const Row& row : rows) EXPECT_TRUE(legal(row));
  EXPECT_LT(rows.size(), 21u);
  std::erase_if(rows, [](const Row& row) { return row[0] == 2 && row[2] == 3; });
  EXPECT_TRUE(uncovered_pairs(rows, levels, legal).contains(Pair{0, 2, 2, 3}));
  // What no legal row has is not missed; without the rule it is.
  const auto any = [](const Row&) { return true; };
  EXPECT_TRUE(uncovered_pairs(rows, levels, any).contains(Pair{0, 1, 2, 3}));
  EXPECT_FALSE(uncovered_pairs(rows, levels, legal).contains(Pair{0, 1, 2, 3}));
}

// Levels stand for the counts that they are said to; a count that depends on form and ranks would hide pairs.
TEST(PairwiseRows, have_every_type_operation_place_and_number_of_ranks_with_the_longest_count) {
  std::array<std::set<std::size_t>, 8> with;
  std::array<std::size_t, Product::kCounts> times{};
  for (const Row& row : Product::pairs()) {
    const Case what = Product::make(row);
    const std::size_t level = row[Product::counts];
    ++times[level];
    if (has_counts(what.form)) continue;
    const auto p = static_cast<std::size_t>(what.ranks);
    const std::array<std::size_t, 7> counts = {0, 1, p - 1, p, p + 1, 10007, 1031};
    EXPECT_EQ(what.count, counts[level]) << describe(what);
    for (std::size_t factor = 0; what.count == 10007 && factor < row.size(); ++factor) with[factor].insert(row[factor]);
  }
  const std::vector<std::size_t> levels = Product::levels();
  for (const std::size_t factor :
       {Product::types, Product::op, Product::in_place, Product::shifted, Product::ranks, Product::request}) {
    EXPECT_EQ(with[factor].size(), levels[factor]) << "factor " << factor;
  }
  EXPECT_EQ(with[Product::form].size(), 8u);  // all but those with lists of counts
  for (std::size_t level = 0; level < times.size(); ++level) EXPECT_GT(times[level], 0u) << "counts " << level;
}

TEST(FullProduct, has_every_legal_row_once) {
  const std::vector<std::size_t> levels = Product::levels();
  const auto number_of = [&](const Row& row) {
    std::size_t number = 0;
    for (std::size_t f = 0; f < row.size(); ++f) number = number * levels[f] + row[f];
    return number;
  };
  std::vector<unsigned char> times(number_of({10, 13, 5, 1, Product::kCounts - 1, 1, 11, 1}) + 1, 0);
  for (std::size_t n = 0; n < std::size(Product::kRanks); ++n)
    Product::for_calls(n, [&](const std::vector<Row>& places) {
      for (const Row& row : places) ++times[number_of(row)];
    });
  std::size_t rows = 0, wrong = 0;
  for_rows(levels, [&](const Row& row) {
    ++rows;
    wrong += times[number_of(row)] != (Product::is_full_row(row) ? 1 : 0);
  });
  EXPECT_EQ(rows, times.size());
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace zerocomm::test
