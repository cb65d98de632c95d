// Children that a rank makes by fork, and a rank that becomes another program.
#include "death/leftovers.hpp"
#include "death/peer_lost.hpp"
#include "support/engine_world.hpp"

#include <zerocomm/mem.h>

#include <cstdlib>

namespace zerocomm::test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadsAfterFork = false;  // ThreadSanitizer refuses them
#else
constexpr bool kThreadsAfterFork = true;
#endif

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kLooksForLeaks = true;  // at the end of a child, among the stacks of threads that it does not have
#else
constexpr bool kLooksForLeaks = false;
#endif

constexpr std::int32_t kRanks = 3;

enum class End : std::uint8_t { exits, returns_at_once, is_killed };

// Runs `body` in a child of this rank, which ends in one of three ways. Throws if the body said no.
template <class Body>
void in_forked_child(End end, Body&& body) {
  const pid_t child = fork();
  RANK_CHECK(child >= 0, "no fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(20 * static_cast<unsigned>(kSlack));  // a child that hangs is killed by this
    const bool good = body();
    if (!good) _exit(7);
    if (end == End::exits && !kLooksForLeaks) std::exit(0);  // runs what the program and the library left for its end
    if (end == End::is_killed) kill(getpid(), SIGKILL);
    _exit(0);
  }
  int status = 0;
  RANK_CHECK(waitpid(child, &status, 0) == child, "the child is gone");
  const bool as_said = end == End::is_killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                                             : WIFEXITED(status) && WEXITSTATUS(status) == 0;
  RANK_CHECK(as_said, "the child ended with status %x", static_cast<unsigned>(status));
}

// Says on stderr which function gave something else.
class Expecting {
 public:
  explicit Expecting(zc_status wanted) : wanted_(wanted) {}
  void operator()(const char* what, zc_status found) {
    if (found == wanted_) return;
    good_ = false;
    std::fprintf(stderr, "in the child, %s gave %s\n", what, zc_status_name(found));
  }
  bool good() const { return good_; }

 private:
  zc_status wanted_;
  bool good_ = true;
};

