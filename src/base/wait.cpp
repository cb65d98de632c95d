#include "base/wait.hpp"

#include "base/cgroup.hpp"
#include "base/clock.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <string_view>

namespace zerocomm {
namespace {

// The futex word is the atomic's own storage.
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

// Cores that the quota of one cgroup allows, or 0 if it has none. Rounded up: a quota of 1.5 keeps two threads busy now
// and then.
int cores_of_quota(std::optional<std::uint64_t> quota, std::optional<std::uint64_t> period) {
  if (!quota || !period || *quota == 0 || *period == 0) return 0;
  return static_cast<int>(std::min<std::uint64_t>((*quota + *period - 1) / *period, 1U << 20));
}

}  // namespace

std::int64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void ring(Bell& bell) noexcept {
  if (bell.sleepers.load() == 0) return;
  bell.count.fetch_add(1);
  // Not FUTEX_PRIVATE: a bell may lie in memory that several processes share.
  syscall(SYS_futex, &bell.count, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

void sleep_on(Bell& bell, std::uint32_t seen, std::int64_t limit_ns) noexcept {
  timespec limit{};
  limit.tv_sec = static_cast<std::time_t>(limit_ns / 1'000'000'000);
  limit.tv_nsec = static_cast<long>(limit_ns % 1'000'000'000);
  syscall(SYS_futex, &bell.count, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

int quota_cores_below(const std::string& root) {
  constexpr CgroupKind kKinds[] = {{"cgroup", "cpu"}, {"cgroup2", ""}};
  int least = 0;
  visit_cgroups(root, kKinds, [&](std::size_t kind, const std::string& folder) {
    const std::string prefix = root + folder + "/";
    int cores = 0;
    if (kind == 0) {
      cores = cores_of_quota(leading_number(read_small_file(prefix + "cpu.cfs_quota_us")),  // -1, no number: none
                             leading_number(read_small_file(prefix + "cpu.cfs_period_us")));
    } else {
      const std::string both = read_small_file(prefix + "cpu.max");  // "200000 100000", or "max 100000"
      const std::size_t blank = both.find(' ');
      if (blank != std::string::npos)
        cores = cores_of_quota(leading_number(both), leading_number(std::string_view(both).substr(blank)));
    }
    if (cores > 0 && (least == 0 || cores < least)) least = cores;
  });
  return least;
}

int affinity_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // The call fails where there are more cores than the mask has room for.
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask)
                                                       : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

int usable_cores() {
  int cores = affinity_cores();
  const int quota = quota_cores_below("");
  if (quota > 0) cores = std::min(cores, quota);
  return std::max(cores, 1);
}

std::int64_t default_spin_ns(int ranks, int cores) { return ranks <= cores ? 30'000 : 0; }

}  // namespace zerocomm
