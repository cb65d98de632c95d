// Loops over real memory for what the models take for granted: an access that is announced is seen, and of two ranks
// that each store and then look, one sees the other.
#include "conformance/litmus/litmus.hpp"

#include <cstdio>
#include <memory>
#include <vector>

namespace zerocomm::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kRounds = 100'000;
#else
constexpr std::uint64_t kRounds = 1'000'000;
#endif

TEST(Litmus, posts_among_threads_are_whole) { expect_whole_among_threads(play_posts, kRounds); }
TEST(Litmus, posts_among_processes_are_whole) { expect_whole_among_processes(play_posts, kRounds); }
TEST(Litmus, generations_among_threads_are_whole) { expect_whole_among_threads(play_generations, kRounds); }
TEST(Litmus, generations_among_processes_are_whole) { expect_whole_among_processes(play_generations, kRounds); }

// Cells in which one thread counts itself as a sleeper and looks at the condition, while the other changes the
// condition and rings.
struct Cell {
  alignas(128) std::atomic<std::uint32_t> condition{0};
  alignas(128) Bell bell;
};

// Runs two threads over the same cells, close behind each other.
class InStep {
 public:
  static constexpr std::size_t kCells = 4000, kTogether = 8;

  template <class Each>
  void run(std::size_t me, Each&& each) {
    for (std::size_t i = 0; i < kCells; ++i) {
      if (i % kTogether == 0) {
        at_[me].cell.store(i + 1);
        for (int looks = 0; at_[1 - me].cell.load() <= i; ++looks)
          if (looks > 1000) std::this_thread::yield();
      }
      each(i);
    }
  }

 private:
  struct alignas(128) Place {
    std::atomic<std::size_t> cell{0};
  };
  Place at_[2];
};

// Rounds in which the waiter saw no change and the bell was not rung either: it would sleep for ever.
template <class Ring>
std::uint64_t lost_wakes(std::uint64_t rounds, Ring&& ring_cell) {
  std::uint64_t lost = 0;
  std::vector<std::uint32_t> seen(InStep::kCells);
  for (std::uint64_t done = 0; done < rounds; done += InStep::kCells) {
    const auto cells = std::make_unique<Cell[]>(InStep::kCells);
    InStep both;
    std::thread waiter([&] {
      both.run(0, [&](std::size_t i) {
        cells[i].bell.sleepers.fetch_add(1);
        seen[i] = cells[i].condition.load();
      });
    });
    both.run(1, [&](std::size_t i) { ring_cell(cells[i]); });
    waiter.join();
    for (std::size_t i = 0; i < InStep::kCells; ++i)
      if (seen[i] == 0 && cells[i].bell.count.load() == 0) ++lost;
  }
  return lost;
}

TEST(Litmus, a_waiter_sees_the_change_or_is_rung) {
  const std::uint64_t lost = lost_wakes(kRounds, [](Cell& cell) {
    cell.condition.store(1);
    ring(cell.bell);
  });
  EXPECT_EQ(lost, 0u);
  // The same with a store that may wait in the core while the load after it goes ahead: where this loses nothing (on
  // one core, say), the count above shows little.
  const std::uint64_t weak = lost_wakes(kRounds, [](Cell& cell) {
    cell.condition.store(1, std::memory_order_release);
    if (cell.bell.sleepers.load(std::memory_order_acquire) != 0) cell.bell.count.fetch_add(1);
  });
  std::printf("of %llu wakes none was lost; release and acquire would have lost %llu\n",
              static_cast<unsigned long long>(kRounds), static_cast<unsigned long long>(weak));
}

}  // namespace
}  // namespace zerocomm::test
