#include "base/wait.hpp"

#include "base/clock.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace zerocomm {
namespace {

// The futex word is the atomic's own storage.
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

// Cores that version 2 quotas allow: the least of this process's cgroup and those above it. 0: no quota; -1: no
// version 2.
int quota_cores_v2() {
  char path[512] = "/sys/fs/cgroup";
  constexpr std::size_t kRoot = 14;  // characters of the mount point
  if (std::FILE* file = std::fopen("/proc/self/cgroup", "re")) {
    char line[400];
    while (std::fgets(line, sizeof line, file) != nullptr)
      if (std::sscanf(line, "0::%399[^\n]", path + kRoot) == 1) break;
    std::fclose(file);
  }
  int least = -1;
  for (std::size_t end = std::strlen(path);; --end) {
    if (path[end] != '\0' && path[end] != '/') continue;
    path[end] = '\0';
    char name[544];
    std::snprintf(name, sizeof name, "%s/cpu.max", path);
    long long quota = 0, period = 0;
    if (std::FILE* file = std::fopen(name, "re")) {
      const int fields = std::fscanf(file, "%lld %lld", &quota, &period);  // "max 100000" reads nothing
      std::fclose(file);
      const int cores = fields == 2 && period > 0 ? static_cast<int>((quota + period - 1) / period) : 0;
      if (least <= 0 || (cores > 0 && cores < least)) least = cores;
    }
    if (end <= kRoot) break;
  }
  return least;
}

// Cores that a cgroup's quota allows, or 0 if there is no quota. Rounded up: a quota of 1.5 keeps two threads busy now
// and then.
int quota_cores() {
  if (const int cores = quota_cores_v2(); cores >= 0) return cores;
  const auto read_one = [](const char* path, long long* value) {
    std::FILE* one = std::fopen(path, "re");
    if (one == nullptr) return false;
    const bool good = std::fscanf(one, "%lld", value) == 1;
    std::fclose(one);
    return good;
  };
  long long quota = -1, period = 0;
  if (!read_one("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", &quota) ||
      !read_one("/sys/fs/cgroup/cpu/cpu.cfs_period_us", &period))
    return 0;
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int>((quota + period - 1) / period);
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

int usable_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // The call fails where there are more cores than the mask has room for.
  int cores = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask)
                                                            : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const int quota = quota_cores();
  if (quota > 0) cores = std::min(cores, quota);
  return std::max(cores, 1);
}

std::int64_t default_spin_ns(int ranks, int cores) { return ranks <= cores ? 30'000 : 0; }

}  // namespace zerocomm
