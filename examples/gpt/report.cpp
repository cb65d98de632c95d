#include "report.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace gpt {
namespace {

// By how much measured memory and the ledger may differ: the library's own objects, pages that are not full, stacks.
constexpr double kMemoryShare = 0.05;
constexpr double kMemoryBytes = 1 << 20;

std::string row_name(const Row& row) {
  return "stage " + std::to_string(stage_number(row.stage)) + ", " + std::to_string(row.ranks) +
         (row.ranks == 1 ? " rank" : " ranks");
}

void print_memory(std::FILE* to, const std::vector<Row>& rows) {
  if (std::none_of(rows.begin(), rows.end(), [](const Row& row) { return row.memory.has_value(); })) return;
  std::fprintf(to,
               "bytes that the library holds on rank 0: private growth + part of the shared memory - own buffers\n");
  std::fprintf(to, "%5s %12s %12s %12s %12s %12s %12s\n", "stage", "private", "shared", "own buffers", "library",
               "ledger", "worst rank");
  for (const Row& row : rows) {
    if (!row.memory) continue;
    const Memory& memory = *row.memory;
    std::fprintf(to, "%5d %12" PRId64 " %12" PRIu64 " %12" PRIu64 " %12" PRId64 " %12" PRIu64 " %10.2f %%\n",
                 stage_number(row.stage), memory.private_growth_bytes, memory.own_segment_bytes,
                 memory.own_buffer_bytes, memory.measured_bytes(), memory.ledger_bytes, 100 * memory.worst_difference);
  }
}

void write_memory(std::FILE* to, const Memory& memory) {
  std::fprintf(to,
               ",\"private_growth_bytes\":%" PRId64 ",\"own_segment_bytes\":%" PRIu64 ",\"own_buffer_bytes\":%" PRIu64
               ",\"measured_bytes\":%" PRId64 ",\"ledger_bytes\":%" PRIu64
               ",\"worst_difference\":%.6f,\"segment_bytes\":%" PRIu64 ",\"segment_ledger_bytes\":%" PRIu64,
               memory.private_growth_bytes, memory.own_segment_bytes, memory.own_buffer_bytes, memory.measured_bytes(),
               memory.ledger_bytes, memory.worst_difference, memory.segment_bytes, memory.segment_ledger_bytes);
}

// The kernel counts whole pages, and the ledger bytes.
bool segment_is_as_the_ledgers_say(const Row& row) {
  const std::uint64_t pages_bytes = static_cast<std::uint64_t>(row.ranks) * (64 << 10);
  return row.memory->segment_bytes >= row.memory->segment_ledger_bytes &&
         row.memory->segment_bytes - row.memory->segment_ledger_bytes <= pages_bytes;
}

bool memory_is_as_the_ledger_says(const Memory& memory) {
  return static_cast<double>(std::abs(memory.difference_bytes())) <=
         kMemoryShare * static_cast<double>(memory.ledger_bytes) + kMemoryBytes;
}

// The row of a stage among those with memory.
const Row* find_stage(const std::vector<Row>& rows, zc_stage stage) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.memory && row.stage == stage; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

int stage_number(zc_stage stage) { return stage == ZC_STAGE_0 ? 0 : static_cast<int>(stage); }

void print_table(std::FILE* to, const std::vector<Row>& rows) {
  std::fprintf(to, "%5s %5s %8s %8s  %-32s %12s %12s %12s %12s %12s %7s\n", "stage", "ranks", "loss", "at end",
               "hash of the weights", "state bytes", "formula", "bytes/step", "formula", "moved/step", "ms/step");
  for (const Row& row : rows)
    std::fprintf(
        to, "%5d %5d %8.4f %8.4f  %-32s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %7.0f\n",
        stage_number(row.stage), row.ranks, row.loss_first, row.loss_last, row.weights_hash.c_str(), row.state_bytes,
        row.state_bytes_formula, row.logical_bytes, row.logical_bytes_formula, row.moved_bytes, row.step_ms);
  for (const Row& row : rows)
    if (row.stage == ZC_STAGE_3)
      std::fprintf(to,
                   "stage 3: budget %" PRIu64 " bytes (%.0f %% of %" PRIu64 " bytes of parameters), at most %" PRIu64
                   " in use, %" PRIu64 " of them gathered parameters\n",
                   row.budget_bytes,
                   100.0 * static_cast<double>(row.budget_bytes) / static_cast<double>(row.parameter_bytes),
                   row.parameter_bytes, row.budget_peak_bytes, row.gathered_peak_bytes);
  print_memory(to, rows);
}

void write_json(std::FILE* to, const std::string& path, const std::vector<Row>& rows) {
  std::fprintf(to, "{\"rows\":[");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    std::fprintf(to,
                 "%s\n "
                 "{\"stage\":%d,\"ranks\":%d,\"loss_first\":%.17g,\"loss_last\":%.17g,\"weights_hash\":\"%s\",\"state_"
                 "bytes\":%" PRIu64 ",\"state_bytes_formula\":%" PRIu64 ",\"logical_bytes\":%" PRIu64
                 ",\"logical_bytes_formula\":%" PRIu64 ",\"moved_bytes\":%" PRIu64 ",\"gathered_peak_bytes\":%" PRIu64
                 ",\"budget_bytes\":%" PRIu64 ",\"budget_peak_bytes\":%" PRIu64 ",\"parameter_bytes\":%" PRIu64
                 ",\"buckets_before_end\":%" PRIu64 ",\"clipped_steps\":%zu,\"skipped_steps\":%zu,\"step_ms\":%.3f",
                 i == 0 ? "" : ",", stage_number(row.stage), row.ranks, row.loss_first, row.loss_last,
                 row.weights_hash.c_str(), row.state_bytes, row.state_bytes_formula, row.logical_bytes,
                 row.logical_bytes_formula, row.moved_bytes, row.gathered_peak_bytes, row.budget_bytes,
                 row.budget_peak_bytes, row.parameter_bytes, row.buckets_before_end, row.clipped_steps,
                 row.skipped_steps, row.step_ms);
    if (row.memory) write_memory(to, *row.memory);
    std::fprintf(to, "}");
  }
  std::fprintf(to, "\n]}\n");
  if (std::fflush(to) != 0 || std::ferror(to) != 0)
    throw std::runtime_error("cannot write '" + path + "': " + std::strerror(errno));
}

