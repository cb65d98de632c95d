// A rank is killed, and the others are told at once, wherever they are.
#include "death/peer_lost.hpp"
#include "support/engine_world.hpp"

#include <zerocomm/mem.h>

#include <memory>
#include <random>

namespace zerocomm::test {
namespace {

constexpr std::int32_t kRanks = 4;
constexpr int kKills = kSanitized ? 4 : 20;
constexpr std::int64_t kMedianNs = (kSanitized ? 2'000 : 50) * kMillisecondNs;
// Where it takes longer than that until a process learns of the end of another by a pipe, nothing can be measured.
constexpr std::int64_t kBusyNs = 5 * kMillisecondNs;

// What a rank does again and again until it fails, and what it needs for that.
using Turn = std::function<zc_status()>;
using MakeTurn = std::function<Turn(zc_comm* comm, std::int32_t rank, std::int32_t victim)>;

struct Meeting {
  std::atomic<std::int32_t> ready{0};
  std::atomic<std::int64_t> killed_ns{0};
};

zc_status wait_for_the_end() {
  for (;;) ::pause();
}

// Kills one rank at some moment of its turns; how long it took until the last of the others knew, and which operation
// of the victim they tell.
std::int64_t kill_one(const MakeTurn& make, std::int32_t victim, std::int64_t after_ns, std::string* last) {
  const Shared<Meeting> meeting;
  const SharedArray<Told> told(kRanks);
  ChildRanks ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
    const Turn turn = make(comm, rank, victim);
    ++meeting->ready;
    zc_status status = ZC_OK;
    while (status == ZC_OK) status = turn();
    told[rank].tell(status);
    check_stays(comm, told[rank]);
    wait_for_all_told(told, victim);
  });
  EXPECT_TRUE(wait_until([&] { return meeting->ready.load() == kRanks; }));
  sleep_ns(after_ns);
  meeting->killed_ns = steady_ns();
  ranks.send_signal(victim, SIGKILL);
  const std::vector<ChildEnd> ends = ranks.wait(kSlack * 20 * kSecondNs);
  std::int64_t latest_ns = 0;
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    const ChildEnd& end = ends[static_cast<std::size_t>(rank)];
    if (rank == victim) {
      EXPECT_TRUE(end.killed_by(SIGKILL)) << end.text;
      continue;
    }
    EXPECT_TRUE(end.ok()) << "rank " << rank << ": " << end.text;
    latest_ns = std::max(latest_ns, told[rank].when_ns - meeting->killed_ns.load());
  }
  *last = expect_lost(told, ranks, {victim});
  return latest_ns;
}

