// The same two hundred times.
#include "death/random_kills.hpp"

namespace zerocomm::test {
namespace {

TEST(RandomKillsFull, of_a_third_end_every_rank_and_leave_nothing) { kill_often(kill_a_third, 1'000, 200); }
TEST(RandomKillsFull, of_all_ranks_leave_nothing) { kill_often(kill_all, 1'000, 200); }

}  // namespace
}  // namespace zerocomm::test
