// The suites of collectives on ranks that are threads.
#include "collectives/product_suite.hpp"
#include "collectives/refusal_suite.hpp"
#include "collectives/result_suite.hpp"

namespace zerocomm::test {

INSTANTIATE_TYPED_TEST_SUITE_P(Threads, CollectiveProduct, RankThreads);
INSTANTIATE_TYPED_TEST_SUITE_P(Threads, CollectiveResult, RankThreads);
INSTANTIATE_TYPED_TEST_SUITE_P(Threads, CollectiveRefusal, RankThreads);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CollectiveFullProduct);

}  // namespace zerocomm::test
