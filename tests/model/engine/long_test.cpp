// The larger cases of the models of an engine.
#include "model/case.hpp"
#include "model/engine/buckets.hpp"

namespace zerocomm::test {
namespace {

TEST(BucketsModelLong, holds_for_three_ranks_and_four_buckets) {
  expect_holds("3 ranks, 4 buckets, 2 slots, 2 slices", BucketsModel{3, 4, 2, 2, 1, {"0123", "3210", "1302"}});
  expect_holds("3 ranks, 4 buckets, 2 slots, one in every order", BucketsModel{3, 4, 2, 1, 1, {"0123", "3210"}});
}

TEST(BucketsModelLong, holds_for_all_slices) {
  expect_holds("2 ranks, 4 buckets, 2 slots, 2 slices, every order", BucketsModel{2, 4, 2, 2, 1});
  expect_holds("3 ranks, 3 buckets, 2 slots, 3 slices", BucketsModel{3, 3, 2, 3, 1, {"012", "210", "120"}});
}

TEST(BucketsModelLong, holds_when_other_threads_help) {
  expect_holds("2 ranks, 3 buckets, 2 slots, 2 slices, 1 helper", BucketsModel{2, 3, 2, 2, 1, {}, 1});
}

}  // namespace
}  // namespace zerocomm::test
