// Every collective against the schedule that specifies it, for any way of making ranks: `Ranks` is a class with the
// constructor and the run() of RankThreads.
#pragma once

#include "collectives/case.hpp"
#include "support/pairwise.hpp"
#include "support/rank_threads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace zerocomm::test {

// The factors of the product and their levels.
struct Product {
  static constexpr std::int32_t kRanks[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33};
  struct Types {
    zc_dtype input, output;
  };
  static constexpr Types kTypes[] = {
      {ZC_DTYPE_F64, ZC_DTYPE_F64},   {ZC_DTYPE_F32, ZC_DTYPE_F32},       {ZC_DTYPE_F16, ZC_DTYPE_F16},
      {ZC_DTYPE_BF16, ZC_DTYPE_BF16}, {ZC_DTYPE_I64, ZC_DTYPE_I64},       {ZC_DTYPE_I32, ZC_DTYPE_I32},
      {ZC_DTYPE_U8, ZC_DTYPE_U8},     {ZC_DTYPE_I8, ZC_DTYPE_I8},         {ZC_DTYPE_BF16, ZC_DTYPE_F32},
      {ZC_DTYPE_F32, ZC_DTYPE_BF16},  {ZC_DTYPE_F16, ZC_DTYPE_F32},       {ZC_DTYPE_F32, ZC_DTYPE_F16},
      {ZC_DTYPE_F16, ZC_DTYPE_BF16},  {ZC_DTYPE_F8E4M3, ZC_DTYPE_F8E4M3},
  };
  static constexpr std::size_t kForms = kFormCount, kOps = 6, kPlainCounts = 7, kCounts = kPlainCounts + 6;
  enum Factor { form, types, op, in_place, counts, shifted, ranks, request };
  static std::vector<std::size_t> levels() {
    return {kForms, std::size(kTypes), kOps, 2, kCounts, 2, std::size(kRanks), 2};
  }

  // Few rows that hold every pair of levels; product_rows_test.cpp looks whether they do.
  static std::vector<Row> pairs() { return pairwise_rows(levels(), is_legal_row); }

  // The first levels are of the forms with one count, the others of those with a list, so that a pair of levels is a
  // pair of values. A block for each of many ranks: long vectors stay affordable, and still cross the kernels' inner
  // blocks.
  static bool is_legal_row(const Row& row) {
    const Case what = make(row);
    const bool many_blocks = has_blocks(what.form) && what.ranks > 5;
    if (has_counts(what.form) != (row[counts] >= kPlainCounts)) return false;
    if (row[counts] == (many_blocks ? 5 : 6)) return false;
    return is_legal(what);
  }
  // The same for the whole product, where every count goes with every number of ranks.
  static bool is_full_row(const Row& row) {
    const Case what = make(row);
    if (has_counts(what.form) != (row[counts] >= kPlainCounts) || row[counts] == 6) return false;
    return is_legal(what);
  }
  static bool has_blocks(Form form) {
    return form == Form::reduce_scatter || form == Form::all_gather || form >= Form::all_to_all;
  }

  static std::size_t count_of(std::size_t level, std::size_t p) {
    const std::size_t all[kPlainCounts] = {0, 1, p - 1, p, p + 1, 10007, 1031};
    return all[level % kPlainCounts];
  }

  // Skewed counts: nothing, one each, one rank empty, all in the last rank, all in the first, rising and long.
  static std::vector<std::size_t> counts_of(std::size_t level, std::size_t p) {
    std::vector<std::size_t> all(p, 0);
    for (std::size_t r = 0; r < p; ++r) {
      if (level == 1) all[r] = 1;
      if (level == 2) all[r] = r == p / 2 ? 0 : 7 + r;
      if (level == 5) all[r] = 1021 * r / p + 3;
    }
    if (level == 3) all.back() = 1031;
    if (level == 4) all.front() = 37;
    return all;
  }

  // The legal rows of the whole product with the n-th number of ranks, by calls: rows of one call differ in where its
  // buffers lie, and have one result.
  static void for_calls(std::size_t n, const std::function<void(const std::vector<Row>&)>& visit) {
    std::vector<std::size_t> of_calls = levels();
    of_calls[in_place] = of_calls[shifted] = of_calls[request] = of_calls[ranks] = 1;
    for_rows(of_calls, [&](const Row& call) {
      std::vector<Row> places;
      for (std::size_t place = 0; place < 8; ++place) {
        Row row = call;
        row[in_place] = place / 2 % 2, row[shifted] = place % 2, row[request] = place / 4, row[ranks] = n;
        if (is_full_row(row)) places.push_back(row);
      }
      if (!places.empty()) visit(places);
    });
  }

