// A third of the ranks is killed somewhere in a loop of everything that ranks do.
#pragma once

#include "death/leftovers.hpp"
#include "death/peer_lost.hpp"
#include "support/engine_world.hpp"

#include <zerocomm/mem.h>

#include <memory>
#include <random>

namespace zerocomm::test {

// Collectives of every kind, windows and training, by turns, until something fails.
class MixedWork {
 public:
  MixedWork(zc_comm* comm, std::int32_t ranks) : comm_(comm), ranks_(static_cast<std::size_t>(ranks)) {
    setup_.model = hand_model({{"a", "first", "", 3'000, ZC_DTYPE_BF16, false},
                               {"b", "second", "", 1'001, ZC_DTYPE_F32, false},
                               {"c", "third", "", 5'000, ZC_DTYPE_BF16, false}});
    setup_.ranks = ranks;
    setup_.layout.stage = ZC_STAGE_3;
    engine_ = std::make_unique<RankEngine>(comm, setup_);
    engine_->load();
    void* memory = nullptr;
    RANK_OK(zc_mem_alloc(comm, kMost * sizeof(float), &memory));
    shared_ = static_cast<float*>(memory);
  }

  // Does not return: throws what the library said.
  [[noreturn]] void run() {
    for (std::size_t turn = 0;; ++turn) {
      const std::uint64_t draw = mix(3, turn);
      const std::size_t count = draw % 40'000 + 1;
      float* const data = (draw >> 20) % 2 == 0 ? shared_ : private_.data();
      switch ((draw >> 30) % 7) {
        case 0:
          RANK_OK(zc_all_reduce(comm_, data, data, count, ZC_DTYPE_F32, ZC_OP_AVG, nullptr));
          break;
        case 1:
          RANK_OK(zc_reduce_scatter(comm_, data, result_.data(), count, ZC_DTYPE_F32, ZC_OP_MAX, nullptr));
          break;
        case 2:
          RANK_OK(zc_all_gather(comm_, data, result_.data(), count, ZC_DTYPE_F32, nullptr));
          break;
        case 3:
          RANK_OK(zc_broadcast(comm_, data, count, ZC_DTYPE_F32, static_cast<std::int32_t>(draw % ranks_), nullptr));
          break;
        case 4:
          RANK_OK(zc_barrier(comm_, nullptr));
          break;
        case 5:
          make_window(count);
          break;
        default:
          engine_->step(turn);
      }
    }
  }

 private:
  static constexpr std::size_t kMost = 40'000 * 6;

  void make_window(std::size_t bytes) {
    zc_window_config config{};
    config.struct_size = sizeof config;
    config.bytes = bytes;
    zc_window* window = nullptr;
    RANK_OK(zc_window_create(comm_, &config, &window));
    RANK_OK(zc_window_destroy(window));
  }

  zc_comm* comm_;
  std::size_t ranks_;
  WorldSetup setup_;
  std::unique_ptr<RankEngine> engine_;
  float* shared_ = nullptr;
  std::vector<float> private_ = std::vector<float>(kMost), result_ = std::vector<float>(kMost);
};

// One run. Every survivor ends by itself, soon, naming a rank that was killed. Returns the memory that the ranks had.
inline std::set<std::uint64_t> kill_a_third(std::uint64_t seed, std::int64_t* slowest_ns) {
  constexpr std::int32_t kRanks = 6;
  constexpr std::int64_t kMostNs = kSlack * kSecondNs;
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> victims = {0, 1, 2, 3, 4, 5};
  std::shuffle(victims.begin(), victims.end(), random);
  victims.resize(kRanks / 3);
  const Shared<std::atomic<std::int32_t>> ready;
  const SharedArray<std::uint64_t> memory(kRanks);
  ChildRanks ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
    MixedWork work(comm, kRanks);
    for (const std::uint64_t inode : mapped_memory()) memory[rank] = inode;
    ++*ready;
    work.run();
  });
  EXPECT_TRUE(wait_until([&] { return ready->load() == kRanks; }));
  std::int64_t first_ns = 0;
  for (const std::int32_t victim : victims) {
    sleep_ns(static_cast<std::int64_t>(random() % 30'000) * 1'000);
    if (first_ns == 0) first_ns = steady_ns();
    ranks.send_signal(victim, SIGKILL);
  }
  const std::vector<ChildEnd> ends = ranks.wait(kSlack * 20 * kSecondNs);
  std::set<std::uint64_t> inodes(memory.begin(), memory.end());
  EXPECT_EQ(inodes.size(), 1u) << "the ranks of one communicator have one piece of memory";
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    const ChildEnd& end = ends[static_cast<std::size_t>(rank)];
    if (std::find(victims.begin(), victims.end(), rank) != victims.end()) {
      // The second victim may have ended by itself, told of the first.
      EXPECT_TRUE(end.killed_by(SIGKILL) || (rank == victims[1] && end.exited && end.code == 1)) << end.text;
      continue;
    }
    EXPECT_TRUE(end.exited && end.code == 1) << "rank " << rank << ": " << end.code << " " << end.text;
    const bool named = end.text.find(lost_text(victims[0], ranks.pid(victims[0]))) != std::string::npos ||
                       end.text.find(lost_text(victims[1], ranks.pid(victims[1]))) != std::string::npos;
    EXPECT_TRUE(named && end.text.find("PEER_LOST") != std::string::npos) << "rank " << rank << ": " << end.text;
    EXPECT_LT(end.end_ns - first_ns, kMostNs) << "rank " << rank << ": " << end.text;
    *slowest_ns = std::max(*slowest_ns, end.end_ns - first_ns);
  }
  return inodes;
}

// All ranks are killed at once, so that nobody is there to tidy up.
inline std::set<std::uint64_t> kill_all(std::uint64_t seed, std::int64_t* slowest_ns) {
  constexpr std::int32_t kRanks = 4;
  const Shared<std::atomic<std::int32_t>> ready;
  const SharedArray<std::uint64_t> memory(kRanks);
  ChildRanks ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
    MixedWork work(comm, kRanks);
    for (const std::uint64_t inode : mapped_memory()) memory[rank] = inode;
    ++*ready;
    work.run();
  });
  EXPECT_TRUE(wait_until([&] { return ready->load() == kRanks; }));
  sleep_ns(static_cast<std::int64_t>(mix(seed, 1) % 10'000) * 1'000);
  const std::int64_t first_ns = steady_ns();
  for (std::int32_t rank = 0; rank < kRanks; ++rank) ranks.send_signal(rank, SIGKILL);
  for (const ChildEnd& end : ranks.wait(kSlack * 20 * kSecondNs)) {
    EXPECT_TRUE(end.killed_by(SIGKILL) || (end.exited && end.code == 1)) << end.text;
    *slowest_ns = std::max(*slowest_ns, end.end_ns - first_ns);
  }
  return {memory.begin(), memory.end()};
}

// Many runs, after which nothing is left of them.
inline void kill_often(std::set<std::uint64_t> (*kill_some)(std::uint64_t, std::int64_t*), std::uint64_t first_seed,
                       int runs) {
  slice_of_table(0, ZC_DTYPE_F32, 1);  // made once for all children
  const bool alone = own_sockets_and_shm();
  if (!alone) std::printf("no rights for sockets and files of our own: they are looked for less strictly\n");
  const HostState before = HostState::now(alone);
  std::set<std::uint64_t> memory;
  std::int64_t slowest_ns = 0;
  for (int run = 0; run < runs && !testing::Test::HasFailure(); ++run) {
    memory.merge(kill_some(first_seed + static_cast<std::uint64_t>(run), &slowest_ns));
    expect_no_child();
    expect_equal(before, HostState::now(alone));
  }
  EXPECT_EQ(memory.size(), static_cast<std::size_t>(runs));
  EXPECT_EQ(users_of(memory), "");
  std::printf("%d runs: the slowest end came %.1f ms after the first kill\n", runs,
              static_cast<double>(slowest_ns) * 1e-6);
}

}  // namespace zerocomm::test
