#include "cli/bench_sizes.hpp"

#include "cli/failure.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string_view>

namespace zerocomm::cli {
namespace {

constexpr std::string_view kPrefixes = "KMGT";
constexpr std::size_t kMostRows = 10000;

}  // namespace

std::size_t parse_bytes(const std::string& option, const std::string& text) {
  const std::size_t digits = text.find_first_not_of("0123456789.");
  const std::string number = text.substr(0, digits);
  std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  double factor = 1;
  if (!unit.empty()) {
    const char upper = unit[0] >= 'a' && unit[0] <= 'z' ? static_cast<char>(unit[0] - 'a' + 'A') : unit[0];
    if (const std::size_t power = kPrefixes.find(upper); power != std::string_view::npos) {
      factor = std::pow(1024.0, static_cast<double>(power + 1));
      unit.erase(0, 1);
    }
  }
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end) * factor;
  if (number.empty() || end != number.c_str() + number.length() || (!unit.empty() && unit != "B" && unit != "iB"))
    throw Failure(fmt::format("{} {}: this is no size; write bytes, or 64K, 128M, 1G", option, text), Exit::usage);
  if (value < 1 || value > 0x1p50)
    throw Failure(fmt::format("{} {}: a size is 1 byte or more, and 1024T at most", option, text), Exit::usage);
  return static_cast<std::size_t>(value);
}

std::string bytes_text(double bytes) {
  const char* const kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  if (bytes == std::floor(bytes)) return fmt::format("{:.0f} {}", bytes, kUnits[unit]);
  return fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::vector<std::size_t> size_ladder(std::size_t least, std::size_t most, std::size_t step_bytes, int factor) {
  if (least > most)
    throw Failure(fmt::format("-b {} is more than -e {}", bytes_text(static_cast<double>(least)),
                              bytes_text(static_cast<double>(most))),
                  Exit::usage);
  if (step_bytes == 0 && factor < 2)
    throw Failure(fmt::format("-f {}: sizes grow by a factor of 2 or more", factor), Exit::usage);
  std::vector<std::size_t> sizes;
  for (std::size_t size = least; size <= most;
       size = step_bytes != 0 ? size + step_bytes : size * static_cast<std::size_t>(factor)) {
    if (sizes.size() == kMostRows)
      throw Failure(fmt::format("there are more than {} sizes from -b to -e; take a larger step", kMostRows),
                    Exit::usage);
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace zerocomm::cli
