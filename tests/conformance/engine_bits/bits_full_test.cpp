// The full product of everything that must not change a bit.
#include "bits_rows.hpp"

#include <gtest/gtest.h>

namespace zerocomm::test {
namespace {

using RanksAndOrder = std::tuple<std::int32_t, std::size_t>;
class BitsInFull : public testing::TestWithParam<RanksAndOrder> {
 protected:
  std::int32_t ranks() const { return std::get<0>(GetParam()); }
  const Order& order() const { return kOrders[std::get<1>(GetParam())]; }
};

// Alignment, what is kept in stage 3, and placement take turns; the other factors are multiplied out.
TEST_P(BitsInFull, are_those_of_plain_training) {
  BitsCheck bits(true);
  std::size_t number = 0;
  for (Row row(kFactors, 0);; ++number) {
    row[kAlignment] = number % 3;
    row[kKeep] = number / 3 % 3;
    row[kPlacement] = number / 9 % 2;
    bits.check(ranks(), order(), row);
    std::size_t factor = 0;
    while (factor < kAlignment && ++row[factor] == kLevels[factor]) row[factor++] = 0;
    if (factor == kAlignment) break;
  }
  EXPECT_EQ(number + 1, 2u * 2 * 4 * 4 * 3 * 2 * 2);
}

TEST_P(BitsInFull, of_the_giant_at_full_size_are_those_of_plain_training) {
  BitsCheck bits(false);
  for (Row row : bits_pairs()) {
    row[kModel] = 1;
    bits.check(ranks(), order(), row);
  }
}

INSTANTIATE_TEST_SUITE_P(ranks_and_orders, BitsInFull,
                         testing::Combine(testing::ValuesIn(kRankCounts),
                                          testing::Range<std::size_t>(0, kOrders.size())));

}  // namespace
}  // namespace zerocomm::test