  static Case make(const Row& row) {
    Case what;
    what.form = static_cast<Form>(row[form]);
    what.dtype = kTypes[row[types]].input;
    what.output = kTypes[row[types]].output;
    what.op = static_cast<zc_op>(row[op] + 1);
    what.in_place = row[in_place] != 0;
    what.shifted = row[shifted] != 0;
    what.request = row[request] != 0;
    what.ranks = kRanks[row[ranks]];
    const auto p = static_cast<std::size_t>(what.ranks);
    if (has_counts(what.form))
      what.counts = counts_of(row[counts] % kPlainCounts, p);
    else
      what.count = count_of(row[counts], p);
    what.uneven = what.form == Form::all_to_all_v && row[counts] % 2 != 0;
    if (has_root(what.form)) what.root = what.ranks / 2;
    if (what.op == ZC_OP_PREMUL_SUM) what.premul = row[counts] % 2 == 0 ? 0.3 : ZC_PREMUL_ZERO;
    what.seed = 1 + row[op] + 10 * row[types];
    return what;
  }
};

template <class Ranks>
class CollectiveProduct : public ::testing::Test {
 protected:
  // Runs the cases, of one number of ranks each, on one communicator per number.
  static void run(const std::vector<Case>& cases) {
    std::map<std::int32_t, std::vector<const Case*>> by_ranks;
    for (const Case& what : cases) by_ranks[what.ranks].push_back(&what);
    for (const auto& [ranks, list] : by_ranks) {
      std::vector<Prepared> prepared;
      for (const Case* what : list) prepared.push_back(prepare(*what));
      Ranks(ranks).run([&, &all = list](zc_comm* comm, std::int32_t rank) {
        for (std::size_t i = 0; i < all.size(); ++i) run_case(comm, rank, *all[i], prepared[i]);
      });
      if (::testing::Test::HasFailure()) return;
    }
  }
};

TYPED_TEST_SUITE_P(CollectiveProduct);

// Pairs of any two of: collective, types, operation, in place, count, alignment, ranks, blocking or with a request.
TYPED_TEST_P(CollectiveProduct, equals_its_schedule_bit_for_bit_and_writes_nothing_else) {
  std::vector<Case> cases;
  for (const Row& row : Product::pairs()) cases.push_back(Product::make(row));
  ASSERT_GT(cases.size(), 100u);
  this->run(cases);
}

REGISTER_TYPED_TEST_SUITE_P(CollectiveProduct, equals_its_schedule_bit_for_bit_and_writes_nothing_else);

// The whole product: minutes.
template <class Ranks>
class CollectiveFullProduct : public ::testing::Test {};
TYPED_TEST_SUITE_P(CollectiveFullProduct);

TYPED_TEST_P(CollectiveFullProduct, equals_its_schedule_bit_for_bit_and_writes_nothing_else) {
  for (std::size_t n = 0; n < std::size(Product::kRanks); ++n) {
    const std::size_t most = Product::kRanks[n] > 9 ? 8 : 32;  // calls at once: ranks may be processes made for them
    std::vector<std::pair<std::vector<Row>, Prepared>> calls;
    TypeParam group(Product::kRanks[n]);
    const auto run = [&] {
      group.run([&](zc_comm* comm, std::int32_t rank) {
        for (const auto& [places, prepared] : calls)
          for (const Row& row : places) run_case(comm, rank, Product::make(row), prepared);
      });
      calls.clear();
    };
    Product::for_calls(n, [&](const std::vector<Row>& places) {
      if (this->HasFailure()) return;
      calls.emplace_back(places, prepare(Product::make(places.front())));
      if (calls.size() == most) run();
    });
    if (!calls.empty()) run();
    if (this->HasFailure()) return;
  }
}

REGISTER_TYPED_TEST_SUITE_P(CollectiveFullProduct, equals_its_schedule_bit_for_bit_and_writes_nothing_else);

}  // namespace zerocomm::test
