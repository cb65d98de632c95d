// The whole product of collectives on ranks that are threads: minutes.
#include "collectives/product_suite.hpp"

namespace zerocomm::test {

INSTANTIATE_TYPED_TEST_SUITE_P(ThreadsInFull, CollectiveFullProduct, RankThreads);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CollectiveProduct);

}  // namespace zerocomm::test
