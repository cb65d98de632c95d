// The list of functions that waiting calls run.
#include "comm/progress.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace zerocomm::comm {
namespace {

void count_up(void* counter) { ++*static_cast<std::atomic<int>*>(counter); }

TEST(ProgressList, runs_everything_once_and_tells_of_foreign_groups) {
  std::atomic<int> first{0}, second{0};
  const int group_a = 0, group_b = 0;
  EXPECT_FALSE(run_progress(&group_a).foreign);
  zc_progress* const a = add_progress(count_up, &first, &group_a);
  EXPECT_FALSE(run_progress(&group_a).foreign);
  EXPECT_TRUE(run_progress(&group_b).foreign);
  zc_progress* const b = add_progress(count_up, &second, &group_b);
  EXPECT_TRUE(run_progress(&group_a).foreign);
  EXPECT_EQ(first.load(), 3);
  EXPECT_EQ(second.load(), 1);
  remove_progress(a);
  EXPECT_FALSE(run_progress(&group_b).foreign);
  remove_progress(b);
  EXPECT_FALSE(run_progress(&group_b).foreign);
  EXPECT_EQ(first.load(), 3);
  EXPECT_EQ(second.load(), 2);
}

// A function that blocks until it is let go.
struct Gate {
  std::atomic<bool> entered{false}, open{false};
  static void pass(void* opaque) {
    auto* gate = static_cast<Gate*>(opaque);
    gate->entered = true;
    while (!gate->open.load()) std::this_thread::yield();
  }
};

TEST(ProgressList, function_that_was_removed_does_not_run_even_where_the_list_is_being_walked) {
  Gate gate;
  std::atomic<int> runs{0};
  zc_progress* const first = add_progress(Gate::pass, &gate, nullptr);
  zc_progress* const second = add_progress(count_up, &runs, nullptr);
  std::thread walker([] { run_progress(nullptr); });
  while (!gate.entered.load()) std::this_thread::yield();
  remove_progress(second);
  gate.open = true;
  walker.join();
  EXPECT_EQ(runs.load(), 0);
  remove_progress(first);
}

TEST(ProgressList, removal_does_not_return_while_the_function_runs) {
  Gate gate;
  std::atomic<bool> removed{false};
  zc_progress* const handle = add_progress(Gate::pass, &gate, nullptr);
  std::thread walker([] { run_progress(nullptr); });
  while (!gate.entered.load()) std::this_thread::yield();
  std::thread remover([&] {
    remove_progress(handle);
    removed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(removed.load());
  gate.open = true;
  remover.join();
  walker.join();
}

// Whoever removes a function may free its context at once.
TEST(ProgressList, removal_waits_for_calls_that_run) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> runners;
  for (int i = 0; i < 3; ++i)
    runners.emplace_back([&] {
      while (!stop.load()) run_progress(nullptr);
    });
  for (int turn = 0; turn < 300; ++turn) {
    auto counter = std::make_unique<std::atomic<int>>(0);
    zc_progress* const handle = add_progress(count_up, counter.get(), nullptr);
    if (turn % 10 == 0)
      while (counter->load() == 0) std::this_thread::yield();
    remove_progress(handle);
  }
  stop = true;
  for (std::thread& runner : runners) runner.join();
}

}  // namespace
}  // namespace zerocomm::comm
