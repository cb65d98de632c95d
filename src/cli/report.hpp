// What zc report shows: files of zc bench -J as plain values, grouped into plots, and the page made of them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zerocomm::cli {

// One library at one size.
struct ReportFigure {
  std::string library;  // "zerocomm", or the name of a peer
  double time_us = 0;
  std::optional<double> p10_us, p90_us;
  double busbw = 0;             // GB/s
  std::optional<double> ratio;  // time / zerocomm's
  std::optional<std::uint64_t> wrong;
  std::string by;           // what a peer really did, if it was something else
  std::string unsupported;  // not empty: why there are no figures
};

struct ReportPoint {
  std::uint64_t size_bytes = 0, count = 0;
  ReportFigure own;
  std::optional<double> stream_percent, bound_percent, skew_us;
  std::vector<ReportFigure> peers;
};

// The rows of one file that belong to one plot.
struct ReportBlock {
  std::size_t file = 0;
  std::vector<ReportPoint> points;
};

struct ReportGroup {
  std::string collective, type, redop, root, place, memory, timing;
  std::uint64_t ranks = 0;
  std::vector<ReportBlock> blocks;
};

struct ReportFile {
  std::string path;
  std::vector<std::pair<std::string, std::string>> facts;  // name, value: as shown
};

struct Report {
  std::vector<ReportFile> files;
  std::vector<ReportGroup> groups;
};

// Adds what zc bench -J wrote. Throws Failure (usage) with `path` and what is wrong.
void add_report_file(Report& report, const std::string& text, const std::string& path);

// The plot of a group; empty if there is nothing that has a place on it.
std::string report_svg(const ReportGroup& group);

// A page that needs nothing else.
std::string report_html(const Report& report);

// Text for the page: markup and control characters made harmless.
std::string html_escaped(const std::string& text);
// Four digits or all before the point: 0.06913, 12.35, 98304.
std::string report_number(double value);
// 8 B, 1.5 KiB, 64 MiB.
std::string report_bytes(std::uint64_t bytes);

// The libraries of some rows, in the order in which they appear; the own one comes first.
std::vector<std::string> report_libraries(const ReportBlock& block);
// What the page's style calls a library's colour: "s0" to "s7", the same in every plot.
std::string report_series(const std::string& library);
// The drawing of a library's marker, around (0, 0).
const char* report_marker(const std::string& library);

}  // namespace zerocomm::cli
