// What was measured, and how it is shown: the table of nccl-tests with more columns, CSV, JSON. Pure.
#pragma once

#include "cli/bench_options.hpp"
#include "cli/bench_stats.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zerocomm::cli {

// Another library at the same place.
struct PeerResult {
  std::string unsupported;  // not empty: it cannot do that
  BenchTime time;
  double ratio = 0;  // its time / ours
  std::int64_t wrong = 0;
  std::string by;  // what it really did, if that was something else: "all_reduce", "f32"
};

struct PlaceResult {
  BenchTime time;
  double algbw = 0, busbw = 0;        // GB/s
  std::optional<std::int64_t> wrong;  // calls with a wrong result; nothing: not looked at
  double skew_us = 0;
  std::optional<double> stream_percent;  // time of the same-shape stream / time
  std::optional<double> bound_percent;   // least traffic / triad / time
  std::map<std::string, PeerResult> peers;
};

struct BenchRow {
  BenchCase bench_case;
  std::size_t size_bytes = 0;
  int root = -1;
  std::optional<PlaceResult> out, in;
  std::optional<bool> same_bits;
};

struct BenchDevice {
  int rank = 0, pid = 0;
  std::string host, model;
};

struct BenchRun {
  BenchPlan plan;
  std::vector<std::string> words;  // the command line
  std::string version, clock, library, ranks_are, memory_text;
  std::string start_time, end_time;
  std::vector<std::string> variables;  // "ZC_...=..." that are set
  std::vector<BenchDevice> devices;
  std::map<std::string, std::string> peer_libraries;
  std::optional<double> triad_gbs;
  double min_busbw = -1;  // below 0: none is asked for
  std::vector<BenchRow> rows;
};

// Figures of a row from a time; `count` as nccl-tests counts it.
void set_bandwidth(PlaceResult& place, const BenchCase& bench_case, int ranks);

std::int64_t wrong_of(const BenchRun& run);          // calls, also of peers
std::size_t different_bits_of(const BenchRun& run);  // rows
double average_busbw(const BenchRun& run);           // over every measured place
bool has_failed(const BenchRun& run);                // exit status 1

// A number in `width` characters, with as many digits as fit.
std::string fitted(double value, int width);

std::string table_header(const BenchRun& run);
// Before the youngest row: the name of its collective, where that is another than before. Empty where there is only
// one.
std::string table_title(const BenchRun& run, const BenchRow& row);
std::string table_row(const BenchRun& run, const BenchRow& row);
std::string table_footer(const BenchRun& run);
std::string csv_header(const BenchRun& run);
std::string csv_row(const BenchRun& run, const BenchRow& row);
std::string bench_json(const BenchRun& run);

}  // namespace zerocomm::cli
