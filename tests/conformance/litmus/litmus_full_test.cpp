// The loops of litmus_test.cpp, a hundred times longer.
#include "conformance/litmus/litmus.hpp"

namespace zerocomm::test {
namespace {

constexpr std::uint64_t kRounds = 100'000'000;

TEST(LitmusFull, posts_among_threads_are_whole) { expect_whole_among_threads(play_posts, kRounds); }
TEST(LitmusFull, posts_among_processes_are_whole) { expect_whole_among_processes(play_posts, kRounds); }
TEST(LitmusFull, generations_among_processes_are_whole) { expect_whole_among_processes(play_generations, kRounds); }

}  // namespace
}  // namespace zerocomm::test
