// The suites of collectives on ranks that are processes.
#include "collectives/product_suite.hpp"
#include "collectives/refusal_suite.hpp"
#include "collectives/result_suite.hpp"
#include "support/child_ranks.hpp"

namespace zerocomm::test {

INSTANTIATE_TYPED_TEST_SUITE_P(Processes, CollectiveProduct, RankProcesses);
INSTANTIATE_TYPED_TEST_SUITE_P(Processes, CollectiveResult, RankProcesses);
INSTANTIATE_TYPED_TEST_SUITE_P(Processes, CollectiveRefusal, RankProcesses);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CollectiveFullProduct);

}  // namespace zerocomm::test
