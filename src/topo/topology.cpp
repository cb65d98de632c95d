#include "topo/topology.hpp"

#include "base/check.hpp"

#include <charconv>

namespace zerocomm::topo {
namespace {

// Cuts off and returns what stands before the next `separator`; the rest stays in `text`.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
}

std::int32_t read_rank(std::string_view digits, std::string_view part, std::int32_t ranks) {
  std::int32_t rank = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  ZC_REQUIRE(error == std::errc() && end == digits.data() + digits.size() && rank >= 0 && rank < ranks, ZC_ARGUMENT,
             "topology: \"%.*s\" in \"%.*s\" is not a rank from 0 to %d", static_cast<int>(digits.size()),
             digits.data(), static_cast<int>(part.size()), part.data(), ranks - 1);
  return rank;
}

}  // namespace

Topology one_node(std::int32_t ranks) {
  return {{"host"}, std::vector<std::int32_t>(static_cast<std::size_t>(ranks), 0)};
}

Topology parse_topology(std::string_view text, std::int32_t ranks) {
  Topology result{{}, std::vector<std::int32_t>(static_cast<std::size_t>(ranks), -1)};
  while (!text.empty()) {
    const std::string_view part = take_until(text, ' ');
    if (part.empty()) continue;
    std::string_view list = part;
    const std::string_view name = take_until(list, ':');
    ZC_REQUIRE(!name.empty() && !list.empty(), ZC_ARGUMENT, "topology: \"%.*s\" is not NAME:RANKS",
               static_cast<int>(part.size()), part.data());
    for (const std::string& other : result.node_names)
      ZC_REQUIRE(other != name, ZC_ARGUMENT, "topology: node \"%s\" stands twice", other.c_str());
    const auto node = static_cast<std::int32_t>(result.node_names.size());
    result.node_names.emplace_back(name);
    while (!list.empty()) {
      std::string_view last = take_until(list, ',');
      const bool is_range = last.find('-') != std::string_view::npos;
      const std::string_view first = take_until(last, '-');
      const std::int32_t low = read_rank(first, part, ranks);
      const std::int32_t high = is_range ? read_rank(last, part, ranks) : low;
      ZC_REQUIRE(low <= high, ZC_ARGUMENT, "topology: the range %d-%d in \"%.*s\" is empty", low, high,
                 static_cast<int>(part.size()), part.data());
      for (std::int32_t rank = low; rank <= high; ++rank) {
        std::int32_t& entry = result.node_of_rank[static_cast<std::size_t>(rank)];
        ZC_REQUIRE(entry < 0, ZC_ARGUMENT, "topology: rank %d stands twice", rank);
        entry = node;
      }
    }
  }
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    ZC_REQUIRE(result.node_of_rank[static_cast<std::size_t>(rank)] >= 0, ZC_ARGUMENT, "topology: rank %d is on no node",
               rank);
  return result;
}

}  // namespace zerocomm::topo
