#include "boot/slurm.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace zerocomm::boot {
namespace {

// Takes a whole number of at least 1 from the front.
template <class Number>
bool take_number(std::string_view& text, Number& value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 1) return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

}  // namespace

std::optional<SlurmTasks> slurm_tasks(std::string_view text, std::int64_t node) {
  SlurmTasks found;
  do {
    std::int32_t tasks = 0, nodes = 1;
    if (!take_number(text, tasks)) return std::nullopt;
    if (take(text, "(x") && !(take_number(text, nodes) && take(text, ")"))) return std::nullopt;
    if (node >= found.nodes && node < found.nodes + nodes) found.on_node = tasks;
    found.nodes += nodes;
    found.tasks += std::int64_t{tasks} * nodes;
    if (found.tasks > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  } while (take(text, ","));
  if (!text.empty()) return std::nullopt;
  return found;
}

std::string slurm_first_host(std::string_view text) {
  std::string host;
  while (!text.empty() && text.front() != ',') {
    if (text.front() != '[') {
      host += text.front();
      text.remove_prefix(1);
      continue;
    }
    const std::size_t shut = text.find(']');
    if (shut == std::string_view::npos) return {};
    host += text.substr(1, std::min(text.find_first_of("-,]"), shut) - 1);
    text.remove_prefix(shut + 1);
  }
  return host;
}

std::optional<std::uint16_t> slurm_first_port(std::string_view text) {
  std::uint16_t port = 0;
  if (!take_number(text, port) || !(text.empty() || text.front() == '-' || text.front() == ',')) return std::nullopt;
  return port;
}

}  // namespace zerocomm::boot
