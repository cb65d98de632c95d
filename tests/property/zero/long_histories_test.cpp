// The same random histories, many more of them.
#include "property/zero/world.hpp"

#include <gtest/gtest.h>

namespace zerocomm::test {
namespace {

TEST(ManyHistories, hold_every_promise_under_every_interleaving_tried) {
  EXPECT_EQ(first_failure({}, 1000000, 100000), "");
}

}  // namespace
}  // namespace zerocomm::test
