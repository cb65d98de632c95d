// Domain "clocks": what a schedule costs on ideal links, counted, not measured.
#pragma once

#include "schedule/partition.hpp"
#include "schedule/step.hpp"

#include <string>

namespace zerocomm::schedule {

// A message of n elements occupies the sending lane for n b and arrives a later. Lanes do not share links. Only the
// ratio a : b matters: it decides which of two paths is the longer one.
struct LinkModel {
  std::uint64_t alpha = 1000;
  std::uint64_t beta = 1;
};

// A length of time in symbols: alphas * a + elements * b.
struct PathLength {
  std::uint64_t alphas = 0;
  std::uint64_t elements = 0;
  friend bool operator==(const PathLength&, const PathLength&) = default;
};

// What one rank sends and receives.
struct Traffic {
  std::uint64_t messages_sent = 0;
  std::uint64_t elements_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t elements_received = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

struct Cost {
  std::vector<Traffic> ranks;
  PathLength critical_path;
  friend bool operator==(const Cost&, const Cost&) = default;
};

// Runs the schedule on clocks. Throws ARGUMENT if the schedule cannot run to its end, or if the partition has another
// number of chunks. With Partition::unit(chunks) "elements" are chunks.
Cost cost_of(const Schedule& schedule, const Partition& partition, LinkModel links = {});

// "2a + 14b"; "0" for no time at all.
std::string path_text(PathLength path);

}  // namespace zerocomm::schedule
