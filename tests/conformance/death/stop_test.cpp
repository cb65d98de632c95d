// A process that is stopped for a while (SIGSTOP, a debugger): its own deadlines wait for it, others say that it is
// stopped, and nobody waits for it without end.
#include "comm/fault.hpp"
#include "death/peer_lost.hpp"
#include "support/engine_world.hpp"

#include <fstream>
#include <memory>
#include <random>

namespace zerocomm::test {
namespace {

constexpr std::int64_t kDeadlineNs = 2 * kSecondNs;
constexpr std::int64_t kStopNs = 3 * kSecondNs;
constexpr std::int64_t kHalfNs = kSecondNs / 2;
constexpr std::int64_t kRoomNs = kSlack * kSecondNs;

// 'T' of a stopped process.
char state_of(pid_t pid) {
  std::ifstream file(format("/proc/%d/stat", pid));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= line.size() ? '?' : line[name_end + 2];
}

bool wait_for_stop(pid_t pid) {
  return wait_until([&] { return state_of(pid) == 'T'; });
}

void stop(const Children& children, std::int32_t index) {
  children.send_signal(index, SIGSTOP);
  EXPECT_TRUE(wait_for_stop(children.pid(index)));
}
void go_on(const Children& children, std::int32_t index) { children.send_signal(index, SIGCONT); }

std::string stopped_text(std::int32_t rank) {
  return format("; the process of rank %d is stopped: it has not run for ", rank);
}

// Rank 0 waits in a barrier and is stopped for longer than its deadline; then rank 1 comes.
void stop_one_that_waits(std::int64_t spin_ns, bool all) {
  const Shared<std::atomic<bool>> in_barrier, come;
  ChildRanks ranks(2,
                   [&](zc_comm* comm, std::int32_t rank) {
                     if (rank == 0) *in_barrier = true;
                     if (rank == 1)
                       RANK_CHECK(wait_until([&] { return come->load(); }, kSlack * 60 * kSecondNs), "never told");
                     RANK_OK(zc_barrier(comm, nullptr));
                   },
                   {.deadline_ns = kDeadlineNs, .spin_ns = spin_ns});
  EXPECT_TRUE(wait_until([&] { return in_barrier->load(); }));
  sleep_ns(kHalfNs);
  stop(ranks, 0);
  if (all) stop(ranks, 1);
  sleep_ns(kStopNs);
  go_on(ranks, 0);
  if (all) go_on(ranks, 1);
  sleep_ns(kHalfNs);  // it would have told by now that its time is up
  *come = true;
  expect_ok(ranks.wait(kSlack * 20 * kSecondNs));
}

TEST(Stop, of_a_rank_that_sleeps_in_a_wait_does_not_count_for_its_deadline) { stop_one_that_waits(ZC_POLL, false); }
TEST(Stop, of_a_rank_that_spins_in_a_wait_does_not_count_for_its_deadline) {
  stop_one_that_waits(60 * kSecondNs, false);
}
TEST(Stop, of_all_ranks_counts_for_nobodys_deadline) { stop_one_that_waits(ZC_POLL, true); }

TEST(Stop, is_what_ranks_that_wait_say_of_their_peer) {
  constexpr std::int32_t kRanks = 3;
  const Shared<std::atomic<std::int32_t>> ready;
  const Shared<std::atomic<bool>> come;
  const SharedArray<Told> told(kRanks);
  const SharedArray<std::int64_t> began_ns(kRanks);
  ChildRanks ranks(kRanks,
                   [&](zc_comm* comm, std::int32_t rank) {
                     ++*ready;
                     if (rank == 1)
                       for (;;) {  // stopped in here
                         if (come->load()) break;
                         sleep_ns(kMillisecondNs);
                       }
                     RANK_CHECK(wait_until([&] { return come->load(); }, kSlack * 60 * kSecondNs), "never told");
                     began_ns[rank] = steady_ns();
                     told[rank].tell(zc_barrier(comm, nullptr));
                     check_stays(comm, told[rank]);
                   },
                   {.deadline_ns = kDeadlineNs});
  EXPECT_TRUE(wait_until([&] { return ready->load() == kRanks; }));
  stop(ranks, 1);
  *come = true;
  EXPECT_TRUE(wait_until([&] { return told[0].when_ns != 0 && told[2].when_ns != 0; }, kSlack * 20 * kSecondNs));
  go_on(ranks, 1);
  expect_ok(ranks.wait(kSlack * 20 * kSecondNs));
  for (const std::int32_t rank : {0, 2}) {
    const std::int64_t waited_ns = told[rank].when_ns - began_ns[rank];
    EXPECT_LT(waited_ns, kDeadlineNs + kRoomNs);
  }
  EXPECT_GE(std::max(told[0].when_ns - began_ns[0], told[2].when_ns - began_ns[2]), kDeadlineNs);
  for (const Told& each : told) {
    EXPECT_EQ(each.status, ZC_TIMEOUT);
    EXPECT_STREQ(each.text, told[0].text);
  }
  const std::string text = told[0].text;
  EXPECT_NE(text.find("rank 1 did not come to call 0, zc_barrier()"), std::string::npos) << text;
  EXPECT_NE(text.find(stopped_text(1)), std::string::npos) << text;
}

TEST(Stop, is_not_said_of_a_peer_that_only_does_not_call) {
  const Shared<Told> told;
  ChildRanks ranks(2,
                   [&](zc_comm* comm, std::int32_t rank) {
                     if (rank == 1)
                       RANK_CHECK(wait_until([&] { return told->when_ns != 0; }, kSlack * 60 * kSecondNs), "never");
                     const zc_status status = zc_barrier(comm, nullptr);
                     if (rank == 0) told->tell(status);
                     RANK_CHECK(status == ZC_TIMEOUT, "%s", zc_status_name(status));
                   },
                   {.deadline_ns = kDeadlineNs});
  expect_ok(ranks.wait(kSlack * 20 * kSecondNs));
  EXPECT_EQ(std::string(told->text).find("is stopped"), std::string::npos) << told->text;
  EXPECT_NE(std::string(told->text).find("rank 1 did not come"), std::string::npos) << told->text;
}

TEST(Stop, that_is_shorter_than_the_deadline_harms_nobody) {
  constexpr std::int32_t kRanks = 3;
  const Shared<std::atomic<bool>> over;
  const Shared<std::atomic<std::int64_t>> turns;
  ChildRanks ranks(
      kRanks,
      [&](zc_comm* comm, std::int32_t rank) {
        std::vector<float> data(20'000);
        for (;;) {
          std::fill(data.begin(), data.end(), 1.0F);
          data[0] = rank == 0 && over->load() ? 1.0F : 0.0F;
          RANK_OK(zc_all_reduce(comm, data.data(), data.data(), data.size(), ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
          RANK_CHECK(data[19'999] == kRanks, "%g", static_cast<double>(data[19'999]));
          if (data[0] != 0) return;
          if (rank == 0) ++*turns;
        }
      },
      {.deadline_ns = kDeadlineNs});
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    const std::int64_t before = turns->load();
    EXPECT_TRUE(wait_until([&] { return turns->load() > before + 5; }));
    stop(ranks, rank);
    sleep_ns(kDeadlineNs / 2);
    go_on(ranks, rank);
  }
  *over = true;
  expect_ok(ranks.wait(kSlack * 20 * kSecondNs));
}

thread_local const char* stop_at = nullptr;

// One rank stops itself at a step of an all_reduce; the calls of the others return all the same.
void stop_in_the_middle(const char* step, bool shared) {
  constexpr std::int32_t kRanks = 3, kVictim = 1;
  const Shared<std::atomic<std::int32_t>> returned;
  const SharedArray<Told> told(kRanks);
  const SharedArray<std::int64_t> began_ns(kRanks);
  ChildRanks ranks(kRanks,
                   [&](zc_comm* comm, std::int32_t rank) {
                     constexpr std::size_t kCount = 1'000;
                     std::vector<float> own(kCount);
                     float* data = own.data();
                     if (shared) {
                       void* memory = nullptr;
                       RANK_OK(zc_mem_alloc(comm, kCount * sizeof(float), &memory));
                       data = static_cast<float*>(memory);
                     }
                     comm::fault_hook.store([](const char* name) {
                       if (stop_at == nullptr || std::strcmp(stop_at, name) != 0) return;
                       stop_at = nullptr;
                       raise(SIGSTOP);
                     });
                     RANK_OK(zc_barrier(comm, nullptr));
                     if (rank == kVictim) stop_at = step;
                     began_ns[rank] = steady_ns();
                     told[rank].tell(zc_all_reduce(comm, data, data, kCount, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
                     ++*returned;
                     check_stays(comm, told[rank]);
                   },
                   {.deadline_ns = kDeadlineNs});
  EXPECT_TRUE(wait_for_stop(ranks.pid(kVictim)));
  EXPECT_TRUE(wait_until([&] { return returned->load() == kRanks - 1; }, kSlack * 20 * kSecondNs));
  EXPECT_EQ(state_of(ranks.pid(kVictim)), 'T');
  go_on(ranks, kVictim);
  expect_ok(ranks.wait(kSlack * 20 * kSecondNs));
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(told[rank].status, ZC_TIMEOUT) << rank << ": " << told[rank].text;
    EXPECT_STREQ(told[rank].text, told[0].text);
    // After the deadline a second for those who read.
    if (rank != kVictim) {
      EXPECT_LT(told[rank].when_ns - began_ns[rank], kDeadlineNs + kSecondNs + kRoomNs) << rank;
    }
  }
  const std::string text = told[0].text;
  EXPECT_NE(text.find("rank 1 has not "), std::string::npos) << text;
  EXPECT_NE(text.find(stopped_text(kVictim)), std::string::npos) << text;
}

TEST(Stop, in_the_middle_of_reading_lets_the_others_return) { stop_in_the_middle("reading", true); }
TEST(Stop, before_filling_its_staging_lets_the_others_return) { stop_in_the_middle("free half", false); }

// Somewhere in training, perhaps with a slice in hand.
TEST(Stop, in_training_lets_the_others_return) {
  constexpr std::int32_t kRanks = 4;
  constexpr int kStops = kSanitized ? 1 : 4;
  slice_of_table(0, ZC_DTYPE_F32, 1);  // made once for all children
  std::mt19937 random(5);
  for (int turn = 0; turn < kStops && !HasFailure(); ++turn) {
    const std::int32_t victim = turn % kRanks;
    const Shared<std::atomic<std::int32_t>> ready, returned;
    const SharedArray<Told> told(kRanks);
    ChildRanks ranks(kRanks,
                     [&](zc_comm* comm, std::int32_t rank) {
                       WorldSetup setup;
                       setup.model = hand_model({{"a", "first", "", 40'000, ZC_DTYPE_BF16, false},
                                                 {"b", "second", "", 60'001, ZC_DTYPE_F32, false}});
                       setup.ranks = kRanks;
                       setup.layout.stage = ZC_STAGE_2;
                       setup.layout.bucket_bytes = 65'536;
                       RankEngine engine(comm, setup);
                       engine.load();
                       ++*ready;
                       for (std::size_t step = 0; told[rank].when_ns == 0; ++step) try {
                           engine.step(step);
                         } catch (const RankFailure&) {
                           told[rank].tell(zc_comm_status(comm));
                         }
                       ++*returned;
                       check_stays(comm, told[rank]);
                     },
                     {.deadline_ns = kDeadlineNs / 2});
    EXPECT_TRUE(wait_until([&] { return ready->load() == kRanks; }));
    sleep_ns(static_cast<std::int64_t>(random() % 30'000) * 1'000);
    stop(ranks, victim);
    const std::int64_t stopped_ns = steady_ns();
    EXPECT_TRUE(wait_until([&] { return returned->load() == kRanks - 1; }, kDeadlineNs + kSecondNs + 2 * kRoomNs))
        << "after " << steady_ns() - stopped_ns << " ns";
    go_on(ranks, victim);
    expect_ok(ranks.wait(kSlack * 20 * kSecondNs));
    for (const Told& each : told) {
      EXPECT_EQ(each.status, ZC_TIMEOUT) << each.text;
      EXPECT_STREQ(each.text, told[0].text);
    }
    const std::string text = told[0].text;
    // Stopped with a slice in hand it has arrived already; then it is among those who took one.
    EXPECT_NE(text.find(format("rank %d", victim)), std::string::npos) << text;
  }
}

// Each process watches another one. If that one dies while its watcher is stopped, the rest find out by themselves.
TEST(Stop, of_the_process_that_would_notice_a_death_hides_it_from_nobody) {
  constexpr std::int32_t kRanks = 4;
  for (std::int32_t victim = 0; victim < kRanks; ++victim)
    for (std::int32_t stopped = 0; stopped < kRanks; ++stopped) {
      if (stopped == victim) continue;
      const Shared<std::atomic<std::int32_t>> ready, returned;
      const SharedArray<Told> told(kRanks);
      ChildRanks ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
        ++*ready;
        if (rank == victim)
          for (;;) ::pause();
        told[rank].tell(zc_barrier(comm, nullptr));
        ++*returned;
      });
      EXPECT_TRUE(wait_until([&] { return ready->load() == kRanks; }));
      stop(ranks, stopped);
      const std::int64_t killed_ns = steady_ns();
      ranks.send_signal(victim, SIGKILL);
      EXPECT_TRUE(wait_until([&] { return returned->load() == kRanks - 2; }, kRoomNs))
          << "rank " << victim << " killed";
      const std::int64_t known_ns = steady_ns();
      go_on(ranks, stopped);
      ranks.wait(kSlack * 20 * kSecondNs);
      expect_lost(told, ranks, {victim});
      if (HasFailure()) {
        FAIL() << "rank " << victim << " killed, rank " << stopped << " stopped, known after " << known_ns - killed_ns;
      }
    }
}

}  // namespace
}  // namespace zerocomm::test
