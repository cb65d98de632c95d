// The keeper: the end of a process is told to the one that watches it, however it ends; leaving is not an end.
#include "transport/keeper.hpp"
#include "base/clock.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace zerocomm::transport {
namespace {

// A control segment that children share.
class Shared {
 public:
  explicit Shared(std::int32_t ranks)
      : bytes_(Control::bytes(ranks, 1)),
        memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        control_(Control::build(static_cast<std::byte*>(memory_), ranks, 1)) {}
  ~Shared() { munmap(memory_, bytes_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  const Control& control() const { return control_; }

 private:
  std::size_t bytes_;
  void* memory_;
  Control control_;
};

enum class Way { killed, exits, leaves };

// A process that stands for `rank`, says so, and ends when it is told.
class Child {
 public:
  Child(const Control& control, std::int32_t rank, Way way) {
    if (pipe(said_) != 0 || pipe(told_) != 0) std::abort();
    pid_ = fork();
    if (pid_ != 0) {
      char byte = 0;
      EXPECT_EQ(read(said_[0], &byte, 1), 1);
      return;
    }
    const std::shared_ptr<Keeper> keeper = Keeper::of_process();
    const std::uint64_t id = keeper->stand_for(control, rank, [](std::int32_t) {});
    char byte = 0;
    if (write(said_[1], &byte, 1) != 1 || read(told_[0], &byte, 1) != 1) _exit(1);
    if (way == Way::killed) kill(getpid(), SIGKILL);
    if (way == Way::leaves) keeper->leave(id);
    _exit(0);
  }
  void end() {
    if (ended_) return;
    ended_ = true;
    const char byte = 0;
    EXPECT_EQ(write(told_[1], &byte, 1), 1);
    waitpid(pid_, nullptr, 0);
  }
  ~Child() {
    end();
    for (const int descriptor : {said_[0], said_[1], told_[0], told_[1]}) close(descriptor);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

 private:
  int said_[2] = {}, told_[2] = {};
  pid_t pid_ = 0;
  bool ended_ = false;
};

// What the keeper of rank 0 was told.
struct Told {
  std::atomic<std::int32_t> rank{-1};
  std::atomic<int> times{0};
  Keeper::Lost lost() {
    return [this](std::int32_t who) {
      rank.store(who);
      times.fetch_add(1);
    };
  }
  // Waits until something was told, or for that long.
  bool within(std::int64_t limit_ns) const {
    const Deadline deadline = Deadline::after(limit_ns);
    while (times.load() == 0 && deadline.left_ns() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return times.load() != 0;
  }
};

constexpr std::int64_t kLongNs = 5'000'000'000;

class KeeperOf : public ::testing::TestWithParam<Way> {};

TEST_P(KeeperOf, a_rank_is_told_of_the_end_of_the_next_unless_it_has_left) {
  const Shared shared(2);
  Child child(shared.control(), 1, GetParam());
  Told told;
  const std::shared_ptr<Keeper> keeper = Keeper::of_process();
  const std::uint64_t id = keeper->stand_for(shared.control(), 0, told.lost());
  EXPECT_FALSE(told.within(20'000'000));
  child.end();
  if (GetParam() == Way::leaves) {
    EXPECT_FALSE(told.within(500'000'000));
  } else {
    EXPECT_TRUE(told.within(kLongNs));
    EXPECT_EQ(told.rank.load(), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_EQ(told.times.load(), 1);  // once
  }
  keeper->leave(id);
}

INSTANTIATE_TEST_SUITE_P(Ways, KeeperOf, testing::Values(Way::killed, Way::exits, Way::leaves));

TEST(KeeperRing, watches_the_rank_behind_one_that_has_left) {
  const Shared shared(3);
  Child second(shared.control(), 1, Way::leaves), third(shared.control(), 2, Way::killed);
  Told told;
  const std::shared_ptr<Keeper> keeper = Keeper::of_process();
  const std::uint64_t id = keeper->stand_for(shared.control(), 0, told.lost());
  second.end();
  EXPECT_FALSE(told.within(50'000'000));
  third.end();
  EXPECT_TRUE(told.within(kLongNs));
  EXPECT_EQ(told.rank.load(), 2);
  keeper->leave(id);
}

TEST(KeeperRing, finds_a_rank_that_died_before_it_looked) {
  const Shared shared(2);
  { Child child(shared.control(), 1, Way::killed); }
  Told told;
  const std::shared_ptr<Keeper> keeper = Keeper::of_process();
  const std::uint64_t id = keeper->stand_for(shared.control(), 0, told.lost());
  EXPECT_TRUE(told.within(kLongNs));
  keeper->leave(id);
}

TEST(KeeperThread, is_one_per_process_and_ends_with_its_last_user) {
  const auto threads = [] {
    int count = 0;
    char name[64];
    std::snprintf(name, sizeof name, "/proc/%d/status", getpid());
    std::FILE* file = std::fopen(name, "re");
    char line[256];
    while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr)
      if (std::sscanf(line, "Threads: %d", &count) == 1) break;
    if (file != nullptr) std::fclose(file);
    return count;
  };
  std::thread([] {}).join();  // a sanitizer starts a thread of its own with the first one
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const int before = threads();
  {
    const Shared one(1), two(1);
    const std::shared_ptr<Keeper> keeper = Keeper::of_process(), same = Keeper::of_process();
    EXPECT_EQ(keeper, same);
    const std::uint64_t a = keeper->stand_for(one.control(), 0, [](std::int32_t) {});
    const std::uint64_t b = keeper->stand_for(two.control(), 0, [](std::int32_t) {});
    EXPECT_EQ(threads(), before + 1);
    keeper->leave(a);
    EXPECT_EQ(one.control().rank(0).liveness.left.load(), 1u);
    EXPECT_EQ(two.control().rank(0).liveness.left.load(), 0u);
    keeper->leave(b);
  }
  // A thread that was joined may be counted for a moment yet.
  for (int i = 0; i < 5000 && threads() != before; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(threads(), before);
}

}  // namespace
}  // namespace zerocomm::transport
