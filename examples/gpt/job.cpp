#include "job.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <stdexcept>

#include "checked.hpp"
#include "gather.hpp"

namespace gpt {
namespace {

// Mean over the micro-batches of all ranks, added up in their order: the same bits however they are dealt out.
double mean_loss(zc_comm* comm, const std::vector<double>& own) {
  const std::vector<double> all = gather(comm, std::span(own));
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

// All ranks read the weights, and must have read the same.
std::string common_hash(zc_comm* comm, const std::string& own) {
  if (const auto other = find_other(comm, own))
    throw std::runtime_error("rank " + std::to_string(*other) + " has read other weights than rank 0");
  return own;
}

std::uint64_t moved_by(zc_comm* comm) {
  zc_stats stats{};
  stats.struct_size = sizeof stats;
  check(zc_comm_stats(comm, &stats));
  std::uint64_t bytes = 0;
  for (int link = ZC_LINK_SELF + 1; link < ZC_LINK_COUNT_; ++link) bytes += stats.moved_bytes[link];
  return bytes;
}

void report_traffic(zc_comm* comm, const ShardedModel& model, std::size_t steps, Row& row) {
  zc_zero_stats stats{};
  stats.struct_size = sizeof stats;
  check(zc_zero_get_stats(model.engine(), &stats));
  row.logical_bytes = (stats.gather_logical_bytes + stats.reduce_logical_bytes) / steps;
  row.moved_bytes = moved_by(comm) / steps;
  row.gathered_peak_bytes = stats.gathered_peak_bytes;
  row.budget_bytes = stats.budget_bytes;
  row.budget_peak_bytes = stats.budget_peak_bytes;
  for (const std::uint64_t buckets : gather(comm, stats.buckets_before_end)) row.buckets_before_end += buckets;
}

void report_memory(const ShardedModel& model, std::int32_t rank, std::int32_t accumulate, Row& row) {
  zc_zero_ledger ledger{};
  ledger.struct_size = sizeof ledger;
  check(zc_zero_get_ledger(model.engine(), &ledger));
  row.state_bytes = ledger.parameter_bytes + ledger.gradient_bytes + ledger.master_bytes + model.moment_bytes();
  zc_estimate_config config{};
  config.struct_size = sizeof config;
  config.micro_steps = accumulate;
  zc_estimate estimate{};
  estimate.struct_size = sizeof estimate;
  check(zc_estimate_layout(model.layout(), rank, &config, &estimate));
  row.state_bytes_formula = estimate.state_bytes;
  row.logical_bytes_formula = estimate.logical_bytes;
  zc_layout_info layout{};
  layout.struct_size = sizeof layout;
  check(zc_layout_get_info(model.layout(), &layout));
  row.parameter_bytes = layout.stored_bytes;
}

}  // namespace

Row run_rank(zc_comm* comm, const JobOptions& options, const Text& text, const Progress& progress,
             std::optional<std::uint64_t> private_before) {
  using Clock = std::chrono::steady_clock;
  Row row;
  row.stage = options.model.stage;
  std::int32_t rank = 0;
  check(zc_comm_rank(comm, &rank));
  check(zc_comm_size(comm, &row.ranks));
  ShardedModel model(comm, options.model);
  check(zc_comm_stats_reset(comm));
  const auto accumulate = static_cast<std::size_t>(options.model.accumulate);
  std::vector<double> step_ms;
  for (std::size_t step = 0; step < options.steps; ++step) {
    const auto start = Clock::now();
    std::vector<std::vector<std::uint8_t>> micro_batches;
    for (std::size_t i = 0; i < accumulate; ++i)
      micro_batches.push_back(
          text.batch(options.model.seed, step, static_cast<std::size_t>(rank) * accumulate + i, options.model.batch));
    const StepResult result = model.step(micro_batches);
    const double loss = mean_loss(comm, result.losses);
    step_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    if (step == 0) row.loss_first = loss;
    row.loss_last = loss;
    row.clipped_steps += result.clipped;
    row.skipped_steps += result.skipped;
    if (progress) progress(step, loss, result.norm);
  }
  std::nth_element(step_ms.begin(), step_ms.begin() + static_cast<std::ptrdiff_t>(step_ms.size() / 2), step_ms.end());
  row.step_ms = step_ms[step_ms.size() / 2];
  report_traffic(comm, model, options.steps, row);
  report_memory(model, rank, options.model.accumulate, row);
  if (private_before) row.memory = measure_memory(comm, *private_before, model.buffer_bytes() + text.byte_count());
  row.weights_hash = common_hash(comm, model.weights_hash());  // returns when nobody reads this rank's shard
  return row;
}

}  // namespace gpt
