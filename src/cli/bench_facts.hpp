// What zc info knows and the bench needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zerocomm::cli {

struct HostFacts {
  int usable_cores = 1;
  std::uint64_t memory_left_bytes = 0;
  std::string memory_limit;            // where that comes from
  std::string launcher;                // empty: none
  int rank = 0, ranks = 0;             // by the launcher
  std::vector<std::string> variables;  // "ZC_...=..." that are set
  std::string host, model;
};
HostFacts host_facts();

// "20261201 05:10:30", of now.
std::string time_text();

// Throws Failure (usage) if `bytes` are more than are left.
void require_memory(double bytes, const HostFacts& facts, const std::string& what);

}  // namespace zerocomm::cli
