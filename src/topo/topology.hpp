// Which ranks share a node. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zerocomm::topo {

struct Topology {
  std::vector<std::string> node_names;
  std::vector<std::int32_t> node_of_rank;
  friend bool operator==(const Topology&, const Topology&) = default;
};

// All ranks on one node called "host".
Topology one_node(std::int32_t ranks);

// Reads "a:0-3 b:4-7" or "a:0,2 b:1,3": names, each with the ranks on that node; every rank exactly once.
// Throws Error(ARGUMENT) that quotes the part that is wrong.
Topology parse_topology(std::string_view text, std::int32_t ranks);

}  // namespace zerocomm::topo
