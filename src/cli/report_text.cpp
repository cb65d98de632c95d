// Words, numbers and names of the page of zc report.
#include "cli/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace zerocomm::cli {
namespace {

constexpr const char* kKnown[] = {"zerocomm", "openmpi", "openmpi-ucx", "mpich", "gloo"};
constexpr std::size_t kSeries = 8;
constexpr const char* kMarkers[] = {
    "<circle r=\"4.5\"/>",
    "<rect x=\"-3.8\" y=\"-3.8\" width=\"7.6\" height=\"7.6\"/>",
    "<path d=\"M0,-5 5,0 0,5 -5,0z\"/>",
    "<path d=\"M0,-5 4.8,3.6 -4.8,3.6z\"/>",
    "<path d=\"M0,5 4.8,-3.6 -4.8,-3.6z\"/>",
};

// Peers that nobody knew share what is left, by the letters of their names.
std::size_t number_of(const std::string& library) {
  const std::size_t known = std::size(kKnown);
  const auto found = static_cast<std::size_t>(std::find(std::begin(kKnown), std::end(kKnown), library) - kKnown);
  if (found < known) return found;
  std::size_t sum = 0;
  for (const char c : library) sum += static_cast<unsigned char>(c);
  return known + sum % (kSeries - known);
}

}  // namespace

std::string html_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return escaped;
}

std::string report_number(double value) {
  if (value == 0) return "0";
  const int digits = static_cast<int>(std::floor(std::log10(value)));
  return fmt::format("{:.{}f}", value, std::clamp(3 - digits, 0, 9));
}

std::string report_bytes(std::uint64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  auto value = static_cast<double>(bytes);
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  std::string number = fmt::format("{:.2f}", value);
  while (number.back() == '0') number.pop_back();
  if (number.back() == '.') number.pop_back();
  return number + " " + kUnits[unit];
}

std::vector<std::string> report_libraries(const ReportBlock& block) {
  std::vector<std::string> libraries;
  const auto add = [&](const ReportFigure& figure) {
    if (std::find(libraries.begin(), libraries.end(), figure.library) == libraries.end())
      libraries.push_back(figure.library);
  };
  for (const ReportPoint& point : block.points) add(point.own);
  for (const ReportPoint& point : block.points) std::for_each(point.peers.begin(), point.peers.end(), add);
  return libraries;
}

std::string report_series(const std::string& library) { return "s" + std::to_string(number_of(library)); }

const char* report_marker(const std::string& library) { return kMarkers[number_of(library) % std::size(kMarkers)]; }

}  // namespace zerocomm::cli
