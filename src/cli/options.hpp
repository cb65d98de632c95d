// What the commands take, once the command line is read.
#pragma once

#include <zerocomm/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zerocomm::cli {

// How to cut a model.
struct CutOptions {
  std::string model;
  std::int32_t ranks = 0;
  std::size_t alignment_bytes = 0;  // 0: the library's default, as below
  std::size_t bucket_bytes = 0;
  std::size_t persistent_bytes = 0;
  bool flat = false;  // placement
};

struct LayoutOptions {
  CutOptions cut;
  int stage = 0;
  std::optional<std::int32_t> rank;  // print this rank's shards alone
  bool json = false;
  std::string output;
};

struct EstimateOptions {
  CutOptions cut;  // no model: parameter_count
  std::size_t parameter_count = 0;
  std::string dtype;
  std::int32_t rank = 0;
  std::size_t moment_bytes = 8;
  std::int32_t micro_steps = 1;
  bool accumulate_first = false;
  bool json = false;
  std::string output;
};

enum class Prefix : std::uint8_t { automatic, always, never };

struct RunOptions {
  std::vector<std::string> program;  // and its arguments
  int ranks = 0;
  double timeout_s = 0;  // 0: none
  Prefix prefix = Prefix::automatic;
};

struct InfoOptions {
  bool json = false;
  std::string output;
};

enum class ScheduleCommand : std::uint8_t { list, show, verify, cost };

struct ScheduleOptions {
  ScheduleCommand command = ScheduleCommand::list;
  std::string collective, algorithm;  // of the catalogue, or ...
  std::string file;                   // ... text
  std::int32_t ranks = 0;
  std::int32_t root = 0;
  std::int32_t lanes = 0;    // 0: 1
  std::uint32_t chunks = 0;  // 0: the fewest
  std::size_t count = 0;     // 0: costs in chunks
  bool json = false;
  bool csv = false;
  std::string output;
};

struct ReportOptions {
  std::vector<std::string> files;  // of zc bench -J
  std::string output;
};

void run_layout(const LayoutOptions& options);
void run_estimate(const EstimateOptions& options);
void run_info(const InfoOptions& options);
void run_report(const ReportOptions& options);
int run_schedule(const ScheduleOptions& options);  // the exit status: a schedule that is not proved is a failure
int run_ranks(const RunOptions& options);          // the exit status

}  // namespace zerocomm::cli