std::vector<std::string> find_faults(const std::vector<Row>& rows) {
  std::vector<std::string> faults;
  for (const Row& row : rows) {
    const auto fault = [&](const std::string& what) { faults.push_back(row_name(row) + ": " + what); };
    if (row.weights_hash != rows.front().weights_hash)
      fault("the weights differ from those of " + row_name(rows.front()));
    if (row.loss_first != rows.front().loss_first || row.loss_last != rows.front().loss_last)
      fault("the losses differ from those of " + row_name(rows.front()));
    if (row.state_bytes != row.state_bytes_formula) fault("the state takes other bytes than the formula");
    if (row.logical_bytes != row.logical_bytes_formula) fault("a step carries other bytes than the formula");
    if (row.budget_peak_bytes > row.budget_bytes) fault("the budget was exceeded");
    if (row.ranks > 1 && row.buckets_before_end == 0) fault("no bucket was reduced before the end of a backward pass");
    if (!row.memory) continue;
    if (!memory_is_as_the_ledger_says(*row.memory))
      fault("the library holds " + std::to_string(row.memory->measured_bytes()) + " bytes, and its ledger says " +
            std::to_string(row.memory->ledger_bytes));
    if (!segment_is_as_the_ledgers_say(row))
      fault("the ranks share " + std::to_string(row.memory->segment_bytes) + " bytes, and their ledgers say " +
            std::to_string(row.memory->segment_ledger_bytes));
  }
  const Row *whole = find_stage(rows, ZC_STAGE_0), *sharded = find_stage(rows, ZC_STAGE_3);
  if (whole != nullptr && sharded != nullptr && whole->ranks > 1 &&
      sharded->memory->measured_bytes() >= whole->memory->measured_bytes())
    faults.push_back(row_name(*sharded) + ": takes no less memory than stage 0");
  return faults;
}

}  // namespace gpt