std::int64_t median_of(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

// What the system needs for the same without a library: how long after a kill another process reads the end of a pipe.
std::int64_t pipe_latency_ns() {
  std::vector<std::int64_t> latencies;
  for (int turn = 0; turn < 5; ++turn) {
    const Shared<std::atomic<std::int64_t>> known_ns;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw RankFailure("no pipe");
    Children children;
    const std::int32_t victim = children.start([] { wait_for_the_end(); });
    children.start([&] {
      close(ends[1]);
      char byte = 0;
      RANK_CHECK(read(ends[0], &byte, 1) == 0, "the pipe did not end");
      *known_ns = steady_ns();
    });
    close(ends[0]);
    close(ends[1]);
    sleep_ns(10 * kMillisecondNs);
    const std::int64_t killed_ns = steady_ns();
    children.send_signal(victim, SIGKILL);
    children.wait();
    latencies.push_back(known_ns->load() - killed_ns);
  }
  return median_of(std::move(latencies));
}

// Every rank is the victim in turn.
void kill_many(const char* where, const std::string& last_call, const MakeTurn& make) {
  slice_of_table(0, ZC_DTYPE_F32, 1);  // the gradients of all engines, made once for all children
  const std::int64_t pipe_before_ns = pipe_latency_ns();
  std::mt19937 random(7);
  std::vector<std::int64_t> latencies;
  std::vector<std::string> lasts(kKills);
  for (int kill = 0; kill < kKills && !testing::Test::HasFailure(); ++kill)
    latencies.push_back(kill_one(make, kill % kRanks,
                                 static_cast<std::int64_t>(random() % 20'000) * 1'000 + kMillisecondNs,
                                 &lasts[static_cast<std::size_t>(kill)]));
  const std::int64_t median_ns = median_of(latencies), pipe_ns = std::max(pipe_before_ns, pipe_latency_ns());
  const auto milliseconds = [](std::int64_t duration_ns) { return static_cast<double>(duration_ns) * 1e-6; };
  std::printf("%-44s %zu kills: median %7.2f ms, worst %7.2f ms (a pipe %.2f ms)\n", where, latencies.size(),
              milliseconds(median_ns), milliseconds(*std::max_element(latencies.begin(), latencies.end())),
              milliseconds(pipe_ns));
  // A victim that did not get to run in the time before it was killed has done nothing.
  if (pipe_ns > kBusyNs) GTEST_SKIP() << "everybody was told, but the machine is too busy to say how soon";
  for (const std::string& last : lasts)
    EXPECT_NE(last.find(last_call), std::string::npos) << "\"" << last << "\" does not name " << last_call;
  EXPECT_LT(median_ns, kMedianNs);
}

TEST(Kill, is_known_to_ranks_that_compute) {
  kill_many("the others compute", "none", [](zc_comm* comm, std::int32_t rank, std::int32_t victim) -> Turn {
    if (rank == victim) return wait_for_the_end;
    return [comm] {
      const std::int64_t until_ns = steady_ns() + kMillisecondNs / 5;
      while (steady_ns() < until_ns) {
      }
      return zc_comm_status(comm);
    };
  });
}

TEST(Kill, ends_a_barrier) {
  kill_many("the others wait in a barrier", "none", [](zc_comm* comm, std::int32_t rank, std::int32_t victim) -> Turn {
    if (rank == victim) return wait_for_the_end;
    return [comm] { return zc_barrier(comm, nullptr); };
  });
}

TEST(Kill, ends_zc_window_wait) {
  kill_many("the others wait in zc_window_wait", "call 0, zc_window_create(words 1), begun",
            [](zc_comm* comm, std::int32_t rank, std::int32_t victim) -> Turn {
              zc_window* window = nullptr;
              RANK_OK(zc_window_create(comm, nullptr, &window));
              RANK_OK(zc_window_signal(window, 3));
              if (rank == victim) return wait_for_the_end;
              return [window, victim] { return zc_window_wait(window, victim, 4, nullptr); };
            });
}

constexpr std::size_t kManyFloats = kSanitized ? 1 << 17 : 2 << 20;  // 8 MiB

std::string begun(const char* call, std::size_t count, const char* rest) {
  return format("%s(count %zu, f32%s), begun", call, count, rest);
}

TEST(Kill, ends_a_staged_all_reduce) {
  kill_many("in a staged all_reduce of 8 MiB", begun("zc_all_reduce", kManyFloats, ", sum"),
            [](zc_comm* comm, std::int32_t, std::int32_t) -> Turn {
              auto data = std::make_shared<std::vector<float>>(kManyFloats);
              return [comm, data] {
                return zc_all_reduce(comm, data->data(), data->data(), kManyFloats, ZC_DTYPE_F32, ZC_OP_SUM, nullptr);
              };
            });
}

TEST(Kill, ends_a_direct_all_reduce) {
  kill_many("in a direct all_reduce of 8 MiB", begun("zc_all_reduce", kManyFloats, ", sum"),
            [](zc_comm* comm, std::int32_t, std::int32_t) -> Turn {
              void* memory = nullptr;
              RANK_OK(zc_mem_alloc(comm, kManyFloats * sizeof(float), &memory));
              return [comm, memory] {
                return zc_all_reduce(comm, memory, memory, kManyFloats, ZC_DTYPE_F32, ZC_OP_SUM, nullptr);
              };
            });
}

TEST(Kill, ends_an_all_gather_of_private_memory) {
  kill_many("in an all_gather out of private memory", begun("zc_all_gather", kManyFloats / 4, ""),
            [](zc_comm* comm, std::int32_t, std::int32_t) -> Turn {
              auto send = std::make_shared<std::vector<float>>(kManyFloats / 4);
              auto recv = std::make_shared<std::vector<float>>(kManyFloats);
              return [comm, send, recv] {
                return zc_all_gather(comm, send->data(), recv->data(), kManyFloats / 4, ZC_DTYPE_F32, nullptr);
              };
            });
}

TEST(Kill, ends_a_broadcast_of_private_memory) {
  kill_many("in a broadcast of private memory", begun("zc_broadcast", kManyFloats, ""),
            [](zc_comm* comm, std::int32_t, std::int32_t) -> Turn {
              auto data = std::make_shared<std::vector<float>>(kManyFloats);
              return [comm, data, turn = 0]() mutable {
                return zc_broadcast(comm, data->data(), kManyFloats, ZC_DTYPE_F32, turn++ % kRanks, nullptr);
              };
            });
}

// The status that ended `body`, which throws when the library refuses.
template <class Body>
zc_status status_of(zc_comm* comm, Body&& body) {
  try {
    body();
  } catch (const RankFailure&) {
    if (const zc_status status = zc_comm_status(comm); status != ZC_OK) return status;
    throw;
  }
  return ZC_OK;
}

// An engine of four units, in the memory of the rank.
struct EngineOfRank {
  WorldSetup setup;
  std::unique_ptr<RankEngine> engine;
  std::size_t step = 0;

  EngineOfRank(zc_comm* comm, zc_stage stage) {
    setup.model = hand_model({{"a", "first", "", 40'000, ZC_DTYPE_BF16, false},
                              {"b", "second", "", 30'001, ZC_DTYPE_F32, false},
                              {"c", "third", "", 7, ZC_DTYPE_F32, false},
                              {"d", "fourth", "", 50'000, ZC_DTYPE_BF16, false}});
    setup.ranks = kRanks;
    setup.layout.stage = stage;
    setup.layout.bucket_bytes = 65'536;
    engine = std::make_unique<RankEngine>(comm, setup);
    engine->load();
  }
};

void kill_in_steps(const char* where, zc_stage stage) {
  kill_many(where, "zero ", [stage](zc_comm* comm, std::int32_t, std::int32_t) -> Turn {
    auto world = std::make_shared<EngineOfRank>(comm, stage);
    return [comm, world] { return status_of(comm, [&] { world->engine->step(world->step++); }); };
  });
}

TEST(Kill, ends_steps_of_training_in_stage_1) { kill_in_steps("in steps of training, stage 1", ZC_STAGE_1); }
TEST(Kill, ends_steps_of_training_in_stage_3) { kill_in_steps("in steps of training, stage 3", ZC_STAGE_3); }

TEST(Kill, ends_zc_zero_end) {
  kill_many("the others wait in zc_zero_end", "zero begin ",
            [](zc_comm* comm, std::int32_t rank, std::int32_t victim) -> Turn {
              auto world = std::make_shared<EngineOfRank>(comm, ZC_STAGE_2);
              RANK_OK(zc_zero_begin(world->engine->zero(), "train", ZC_PHASE_ONLY));
              if (rank == victim) return wait_for_the_end;
              for (std::size_t use = 0; use < world->engine->info().use_count; ++use)
                RANK_OK(zc_zero_grad_absent(world->engine->zero(), use));
              return [world] { return zc_zero_end(world->engine->zero()); };
            });
}

TEST(Kill, ends_zc_zero_acquire) {
  kill_many("the others wait in zc_zero_acquire", "zero update ",
            [](zc_comm* comm, std::int32_t rank, std::int32_t victim) -> Turn {
              auto world = std::make_shared<EngineOfRank>(comm, ZC_STAGE_3);
              world->engine->step(0);
              zc_zero* const zero = world->engine->zero();
              RANK_OK(zc_zero_update_begin(zero));
              if (rank == victim) return wait_for_the_end;
              RANK_OK(zc_zero_publish(zero, nullptr));
              RANK_OK(zc_zero_begin(zero, "look", ZC_PHASE_EVAL));
              return [world, zero] {
                const void* tensors[4];
                return zc_zero_acquire(zero, 1, tensors, 4, nullptr);
              };
            });
}

TEST(Kill, ends_zc_zero_update_begin) {
  kill_many("the others wait in zc_zero_update_begin", "zero publish ",
            [](zc_comm* comm, std::int32_t rank, std::int32_t victim) -> Turn {
              auto world = std::make_shared<EngineOfRank>(comm, ZC_STAGE_3);
              zc_zero* const zero = world->engine->zero();
              world->engine->step(0);
              if (rank == victim) return wait_for_the_end;
              return [zero, world] { return zc_zero_update_begin(zero); };
            });
}

TEST(Kill, ends_passes_that_fetch_ahead) {
  kill_many("in passes that fetch ahead", "zero ", [](zc_comm* comm, std::int32_t, std::int32_t) -> Turn {
    auto world = std::make_shared<EngineOfRank>(comm, ZC_STAGE_3);
    world->engine->step(0);
    return [comm, world] {
      zc_zero* const zero = world->engine->zero();
      return status_of(comm, [&] {
        RANK_OK(zc_zero_begin(zero, "look", ZC_PHASE_EVAL));
        for (std::size_t unit = 0; unit < 4; ++unit) {
          const void* tensors[4];
          RANK_OK(zc_zero_acquire(zero, unit, tensors, 4, nullptr));
          RANK_OK(zc_zero_release(zero, unit, nullptr));
          const zc_status ahead = zc_zero_prefetch(zero, (unit + 2) % 4);
          if (ahead != ZC_AGAIN) RANK_OK(ahead);
        }
        RANK_OK(zc_zero_end(zero));
      });
    };
  });
}

}  // namespace
}  // namespace zerocomm::test
