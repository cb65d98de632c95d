// What others have met with ranks that end, come late or disagree, on ranks that are processes.
#include "comm/fault.hpp"
#include "death/leftovers.hpp"
#include "death/peer_lost.hpp"

#include <zerocomm/mem.h>

#include <random>

namespace zerocomm::test {
namespace {

constexpr std::int64_t kTwoSecondsNs = 2 * kSecondNs;
constexpr std::int64_t kRoomNs = kSlack * kSecondNs;

zc_comm* create(const zc_unique_id& id, std::int32_t ranks, std::int32_t rank, std::int64_t deadline_ns = 0) {
  const zc_comm_config config = process_config(id, ranks, rank, {.deadline_ns = deadline_ns});
  zc_comm* comm = nullptr;
  RANK_OK(zc_comm_create(&config, &comm));
  return comm;
}

zc_status sum_floats(zc_comm* comm, std::size_t count) {
  std::vector<float> data(count, 1.0F);
  std::int32_t ranks = 0;
  RANK_OK(zc_comm_size(comm, &ranks));
  const zc_status status = zc_all_reduce(comm, data.data(), data.data(), count, ZC_DTYPE_F32, ZC_OP_SUM, nullptr);
  for (std::size_t i = 0; status == ZC_OK && i < count; ++i)
    RANK_CHECK(data[i] == static_cast<float>(ranks), "element %zu is %g", i, static_cast<double>(data[i]));
  return status;
}

// A group is made, the whole synchronises, a rank ends, and then the group is used for the first time.
TEST(Cases, rank_that_ends_is_known_in_a_communicator_that_was_never_used) {
  const zc_unique_id id = make_id();
  const SharedArray<Told> told(2);
  Children ranks(2, [&](std::int32_t rank) {
    zc_comm* const first = create(id, 2, rank, kTwoSecondsNs);
    zc_comm* const second = create(id, 2, rank, kTwoSecondsNs);
    RANK_OK(zc_barrier(first, nullptr));
    if (rank == 0) _exit(0);
    const std::int64_t begin_ns = steady_ns();
    told[1].tell(sum_floats(second, 100));
    RANK_CHECK(steady_ns() - begin_ns < kRoomNs, "after %lld ns", static_cast<long long>(steady_ns() - begin_ns));
    check_stays(second, told[1]);
    RANK_STATUS(ZC_PEER_LOST, zc_barrier(first, nullptr));
    RANK_OK(zc_comm_destroy(second));
    RANK_OK(zc_comm_destroy(first));
  });
  expect_ok(ranks.wait());
  EXPECT_EQ(expect_lost(told, ranks, {0}), "none");
}

// Nothing of the dead rank is needed for going on without it.
TEST(Cases, survivors_abort_at_once_and_make_a_communicator_of_their_own) {
  constexpr std::int32_t kRanks = 4, kVictim = 1;
  const zc_unique_id id = make_id(), next_id = make_id();
  const Shared<std::atomic<std::int32_t>> ready;
  const SharedArray<Told> told(kRanks);
  Children ranks(kRanks, [&](std::int32_t rank) {
    const int descriptors = static_cast<int>(names_in("/proc/self/fd").size());
    zc_comm* const comm = create(id, kRanks, rank);
    ++*ready;
    zc_status status = ZC_OK;
    while (status == ZC_OK) status = sum_floats(comm, 1'000'000);
    told[rank].tell(status);
    const std::int64_t begin_ns = steady_ns();
    RANK_OK(zc_comm_abort(comm));
    RANK_CHECK(steady_ns() - begin_ns < kSlack * 100 * kMillisecondNs, "abort took long");
    check_stays(comm, told[rank]);
    RANK_OK(zc_comm_destroy(comm));
    RANK_CHECK(mapped_memory().empty() && open_memory().empty(), "the memory of the dead communicator is still here");
    zc_comm* const next = create(next_id, kRanks - 1, rank > kVictim ? rank - 1 : rank);
    RANK_OK(sum_floats(next, 10'000));
    RANK_OK(zc_comm_destroy(next));
    const int after = static_cast<int>(names_in("/proc/self/fd").size());
    RANK_CHECK(after == descriptors, "%d descriptors, not %d", after, descriptors);
  });
  EXPECT_TRUE(wait_until([&] { return ready->load() == kRanks; }));
  sleep_ns(15 * kMillisecondNs);
  ranks.send_signal(kVictim, SIGKILL);
  std::vector<ChildEnd> ends = ranks.wait();
  EXPECT_TRUE(ends[kVictim].killed_by(SIGKILL)) << ends[kVictim].text;
  ends.erase(ends.begin() + kVictim);
  expect_ok(ends);
  expect_lost(told, ranks, {kVictim});
}

TEST(Cases, rank_that_sleeps_past_the_deadline_is_named_with_what_it_did_last) {
  constexpr std::int32_t kRanks = 8;
  const SharedArray<Told> told(kRanks);
  const Shared<std::atomic<std::int32_t>> returned;
  ChildRanks ranks(kRanks,
                   [&](zc_comm* comm, std::int32_t rank) {
                     RANK_OK(sum_floats(comm, 3));
                     if (rank == 7)
                       RANK_CHECK(wait_until([&] { return returned->load() == 7; }, kSlack * 30 * kSecondNs), "never");
                     const std::int64_t begin_ns = steady_ns();
                     told[rank].tell(sum_floats(comm, 2));
                     RANK_CHECK(steady_ns() - begin_ns < kTwoSecondsNs + kRoomNs, "it took longer than the deadline");
                     ++*returned;
                     check_stays(comm, told[rank]);
                   },
                   {.deadline_ns = kTwoSecondsNs});
  expect_ok(ranks.wait());
  const std::string text = told[0].text;
  for (const Told& each : told) {
    EXPECT_EQ(each.status, ZC_TIMEOUT) << each.text;
    EXPECT_EQ(each.text, text);
  }
  EXPECT_NE(
      text.find(": rank 7 did not come to call 1, zc_all_reduce(count 2, f32, sum, in place); last call of rank 7"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find(format("rank 7 (pid %d): zc_all_reduce(count 3, f32, sum)", ranks.pid(7))), std::string::npos)
      << text;
}

TEST(Cases, ranks_that_disagree_are_told_and_can_go_on_and_end) {
  constexpr std::int32_t kRanks = 8;
  constexpr std::size_t kCount = 100'000;
  const std::int64_t begin_ns = steady_ns();
  ChildRanks ranks(
      kRanks,
      [&](zc_comm* comm, std::int32_t rank) {
        std::vector<float> send(2 * kCount, 1.0F), recv(2 * kCount, -7.0F);
        RANK_STATUS(ZC_MISMATCH, zc_all_reduce(comm, send.data(), recv.data(), rank == 0 ? 2 * kCount : kCount,
                                               ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
        RANK_ERROR_SAYS(
            "rank 0 calls zc_all_reduce(count 200000, f32, sum), but rank 1 calls zc_all_reduce(count 100000");
        for (const float each : recv) RANK_CHECK(each == -7.0F, "a byte was moved");
        RANK_OK(sum_floats(comm, kCount));
      },
      {.deadline_ns = kTwoSecondsNs});
  expect_ok(ranks.wait());
  EXPECT_LT(steady_ns() - begin_ns, kTwoSecondsNs + kRoomNs);
}

TEST(Cases, two_communicators_used_in_opposite_order_by_two_threads_both_complete) {
  const zc_unique_id id = make_id();
  Children ranks(2, [&](std::int32_t rank) {
    zc_comm* const first = create(id, 2, rank);
    zc_comm* const second = create(id, 2, rank);
    for (int turn = 0; turn < 200; ++turn) {
      // Rank 0 begins with the first and rank 1 with the second; the other thread follows.
      zc_comm* const now = rank == 0 ? first : second;
      zc_comm* const later = rank == 0 ? second : first;
      std::atomic<bool> begun{false};
      std::string failure;
      std::thread other([&] {
        try {
          while (!begun.load()) std::this_thread::yield();
          RANK_OK(sum_floats(later, 20'000));
        } catch (const RankFailure& caught) {
          failure = caught.what();
        }
      });
      begun = true;
      const zc_status status = sum_floats(now, 20'000);
      other.join();
      RANK_OK(status);
      RANK_CHECK(failure.empty(), "%s", failure.c_str());
    }
    RANK_OK(zc_comm_destroy(first));
    RANK_OK(zc_comm_destroy(second));
  });
  expect_ok(ranks.wait());
}

// What ranks were told that tried to make a communicator.
struct Creation {
  Told told;
  std::int64_t took_ns = 0;
};

// Rank `victim` does `in_victim`; the others must not wait for longer than their deadline.
void create_without(std::int32_t victim, std::int64_t deadline_ns, const std::function<void()>& in_victim,
                    const SharedArray<Creation>& creations, const std::function<void(const Children&)>& meanwhile) {
  const auto ranks = static_cast<std::int32_t>(creations.count());
  const zc_unique_id id = make_id();
  Children children(ranks, [&](std::int32_t rank) {
    if (rank == victim) in_victim();
    zc_comm_config config = process_config(id, ranks, rank);
    config.init_deadline_ns = deadline_ns;
    const std::int64_t begin_ns = steady_ns();
    zc_comm* comm = nullptr;
    zc_status status = zc_comm_create(&config, &comm);
    creations[rank].took_ns = steady_ns() - begin_ns;
    if (status == ZC_OK) status = zc_barrier(comm, nullptr);
    creations[rank].told.tell(status);
    RANK_OK(zc_comm_destroy(comm));
  });
  meanwhile(children);
  const std::vector<ChildEnd> ends = children.wait(kSlack * 20 * kSecondNs);
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    if (rank != victim) {
      EXPECT_TRUE(ends[static_cast<std::size_t>(rank)].ok()) << ends[static_cast<std::size_t>(rank)].text;
    }
}

void expect_that_four_can_begin_anew() {
  RankProcesses(4).run([](zc_comm* comm, std::int32_t) { RANK_OK(sum_floats(comm, 10)); });
}

TEST(Cases, rank_that_ends_before_it_joins_is_named_when_the_time_is_up) {
  for (const std::int32_t victim : {2, 0}) {
    const SharedArray<Creation> creations(4);
    create_without(
        victim, kSecondNs, [] { _exit(0); }, creations, [](const Children&) {});
    for (std::int32_t rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      EXPECT_EQ(creations[rank].told.status, ZC_TIMEOUT) << creations[rank].told.text;
      EXPECT_NE(std::string(creations[rank].told.text).find(format("rank %d", victim)), std::string::npos)
          << creations[rank].told.text;
      EXPECT_LT(creations[rank].took_ns, kSecondNs + 2 * kRoomNs);
    }
    expect_that_four_can_begin_anew();
  }
}

// At any moment of the joining, or just after it.
TEST(Cases, rank_that_is_killed_while_it_joins_is_named) {
  constexpr int kKills = kSanitized ? 4 : 40;
  constexpr std::int64_t kJoinNs = kSlack * kTwoSecondsNs;
  std::mt19937 random(3);
  int told_in_creation = 0, told_later = 0, timed_out = 0;
  for (int kill = 0; kill < kKills && !HasFailure(); ++kill) {
    const std::int32_t victim = kill % 4;
    const SharedArray<Creation> creations(4);
    const auto after_ns = static_cast<std::int64_t>(random() % 3'000) * 1'000;
    const Shared<std::atomic<bool>> joining;
    pid_t pid = 0;
    create_without(
        victim, kJoinNs, [&] { *joining = true; }, creations,
        [&](const Children& children) {
          wait_until([&] { return joining->load(); });
          sleep_ns(after_ns);
          children.send_signal(victim, SIGKILL);
          pid = children.pid(victim);
        });
    for (std::int32_t rank = 0; rank < 4; ++rank) {
      const Told& told = creations[rank].told;
      // A kill after the end of everything, or before the join of the victim.
      if (rank == victim || told.status == ZC_OK) continue;
      EXPECT_TRUE(told.status == ZC_PEER_LOST || told.status == ZC_TIMEOUT) << told.text;
      EXPECT_NE(std::string(told.text).find(format("rank %d", victim)), std::string::npos) << told.text;
      EXPECT_LT(creations[rank].took_ns, kJoinNs + 2 * kRoomNs);
      const bool later = std::string(told.text).find(lost_text(victim, pid)) != std::string::npos;
      ++(told.status == ZC_TIMEOUT ? timed_out : later ? told_later : told_in_creation);
    }
  }
  expect_that_four_can_begin_anew();
  std::printf("%d kills: %d ranks were told in the joining, %d after it, %d when the time was up\n", kKills,
              told_in_creation, told_later, timed_out);
}

// A rank that is killed while it writes the first error down, or just after: the others get an error all the same.
TEST(Cases, rank_that_is_killed_while_it_records_an_error_holds_nobody_up) {
  for (const char* const step : {"error written", "error recorded"}) {
    static const char* kill_at = nullptr;
    const SharedArray<Told> told(3);
    const Shared<std::atomic<std::int32_t>> waiting;
    ChildRanks ranks(3, [&](zc_comm* comm, std::int32_t rank) {
      if (rank == 1) {
        RANK_CHECK(wait_until([&] { return waiting->load() == 2; }), "nobody waits");
        sleep_ns(20 * kMillisecondNs);
        kill_at = step;
        comm::fault_hook.store([](const char* name) {
          if (std::strcmp(name, kill_at) == 0) kill(getpid(), SIGKILL);
        });
        zc_wait_options options{};
        options.struct_size = sizeof options;
        options.deadline_ns = kMillisecondNs;
        options.label = "a short wait";
        RANK_OK(zc_comm_wait(
            comm, [](void*) { return 0; }, nullptr, &options));
      }
      ++*waiting;
      told[rank].tell(zc_barrier(comm, nullptr));
      check_stays(comm, told[rank]);
    });
    const std::vector<ChildEnd> ends = ranks.wait(kSlack * 20 * kSecondNs);
    EXPECT_TRUE(ends[1].killed_by(SIGKILL)) << ends[1].text;
    EXPECT_TRUE(ends[0].ok() && ends[2].ok()) << ends[0].text << ends[2].text;
    EXPECT_STREQ(told[0].text, told[2].text);
    if (std::string(step) == "error written") {
      expect_lost(told, ranks, {1});
      continue;
    }
    EXPECT_EQ(told[0].status, ZC_TIMEOUT) << told[0].text;
    EXPECT_NE(std::string(told[0].text).find("rank 1 waited 0.001 s in a short wait"), std::string::npos)
        << told[0].text;
  }
}

// Ranks of one process in a communicator of processes: they end together.
TEST(Cases, process_of_several_ranks_that_is_killed_loses_all_of_them) {
  const zc_unique_id id = make_id();
  const SharedArray<Told> told(4);
  const Shared<std::atomic<std::int32_t>> ready;
  Children processes(2, [&](std::int32_t process) {
    std::vector<std::thread> threads;
    for (std::int32_t rank = 2 * process; rank < 2 * process + 2; ++rank)
      threads.emplace_back([&, rank] {
        try {
          zc_comm* const comm = create(id, 4, rank);
          ++*ready;
          if (process == 1)
            for (;;) ::pause();
          told[rank].tell(zc_barrier(comm, nullptr));
          zc_comm_destroy(comm);
        } catch (const RankFailure& failure) {
          std::snprintf(told[rank].text, sizeof told[rank].text, "%s", failure.what());
        }
      });
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_TRUE(wait_until([&] { return ready->load() == 4; })) << told[0].text << told[3].text;
  processes.send_signal(1, SIGKILL);
  EXPECT_TRUE(processes.wait()[0].ok());
  EXPECT_EQ(told[0].status, ZC_PEER_LOST);
  EXPECT_STREQ(told[0].text, told[1].text);
  const std::string text = told[0].text;
  EXPECT_TRUE(text.find(lost_text(2, processes.pid(1))) == 0 || text.find(lost_text(3, processes.pid(1))) == 0) << text;
}

}  // namespace
}  // namespace zerocomm::test
