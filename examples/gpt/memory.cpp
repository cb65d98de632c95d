#include "memory.hpp"

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "checked.hpp"
#include "gather.hpp"

namespace gpt {
namespace {

// The library's shared memory has no name in any file system; the processes that use it see it among their files.
std::uint64_t shared_segment_bytes() {
  std::uint64_t bytes = 0;
  std::set<ino_t> seen;  // the same memory may be open twice
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) != "/memfd:zerocomm (deleted)") continue;
    struct stat info {};
    if (stat(entry.path().c_str(), &info) == 0 && seen.insert(info.st_ino).second)
      bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;  // st_blocks counts pages that are really there
  }
  return bytes;
}

}  // namespace

std::optional<std::uint64_t> private_bytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return std::nullopt;
#else
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // a huge page would count whole, however little of it is used
  malloc_trim(0);                         // what is free goes back to the system, so that it is not counted
  std::ifstream maps("/proc/self/smaps");
  std::optional<std::uint64_t> bytes;
  for (std::string line; std::getline(maps, line);)
    if (line.starts_with("Anonymous:")) bytes = bytes.value_or(0) + std::stoull(line.substr(10)) * 1024;
  return bytes;
#endif
}

Memory measure_memory(zc_comm* comm, std::uint64_t before, std::uint64_t own_buffer_bytes) {
  Memory memory;
  memory.private_growth_bytes = static_cast<std::int64_t>(private_bytes().value()) - static_cast<std::int64_t>(before);
  memory.own_buffer_bytes = own_buffer_bytes;
  zc_ledger ledger{};
  ledger.struct_size = sizeof ledger;
  check(zc_comm_ledger(comm, &ledger));
  memory.ledger_bytes = ledger.total_bytes;
  for (const std::uint64_t bytes : gather(comm, memory.ledger_bytes)) memory.segment_ledger_bytes += bytes;
  memory.segment_bytes = shared_segment_bytes();
  // The kernel knows the sum alone; a rank's part of it is as large as its ledger's part of all ledgers.
  memory.own_segment_bytes = static_cast<std::uint64_t>(
      std::llround(static_cast<double>(memory.segment_bytes) * static_cast<double>(memory.ledger_bytes) /
                   static_cast<double>(memory.segment_ledger_bytes)));
  const double difference =
      std::abs(static_cast<double>(memory.difference_bytes())) / static_cast<double>(memory.ledger_bytes);
  const std::vector<double> differences = gather(comm, difference);
  memory.worst_difference = *std::max_element(differences.begin(), differences.end());
  return memory;
}

}  // namespace gpt
