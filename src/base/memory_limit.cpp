#include "base/memory_limit.hpp"

#include "base/cgroup.hpp"
#include "base/check.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

namespace zerocomm {
namespace {

// The files of one version of memory cgroups. memory.high of version 2 slows a process down and does not end it.
struct Version {
  const char* limit;
  const char* usage;
  std::string_view idle_cache;  // of memory.stat
};
constexpr CgroupKind kKinds[] = {{"cgroup", "memory"}, {"cgroup2", ""}};
constexpr Version kVersions[] = {{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
                                 {"memory.max", "memory.current", "inactive_file"}};

// Version 1 says "no limit" with the largest whole number of pages.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;

// Takes the limit of one cgroup into account.
void look(const std::string& root, const std::string& folder, const Version& version, MemoryRoom& least) {
  const std::string prefix = root + folder + "/";
  const auto limit = leading_number(read_small_file(prefix + version.limit));
  if (!limit || *limit >= kNoLimit) return;
  const auto usage = leading_number(read_small_file(prefix + version.usage));
  if (!usage) return;
  // Cache only adds room, and its file is the slowest to read.
  if (*usage < *limit && *limit - *usage >= least.left_bytes) return;
  const std::uint64_t cache = number_of(read_small_file(prefix + "memory.stat"), version.idle_cache).value_or(0);
  const std::uint64_t used = *usage - std::min(cache, *usage);
  const std::uint64_t left = *limit - std::min(used, *limit);
  if (left >= least.left_bytes) return;
  least.left_bytes = left;
  least.limit_text = format("memory cgroup %s: limit %llu bytes, %llu in use", folder.c_str(),
                            static_cast<unsigned long long>(*limit), static_cast<unsigned long long>(used));
}

}  // namespace

MemoryRoom memory_room_below(const std::string& root) {
  MemoryRoom least{std::numeric_limits<std::uint64_t>::max(), "no limit is known"};
  if (const auto kilobytes = number_of(read_small_file(root + "/proc/meminfo"), "MemAvailable:")) {
    least.left_bytes = *kilobytes * 1024;
    least.limit_text = format("host: %llu bytes available", static_cast<unsigned long long>(least.left_bytes));
  }
  visit_cgroups(root, kKinds,
                [&](std::size_t kind, const std::string& folder) { look(root, folder, kVersions[kind], least); });
  return least;
}

MemoryRoom memory_room() { return memory_room_below(""); }

}  // namespace zerocomm
