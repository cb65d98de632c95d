// zc_comm_wait: predicates, whom a timeout names, and work that is done while waiting.
#include "support/rank_threads.hpp"
#include "support/window_of_rank.hpp"

#include <zerocomm/coll.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>

namespace zerocomm::test {
namespace {

using Flag = std::atomic<int>;
int is_set(void* flag) { return static_cast<Flag*>(flag)->load(); }

zc_wait_options options_of(std::int64_t deadline_ns) {
  zc_wait_options options{};
  options.struct_size = sizeof options;
  options.deadline_ns = deadline_ns;
  return options;
}

TEST(Wait, ends_when_a_word_of_any_window_makes_its_condition_true) {
  Flag flag{0};
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    const WindowOfRank window(comm, 0);
    if (rank == 0) {
      RANK_OK(zc_comm_wait(comm, is_set, &flag, nullptr));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      flag = 1;
      RANK_OK(zc_window_store(window.get(), 1, 0, 1));
    }
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

TEST(Wait, of_many_threads_of_a_rank_ends_for_all) {
  RankThreads ranks(2);
  Flag flag{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 6; ++i)
    waiters.emplace_back([&] { EXPECT_EQ(zc_comm_wait(ranks.comm(0), is_set, &flag, nullptr), ZC_OK); });
  ranks.run([&](zc_comm* comm, std::int32_t rank) {
    const WindowOfRank window(comm, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (rank == 1) {
      flag = 1;
      RANK_OK(zc_window_add(window.get(), 0, 0, 1, nullptr));
    }
    RANK_OK(zc_barrier(comm, nullptr));
  });
  for (std::thread& waiter : waiters) waiter.join();
}

TEST(Wait, returns_the_status_that_its_condition_gives) {
  RankThreads ranks(1);
  Flag flag{-ZC_BUDGET};
  EXPECT_EQ(zc_comm_wait(ranks.comm(0), is_set, &flag, nullptr), ZC_BUDGET);
  EXPECT_EQ(zc_comm_status(ranks.comm(0)), ZC_OK);
  EXPECT_EQ(zc_comm_wait(ranks.comm(0), nullptr, nullptr, nullptr), ZC_ARGUMENT);
  EXPECT_EQ(zc_comm_wait(nullptr, is_set, &flag, nullptr), ZC_ARGUMENT);
}

TEST(Wait, that_polls_looks_once_and_kills_nothing) {
  RankThreads ranks(1);
  Flag flag{0};
  const zc_wait_options options = options_of(ZC_POLL);
  EXPECT_EQ(zc_comm_wait(ranks.comm(0), is_set, &flag, &options), ZC_AGAIN);
  flag = 1;
  EXPECT_EQ(zc_comm_wait(ranks.comm(0), is_set, &flag, &options), ZC_OK);
  EXPECT_EQ(zc_comm_status(ranks.comm(0)), ZC_OK);
}

TEST(Wait, that_times_out_says_what_it_waited_for_and_whom_its_caller_blames) {
  RankThreads ranks(3);
  zc_wait_options options = options_of(30 * kMillisecondNs);
  options.label = "bucket 12";
  options.blame = [](void* context, std::int32_t* rank, char* text, std::size_t capacity_bytes) {
    *rank = 2;
    std::snprintf(text, capacity_bytes, "rank 2 did not bring %s", static_cast<const char*>(context));
  };
  char tensor[] = "wte.weight";
  EXPECT_EQ(zc_comm_wait(
                ranks.comm(0), [](void*) { return 0; }, tensor, &options),
            ZC_TIMEOUT);
  const std::string text = zc_last_error();
  EXPECT_NE(text.find("rank 0 waited 0.030 s in bucket 12: rank 2 did not bring wte.weight"), std::string::npos)
      << text;
  EXPECT_EQ(zc_barrier(ranks.comm(1), nullptr), ZC_TIMEOUT);
  EXPECT_EQ(text, zc_last_error());
}

TEST(Wait, goes_on_after_its_deadline_for_as_long_as_its_caller_extends_it) {
  RankThreads ranks(1);
  struct Context {
    int extensions = 0;
  } context;
  zc_wait_options options = options_of(20 * kMillisecondNs);
  options.extend_ns = [](void* opaque) -> std::int64_t {
    return ++static_cast<Context*>(opaque)->extensions <= 2 ? 30 * kMillisecondNs : 0;
  };
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(zc_comm_wait(
                ranks.comm(0), [](void*) { return 0; }, &context, &options),
            ZC_TIMEOUT);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(80));
  EXPECT_EQ(context.extensions, 3);

  RankThreads others(1);
  context = {};
  const auto ready_when_extended = [](void* opaque) { return static_cast<Context*>(opaque)->extensions; };
  EXPECT_EQ(zc_comm_wait(others.comm(0), ready_when_extended, &context, &options), ZC_OK);
}

TEST(Progress, runs_while_any_call_waits_and_never_after_its_removal) {
  RankThreads ranks(2);
  Flag runs{0};
  std::atomic<bool> removed{false}, too_late{false};
  struct Context {
    Flag* runs;
    std::atomic<bool>* removed;
    std::atomic<bool>* too_late;
  } context{&runs, &removed, &too_late};
  zc_progress* handle = nullptr;
  ASSERT_EQ(zc_progress_add(
                ranks.comm(0),
                [](void* opaque) {
                  const auto* c = static_cast<Context*>(opaque);
                  if (c->removed->load()) *c->too_late = true;
                  ++*c->runs;
                },
                &context, &handle),
            ZC_OK);
  ranks.run([&](zc_comm* comm, std::int32_t rank) {
    if (rank == 1)
      while (runs.load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (int turn = 0; turn < 200; ++turn) {
      RANK_OK(zc_barrier(comm, nullptr));
      if (rank == 0 && turn == 100) {
        RANK_OK(zc_progress_remove(handle));
        removed = true;
      }
    }
  });
  EXPECT_GT(runs.load(), 0);
  EXPECT_FALSE(too_late.load());
}

// The work of one communicator's engine is done by a rank that waits in another communicator and hears no bell of it.
TEST(Progress, of_one_communicator_is_made_by_a_call_that_waits_in_another) {
  RankThreads waits(2), works(1);
  Flag ready{0};
  zc_progress* handle = nullptr;
  std::atomic<int> done{0};
  struct Context {
    Flag* ready;
    std::atomic<int>* done;
  } context{&ready, &done};
  ASSERT_EQ(zc_progress_add(
                works.comm(0),
                [](void* opaque) {
                  const auto* c = static_cast<Context*>(opaque);
                  if (c->ready->load() != 0) *c->done = 1;
                },
                &context, &handle),
            ZC_OK);
  waits.run([&](zc_comm* comm, std::int32_t rank) {
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // rank 0 sleeps
      ready = 1;
      const auto start = std::chrono::steady_clock::now();
      while (done.load() == 0 && std::chrono::steady_clock::now() - start < std::chrono::seconds(5))
        std::this_thread::yield();
      RANK_CHECK(done.load() == 1, "nobody did the work");
    }
    RANK_OK(zc_barrier(comm, nullptr));
  });
  EXPECT_EQ(zc_progress_remove(handle), ZC_OK);
}

TEST(Progress, refuses_nothing_to_run) {
  RankThreads ranks(1);
  zc_progress* handle = nullptr;
  EXPECT_EQ(zc_progress_add(ranks.comm(0), nullptr, nullptr, &handle), ZC_ARGUMENT);
  EXPECT_EQ(zc_progress_add(
                ranks.comm(0), [](void*) {}, nullptr, nullptr),
            ZC_ARGUMENT);
  EXPECT_EQ(zc_progress_add(
                nullptr, [](void*) {}, nullptr, &handle),
            ZC_ARGUMENT);
}

}  // namespace
}  // namespace zerocomm::test
