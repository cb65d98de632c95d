#include "cli/bench_facts.hpp"

#include "cli/bench_sizes.hpp"
#include "cli/failure.hpp"

#include <zerocomm/info.h>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <string_view>

namespace zerocomm::cli {
namespace {

std::uint64_t leading_digits(std::string_view text) {
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

void take_fact(void* context, const char* section, const char* name, const char* value, const char* why) {
  HostFacts& facts = *static_cast<HostFacts*>(context);
  const std::string_view in = section, what = name, is = value;
  if (in == "host" && what == "usable cores") facts.usable_cores = static_cast<int>(leading_digits(is));
  if (in == "host" && what == "memory left") {
    facts.memory_left_bytes = leading_digits(is);
    facts.memory_limit = why;
  }
  if (in == "launch" && what == "launcher" && is != "no launcher") facts.launcher = is;
  if (in == "launch" && what == "rank") facts.rank = static_cast<int>(leading_digits(is));
  if (in == "launch" && what == "ranks") facts.ranks = static_cast<int>(leading_digits(is));
  if (in == "variables" && is != "not set") facts.variables.push_back(std::string(what) + "=" + std::string(is));
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.find(": ") + 2, line.length()));
  return "processor";
}

}  // namespace

HostFacts host_facts() {
  HostFacts facts;
  if (zc_info(take_fact, &facts) != ZC_OK) throw Failure(std::string("zc_info: ") + zc_last_error());
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) facts.host = name.data();
  facts.model = processor();
  facts.usable_cores = std::max(facts.usable_cores, 1);
  return facts;
}

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return {text.data(), length};
}

void require_memory(double bytes, const HostFacts& facts, const std::string& what) {
  const auto left = static_cast<double>(facts.memory_left_bytes);
  if (bytes <= left) return;
  throw Failure(fmt::format("{} would take {} of memory, and {} are left ({}); take a smaller -e, or fewer ranks", what,
                            bytes_text(bytes), bytes_text(left), facts.memory_limit),
                Exit::usage);
}

}  // namespace zerocomm::cli
