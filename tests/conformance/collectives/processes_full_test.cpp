// The whole product of collectives on ranks that are processes: minutes.
#include "collectives/product_suite.hpp"
#include "support/child_ranks.hpp"

namespace zerocomm::test {

INSTANTIATE_TYPED_TEST_SUITE_P(ProcessesInFull, CollectiveFullProduct, RankProcesses);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CollectiveProduct);

}  // namespace zerocomm::test
