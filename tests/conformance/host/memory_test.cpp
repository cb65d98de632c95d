// A memory control group that is too small: an error with the numbers on every rank, and never a signal.
#include "host/box.hpp"

#include <sys/mman.h>

namespace zerocomm::test {
namespace {

constexpr std::size_t kMebibyte = 1 << 20;
// Sanitizers take memory of their own.
constexpr std::size_t kLimitBytes = (kSanitized ? 3072 : 96) * kMebibyte;
constexpr std::size_t kWindowBytes = (kSanitized ? 4096 : 200) * kMebibyte;

class MemoryGroup : public ControlGroup {
 public:
  explicit MemoryGroup(std::size_t bytes) : ControlGroup("memory") {
    set("memory.limit_in_bytes", std::to_string(bytes), "memory.max", std::to_string(bytes));
  }
  // Processes that the kernel has ended for want of memory.
  std::string ended() const {
    const std::string text = read("memory.oom_control", "memory.events");
    const std::size_t at = text.find("oom_kill ");
    return at == std::string::npos ? "?" : text.substr(at + 9, text.find('\n', at) - at - 9);
  }
  std::size_t used_bytes() const { return std::stoull(read("memory.usage_in_bytes", "memory.current")); }
};

// Takes memory of the group and keeps it until it is killed.
class Filler {
 public:
  Filler(const MemoryGroup& group, std::size_t left_bytes) {
    child_.start([&] {
      group.enter();
      constexpr std::size_t kStep = 64 << 10;
      while (group.used_bytes() + left_bytes + kStep <= kLimitBytes) {
        void* const memory =
            mmap(nullptr, kStep, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        RANK_CHECK(memory != MAP_FAILED, "no memory");
      }
      *full_ = true;
      for (;;) ::pause();
    });
    EXPECT_TRUE(wait_until([&] { return full_->load(); }));
  }
  bool lives() const { return kill(child_.pid(0), 0) == 0; }

 private:
  Shared<std::atomic<bool>> full_;
  Children child_;
};

zc_status make_window(zc_comm* comm, std::size_t bytes, zc_window** window) {
  zc_window_config config{};
  config.struct_size = sizeof config;
  config.bytes = bytes;
  return zc_window_create(comm, &config, window);
}

TEST(MemoryLimits, of_a_window_are_told_to_all_ranks_which_go_on) {
  MemoryGroup group(kLimitBytes);
  if (!group.why_not().empty()) GTEST_SKIP() << group.why_not();
  for (const std::int32_t ranks : {1, 2, 4}) {
    ChildRanks children(
        ranks,
        [&](zc_comm* comm, std::int32_t rank) {
          zc_window* window = nullptr;
          for (int turn = 0; turn < 3; ++turn) {
            RANK_STATUS(ZC_NO_MEMORY, make_window(comm, kWindowBytes, &window));
            RANK_ERROR_SAYS(format("could not get %zu bytes for zc_window_create", kWindowBytes + 8));
            void* memory = nullptr;
            RANK_STATUS(ZC_NO_MEMORY, zc_mem_alloc(comm, kWindowBytes, &memory));
            RANK_ERROR_SAYS(format("zc_mem_alloc: %zu bytes of shared memory wanted", kWindowBytes + 4096));
            RANK_ERROR_SAYS("memory cgroup /sys/fs/cgroup/");
            RANK_ERROR_SAYS(format("limit %zu bytes", kLimitBytes));
            // One rank that wants too much is enough.
            RANK_STATUS(ZC_NO_MEMORY, make_window(comm, rank == ranks - 1 ? kWindowBytes : 100, &window));
            RANK_ERROR_SAYS(format("rank %d could not get %zu bytes", ranks - 1, kWindowBytes + 8));
            use_everything(comm, rank);
            RANK_OK(make_window(comm, kMebibyte, &window));
            RANK_OK(zc_barrier(comm, nullptr));
            RANK_OK(zc_window_destroy(window));
          }
        },
        {}, [&](std::int32_t) { group.enter(); });
    expect_ok(children.wait(kSlack * 60 * kSecondNs));
    EXPECT_EQ(group.ended(), "0");
  }
}

// Each rank alone would fit, all together do not: the sum counts, or somebody is killed.
TEST(MemoryLimits, count_what_all_ranks_take_at_the_same_time) {
  MemoryGroup group(kLimitBytes);
  if (!group.why_not().empty()) GTEST_SKIP() << group.why_not();
  ChildRanks children(
      4,
      [&](zc_comm* comm, std::int32_t rank) {
        zc_window* window = nullptr;
        for (int turn = 0; turn < (kSanitized ? 2 : 10); ++turn) {
          RANK_STATUS(ZC_NO_MEMORY, make_window(comm, kLimitBytes / 3, &window));
          use_everything(comm, rank);
        }
      },
      {}, [&](std::int32_t) { group.enter(); });
  expect_ok(children.wait(kSlack * 60 * kSecondNs));
  EXPECT_EQ(group.ended(), "0");
}

// With everything from nothing to enough left for a communicator.
TEST(MemoryLimits, that_are_nearly_reached_give_a_communicator_or_an_error) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take memory of their own at any time";
  constexpr std::int32_t kRanks = 4;
  int made = 0, refused = 0;
  for (std::size_t left_bytes = kMebibyte / 2; left_bytes <= 16 * kMebibyte && !HasFailure();
       left_bytes += left_bytes < 4 * kMebibyte ? kMebibyte / 2 : 2 * kMebibyte) {
    MemoryGroup group(kLimitBytes);
    if (!group.why_not().empty()) GTEST_SKIP() << group.why_not();
    const SharedArray<std::atomic<std::int32_t>> statuses(kRanks);
    const Shared<std::atomic<bool>> begin;
    const Shared<std::atomic<std::int32_t>> inside;
    const zc_unique_id id = make_id();
    Children ranks(kRanks, [&](std::int32_t rank) {
      group.enter();
      ++*inside;
      RANK_CHECK(wait_until([&] { return begin->load(); }), "never told");
      const zc_comm_config config = process_config(id, kRanks, rank);
      zc_comm* comm = nullptr;
      const zc_status status = zc_comm_create(&config, &comm);
      statuses[rank] = status;
      if (status == ZC_OK) {
        RANK_OK(zc_barrier(comm, nullptr));
        RANK_OK(zc_comm_destroy(comm));
        return;
      }
      RANK_CHECK(status == ZC_NO_MEMORY, "%s: %s", zc_status_name(status), zc_last_error());
      RANK_ERROR_SAYS("memory cgroup");
    });
    EXPECT_TRUE(wait_until([&] { return inside->load() == kRanks; }));
    const Filler filler(group, left_bytes);
    *begin = true;
    expect_ok(ranks.wait(kSlack * 20 * kSecondNs));
    EXPECT_TRUE(filler.lives());
    EXPECT_EQ(group.ended(), "0") << left_bytes << " bytes left";
    for (const auto& status : statuses) EXPECT_EQ(status.load(), statuses[0].load());
    ++(statuses[0].load() == ZC_OK ? made : refused);
  }
  std::printf("%d communicators made, %d refused\n", made, refused);
  EXPECT_TRUE(made > 0 && refused > 0);
}

}  // namespace
}  // namespace zerocomm::test