bool refused_everything(zc_comm* comm, zc_window* window, void* memory, RankEngine& engine) {
  Expecting forked(ZC_FORKED);
  float data[kRanks * 2] = {};
  const std::size_t counts[kRanks] = {1, 0, 1};
  std::uint64_t word = 0;
  std::size_t number = 0;
  void* pointer = nullptr;
  const void* tensors[8] = {};
  zc_window* made = nullptr;
  zc_zero* other = nullptr;
  zc_norm norm{};
  norm.struct_size = sizeof norm;
  zc_flight_record record{};
  record.struct_size = sizeof record;
  zc_zero* const zero = engine.zero();
  forked("all_reduce", zc_all_reduce(comm, data, data, 2, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
  forked("reduce_scatter", zc_reduce_scatter(comm, data, &data[5], 1, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
  forked("reduce_scatter_v", zc_reduce_scatter_v(comm, data, &data[5], counts, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
  forked("all_gather", zc_all_gather(comm, &data[5], data, 1, ZC_DTYPE_F32, nullptr));
  forked("all_gather_v", zc_all_gather_v(comm, &data[5], data, counts, ZC_DTYPE_F32, nullptr));
  forked("broadcast", zc_broadcast(comm, data, 2, ZC_DTYPE_F32, 0, nullptr));
  forked("barrier", zc_barrier(comm, nullptr));
  forked("status", zc_comm_status(comm));
  forked("abort", zc_comm_abort(comm));
  forked("note", zc_comm_note(comm, "child", 1));
  forked("flight", zc_comm_flight(comm, 0, 0, &record));
  forked("wait", zc_comm_wait(
                     comm, [](void*) { return 1; }, nullptr, nullptr));
  forked("mem_alloc", zc_mem_alloc(comm, 8, &pointer));
  forked("mem_free", zc_mem_free(comm, memory));
  forked("window_create", zc_window_create(comm, nullptr, &made));
  forked("signal", zc_window_signal(window, 5));
  forked("window_wait", zc_window_wait(window, 1, 0, nullptr));
  forked("read", zc_window_read(window, 1, 0, data, 1, 0, nullptr));
  forked("load", zc_window_load(window, 0, 0, &word));
  forked("store", zc_window_store(window, 0, 0, 7));
  forked("add", zc_window_add(window, 0, 0, 7, nullptr));
  forked("compare_swap", zc_window_compare_swap(window, 0, 0, 0, 7, nullptr));
  forked("zero_create", zc_zero_create(comm, engine.layout(), nullptr, &other));
  forked("load", zc_zero_load(zero, 0, tensors, ZC_DTYPE_F32, ZC_NONE));
  forked("begin", zc_zero_begin(zero, "train", ZC_PHASE_ONLY));
  forked("acquire", zc_zero_acquire(zero, 0, tensors, 8, nullptr));
  forked("release", zc_zero_release(zero, 0, nullptr));
  forked("prefetch", zc_zero_prefetch(zero, 0));
  forked("grad_ready", zc_zero_grad_ready(zero, 0, data, nullptr));
  forked("grad_absent", zc_zero_grad_absent(zero, 0));
  forked("grad_buffer", zc_zero_grad_buffer(zero, 0, &pointer));
  forked("end", zc_zero_end(zero));
  forked("norm", zc_zero_norm(zero, &norm));
  forked("scale", zc_zero_scale(zero, 2));
  forked("update_begin", zc_zero_update_begin(zero));
  forked("cast", zc_zero_cast(zero));
  forked("publish", zc_zero_publish(zero, nullptr));
  forked("publish_unchanged", zc_zero_publish_unchanged(zero));
  forked("state", zc_zero_state(zero, ZC_STATE_PARAMETER, 0, &pointer, &number));
  forked("export", zc_zero_export(zero, 0, ZC_STATE_PARAMETER, data));
  forked("blockers", zc_zero_blockers(zero, 0, 0, &number, 1, &number));
  forked("zero_destroy", zc_zero_destroy(zero));
  forked("window_destroy", zc_window_destroy(window));
  forked("destroy", zc_comm_destroy(comm));
  return forked.good();
}

WorldSetup small_setup() {
  WorldSetup setup;
  setup.model =
      hand_model({{"a", "first", "", 900, ZC_DTYPE_BF16, false}, {"b", "second", "", 101, ZC_DTYPE_F32, false}});
  setup.ranks = kRanks;
  setup.layout.stage = ZC_STAGE_3;
  return setup;
}

// However the child ends, the ranks go on and come to the same as without it.
TEST(ForkInARank, child_is_refused_everything_and_nobody_notices_it) {
  slice_of_table(0, ZC_DTYPE_F32, 1);  // made once for all children
  const WorldSetup setup = small_setup();
  const WorldResult wanted = train_world(setup, 6);
  const SharedArray<WorldResult> found(kRanks);
  RankProcesses(kRanks, {.deadline_ns = kSlack * 10 * kSecondNs}).run([&](zc_comm* comm, std::int32_t rank) {
    zc_window* window = nullptr;
    void* memory = nullptr;
    RANK_OK(zc_window_create(comm, nullptr, &window));
    RANK_OK(zc_mem_alloc(comm, 100, &memory));
    {
      RankEngine engine(comm, setup);
      engine.load();
      for (std::size_t step = 0; step < 6; ++step) {
        if (rank == 1)
          in_forked_child(static_cast<End>(step % 3), [&] { return refused_everything(comm, window, memory, engine); });
        engine.step(step);
      }
      found[rank] = {engine.digest(), engine.seen(), engine.last_norm().norm};
      std::uint64_t word = 9;
      RANK_OK(zc_window_load(window, 1, 0, &word));
      RANK_CHECK(word == 0, "the child wrote into the window");
    }
    RANK_OK(zc_window_destroy(window));
  });
  for (const WorldResult& each : found) EXPECT_EQ(each, wanted);
}

TEST(ForkInARank, child_may_make_communicators_of_its_own) {
  if (!kThreadsAfterFork) GTEST_SKIP() << "the sanitizer allows no threads after this kind of fork";
  const zc_unique_id id = make_id();
  RankProcesses(kRanks).run([&](zc_comm* comm, std::int32_t rank) {
    in_forked_child(End::returns_at_once, [&] {
      const zc_comm_config config = process_config(id, kRanks, rank);
      zc_comm* own = nullptr;
      std::int64_t sum = rank + 1;
      return zc_comm_create(&config, &own) == ZC_OK &&
             zc_all_reduce(own, &sum, &sum, 1, ZC_DTYPE_I64, ZC_OP_SUM, nullptr) == ZC_OK &&
             sum == kRanks * (kRanks + 1) / 2 && zc_comm_destroy(own) == ZC_OK && zc_comm_status(comm) == ZC_FORKED;
    });
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

// The kernel tells of the end of the rank, though its memory lives on in the child.
TEST(ForkInARank, child_that_lives_on_does_not_hide_the_end_of_its_rank) {
  const Shared<std::atomic<pid_t>> child;
  const SharedArray<Told> told(kRanks);
  ChildRanks ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
    if (rank == 1) {
      const pid_t made = fork();
      if (made == 0)
        for (;;) ::pause();
      *child = made;
      for (;;) ::pause();
    }
    told[rank].tell(zc_barrier(comm, nullptr));
    check_stays(comm, told[rank]);
  });
  EXPECT_TRUE(wait_until([&] { return child->load() != 0; }));
  const std::int64_t killed_ns = steady_ns();
  ranks.send_signal(1, SIGKILL);
  const std::vector<ChildEnd> ends = ranks.wait(kSlack * 20 * kSecondNs);
  EXPECT_TRUE(ends[0].ok() && ends[2].ok()) << ends[0].text << ends[2].text;
  EXPECT_EQ(kill(*child, SIGKILL), 0) << "the child was there all the time";
  expect_lost(told, ranks, {1});
  EXPECT_LT(told[0].when_ns - killed_ns, kSlack * kSecondNs);
}

// Workers that compute for a rank and end, over and over, while the ranks work.
TEST(ForkInARank, pool_of_workers_comes_and_goes_and_leaves_nothing) {
  std::set<std::uint64_t> memory;
  {
    const SharedArray<std::uint64_t> inodes(kRanks);
    RankProcesses(kRanks).run([&](zc_comm* comm, std::int32_t rank) {
      for (const std::uint64_t inode : mapped_memory()) inodes[rank] = inode;
      const SharedArray<std::int64_t> results(4);
      for (int turn = 0; turn < 5; ++turn) {
        std::vector<pid_t> workers;
        for (std::int64_t worker = 0; worker < 4; ++worker) {
          const pid_t made = fork();
          if (made == 0) {
            results[worker] = (worker + 1) * (turn + 1);
            _exit(0);
          }
          workers.push_back(made);
        }
        RANK_OK(zc_barrier(comm, nullptr));
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < 4; ++i) {
          RANK_CHECK(waitpid(workers[i], nullptr, 0) == workers[i], "a worker is gone");
          sum += results[i];
        }
        RANK_OK(zc_all_reduce(comm, &sum, &sum, 1, ZC_DTYPE_I64, ZC_OP_SUM, nullptr));
        RANK_CHECK(sum == 10 * (turn + 1) * kRanks, "%lld", static_cast<long long>(sum));
      }
    });
    memory.insert(inodes.begin(), inodes.end());
  }
  EXPECT_EQ(memory.size(), 1u);
  EXPECT_EQ(users_of(memory), "");
}

// While another thread of the rank holds whatever locks the library has.
TEST(ForkInARank, child_is_refused_also_when_other_threads_were_inside_the_library) {
  constexpr int kForks = kSanitized ? 10 : 60;
  RankProcesses(2).run([&](zc_comm* comm, std::int32_t rank) {
    std::atomic<bool> over{false};
    std::string failure;
    std::thread busy([&] {
      try {
        for (std::int64_t more = 1; more != 0;) {
          zc_window* window = nullptr;
          void* memory = nullptr;
          RANK_OK(zc_mem_alloc(comm, 100'000, &memory));
          RANK_OK(zc_window_create(comm, nullptr, &window));
          RANK_OK(zc_window_destroy(window));
          RANK_OK(zc_mem_free(comm, memory));
          more = over.load() ? 0 : 1;
          RANK_OK(zc_all_reduce(comm, &more, &more, 1, ZC_DTYPE_I64, ZC_OP_MAX, nullptr));
        }
      } catch (const RankFailure& caught) {
        failure = caught.what();
      }
    });
    for (int turn = 0; turn < kForks && rank == 0; ++turn) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(20 * static_cast<unsigned>(kSlack));  // a child that hangs is killed by this
        void* memory = nullptr;
        float value = 1;
        Expecting forked(ZC_FORKED);
        forked("mem_alloc", zc_mem_alloc(comm, 8, &memory));
        forked("all_reduce", zc_all_reduce(comm, &value, &value, 1, ZC_DTYPE_F32, ZC_OP_SUM, nullptr));
        forked("abort", zc_comm_abort(comm));
        forked("destroy", zc_comm_destroy(comm));
        _exit(forked.good() ? 0 : 7);
      }
      int status = 0;
      RANK_CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with status %x",
                 static_cast<unsigned>(status));
    }
    over = true;
    busy.join();
    RANK_CHECK(failure.empty(), "%s", failure.c_str());
  });
}

TEST(Exec, of_a_rank_is_its_end_and_hands_nothing_on) {
  const Shared<std::atomic<std::int32_t>> ready;
  const SharedArray<Told> told(kRanks);
  ChildRanks ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
    ++*ready;
    if (rank == 2) {
      RANK_CHECK(wait_until([&] { return ready->load() == kRanks; }), "they do not come");
      sleep_ns(20 * kMillisecondNs);
      execlp("sleep", "sleep", "100", nullptr);
      RANK_CHECK(false, "no program sleep");
    }
    told[rank].tell(zc_barrier(comm, nullptr));
    check_stays(comm, told[rank]);
  });
  EXPECT_TRUE(wait_until([&] { return told[0].when_ns != 0 && told[1].when_ns != 0; }));
  const std::string process = std::to_string(ranks.pid(2));
  // The others are told when the rank's memory goes; only then the kernel closes its descriptors and renames it.
  EXPECT_TRUE(wait_until([&] { return lines_with("/proc/" + process + "/comm", "sleep").size() == 1; }))
      << "it goes on as another program";
  EXPECT_TRUE(mapped_memory(process).empty());
  EXPECT_TRUE(open_memory(process).empty());
  ranks.send_signal(2, SIGKILL);
  const std::vector<ChildEnd> ends = ranks.wait(kSlack * 20 * kSecondNs);
  EXPECT_TRUE(ends[0].ok() && ends[1].ok()) << ends[0].text << ends[1].text;
  EXPECT_EQ(expect_lost(told, ranks, {2}), "none");
}

}  // namespace
}  // namespace zerocomm::test
