// zc_comm_abort in a signal handler, wherever the signal finds the thread.
#include "death/peer_lost.hpp"
#include "support/engine_world.hpp"

#include <zerocomm/mem.h>

#include <sys/time.h>

#include <cstdlib>
#include <memory>
#include <random>

namespace zerocomm::test {
namespace {

constexpr std::int32_t kRanks = 3;
constexpr int kRuns = kSanitized ? 3 : 12;
constexpr std::int64_t kMostNs = kSlack * 100 * kMillisecondNs;

using Turn = std::function<zc_status()>;
using MakeTurn = std::function<Turn(zc_comm* comm, bool is_aborter)>;

// What the handler knows.
zc_comm* aborted_comm = nullptr;
std::atomic<std::int64_t>* aborted_ns = nullptr;

void abort_in_handler(int) {
  const int before = errno;
  *aborted_ns = steady_ns();
  zc_comm_abort(aborted_comm);
  errno = before;
}

void alarm_after(std::int64_t duration_ns) {
  struct sigaction action {};
  action.sa_handler = abort_in_handler;
  sigaction(SIGALRM, &action, nullptr);
  itimerval timer{};
  timer.it_value.tv_usec = static_cast<suseconds_t>(duration_ns / 1'000);
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// Ranks take turns until they fail; a signal makes one of them abort.
void abort_by_signal(const MakeTurn& make) {
  std::mt19937 random(11);
  std::int64_t slowest_ns = 0;
  for (int run = 0; run < kRuns && !testing::Test::HasFailure(); ++run) {
    const std::int32_t aborter = run % kRanks;
    const std::int64_t after_ns = static_cast<std::int64_t>(random() % 15'000 + 500) * 1'000;
    const Shared<std::atomic<std::int64_t>> at_ns;
    const SharedArray<Told> told(kRanks);
    ChildRanks ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
      const Turn turn = make(comm, rank == aborter);
      RANK_OK(zc_barrier(comm, nullptr));
      aborted_comm = comm;
      aborted_ns = &*at_ns;
      if (rank == aborter) alarm_after(after_ns);
      zc_status status = ZC_OK;
      while (status == ZC_OK) status = turn();
      told[rank].tell(status);
      check_stays(comm, told[rank]);
      wait_for_all_told(told);
    });
    expect_ok(ranks.wait(kSlack * 20 * kSecondNs));
    const std::string text = format("rank %d (pid %d) called zc_comm_abort", aborter, ranks.pid(aborter));
    for (const Told& each : told) {
      EXPECT_EQ(each.status, ZC_ABORTED) << each.text;
      EXPECT_EQ(each.text, text);
      EXPECT_LT(each.when_ns - at_ns->load(), kMostNs);
      slowest_ns = std::max(slowest_ns, each.when_ns - at_ns->load());
    }
  }
  std::printf("%d aborts: the slowest return came after %.1f ms\n", kRuns, static_cast<double>(slowest_ns) * 1e-6);
}

TEST(AbortInAHandler, ends_a_barrier_that_sleeps) {
  abort_by_signal([](zc_comm* comm, bool is_aborter) -> Turn {
    if (!is_aborter) return [comm] { return zc_barrier(comm, nullptr); };
    return [comm] {
      return zc_comm_wait(
          comm, [](void*) { return 0; }, nullptr, nullptr);
    };
  });
}

TEST(AbortInAHandler, ends_staged_sums) {
  abort_by_signal([](zc_comm* comm, bool) -> Turn {
    auto data = std::make_shared<std::vector<float>>(300'000);
    return [comm, data] {
      return zc_all_reduce(comm, data->data(), data->data(), data->size(), ZC_DTYPE_F32, ZC_OP_SUM, nullptr);
    };
  });
}

TEST(AbortInAHandler, ends_direct_sums) {
  abort_by_signal([](zc_comm* comm, bool) -> Turn {
    constexpr std::size_t kCount = 300'000;
    void* memory = nullptr;
    RANK_OK(zc_mem_alloc(comm, kCount * sizeof(float), &memory));
    return [comm, memory] { return zc_all_reduce(comm, memory, memory, kCount, ZC_DTYPE_F32, ZC_OP_SUM, nullptr); };
  });
}

TEST(AbortInAHandler, ends_gathers_of_private_memory) {
  abort_by_signal([](zc_comm* comm, bool) -> Turn {
    constexpr std::size_t kCount = 100'000;
    auto send = std::make_shared<std::vector<float>>(kCount),
         recv = std::make_shared<std::vector<float>>(kRanks * kCount);
    return [=] { return zc_all_gather(comm, send->data(), recv->data(), kCount, ZC_DTYPE_F32, nullptr); };
  });
}

TEST(AbortInAHandler, ends_calls_of_many_small_windows) {
  abort_by_signal([](zc_comm* comm, bool) -> Turn {
    return [comm] {
      zc_window* window = nullptr;
      const zc_status status = zc_window_create(comm, nullptr, &window);
      if (status == ZC_OK) zc_window_destroy(window);
      return status;
    };
  });
}

TEST(AbortInAHandler, works_while_the_thread_is_in_malloc) {
  abort_by_signal([](zc_comm* comm, bool is_aborter) -> Turn {
    if (!is_aborter) return [comm] { return zc_barrier(comm, nullptr); };
    return [comm] {
      std::vector<void*> held;
      for (std::size_t turn = 0; aborted_ns->load() == 0; ++turn) {
        held.push_back(std::malloc(mix(5, turn) % 100'000 + 1));
        if (held.size() < 100) continue;
        for (void* one : held) std::free(one);
        held.clear();
      }
      for (void* one : held) std::free(one);
      return zc_barrier(comm, nullptr);
    };
  });
}

TEST(AbortInAHandler, ends_training) {
  slice_of_table(0, ZC_DTYPE_F32, 1);  // made once for all children
  struct World {
    WorldSetup setup;
    std::unique_ptr<RankEngine> engine;
    std::size_t step = 0;
  };
  abort_by_signal([](zc_comm* comm, bool) -> Turn {
    auto world = std::make_shared<World>();
    world->setup.model =
        hand_model({{"a", "first", "", 9'000, ZC_DTYPE_BF16, false}, {"b", "second", "", 10'001, ZC_DTYPE_F32, false}});
    world->setup.ranks = kRanks;
    world->setup.layout.stage = ZC_STAGE_3;
    world->engine = std::make_unique<RankEngine>(comm, world->setup);
    world->engine->load();
    return [comm, world] {
      try {
        world->engine->step(world->step++);
      } catch (const RankFailure&) {
        return zc_comm_status(comm);
      }
      return ZC_OK;
    };
  });
}

}  // namespace
}  // namespace zerocomm::test
