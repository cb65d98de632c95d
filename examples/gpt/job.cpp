#include "job.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include "checked.hpp"

namespace gpt {
namespace {

struct CommHandles {
  std::vector<zc_comm*> of_rank;
  explicit CommHandles(std::int32_t ranks) : of_rank(static_cast<std::size_t>(ranks), nullptr) {
    check(zc_comm_create_threads(ranks, nullptr, of_rank.data()));
  }
  ~CommHandles() {
    for (zc_comm* comm : of_rank) zc_comm_destroy(comm);
  }
  CommHandles(const CommHandles&) = delete;
  CommHandles& operator=(const CommHandles&) = delete;
};

// Mean over the micro-batches of all ranks, added up in their order: the same bits however they are dealt out.
double mean_loss(zc_comm* comm, std::int32_t ranks, const std::vector<double>& own) {
  std::vector<double> all(own.size() * static_cast<std::size_t>(ranks));
  zc_coll_options options{};
  options.struct_size = sizeof options;
  options.traffic = ZC_TRAFFIC_CONTROL;
  check(zc_all_gather(comm, own.data(), all.data(), own.size(), ZC_DTYPE_F64, &options));
  double sum = 0;
  for (const double loss : all) sum += loss;
  return sum / static_cast<double>(all.size());
}

std::uint64_t moved_by(zc_comm* comm) {
  zc_stats stats{};
  stats.struct_size = sizeof stats;
  check(zc_comm_stats(comm, &stats));
  std::uint64_t bytes = 0;
  for (int link = ZC_LINK_SELF + 1; link < ZC_LINK_COUNT_; ++link) bytes += stats.moved_bytes[link];
  return bytes;
}

zc_zero_stats stats_of(const ShardedModel& model) {
  zc_zero_stats stats{};
  stats.struct_size = sizeof stats;
  check(zc_zero_get_stats(model.engine(), &stats));
  return stats;
}

void report_memory(const ShardedModel& model, const JobOptions& options, Row& row) {
  zc_zero_ledger ledger{};
  ledger.struct_size = sizeof ledger;
  check(zc_zero_get_ledger(model.engine(), &ledger));
  row.state_bytes = ledger.parameter_bytes + ledger.gradient_bytes + ledger.master_bytes + model.moment_bytes();
  zc_estimate_config config{};
  config.struct_size = sizeof config;
  config.micro_steps = options.model.accumulate;
  zc_estimate estimate{};
  estimate.struct_size = sizeof estimate;
  check(zc_estimate_layout(model.layout(), 0, &config, &estimate));
  row.state_bytes_formula = estimate.state_bytes;
  row.logical_bytes_formula = estimate.logical_bytes;
  zc_layout_info layout{};
  layout.struct_size = sizeof layout;
  check(zc_layout_get_info(model.layout(), &layout));
  row.parameter_bytes = layout.stored_bytes;
}

// What one rank does. Only rank 0 fills in the row.
void run_rank(zc_comm* comm, std::int32_t rank, const JobOptions& options, const Text& text, const Progress& progress,
              Row& row) {
  using Clock = std::chrono::steady_clock;
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
    const double loss = mean_loss(comm, options.ranks, result.losses);
    step_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    if (rank != 0) continue;
    if (step == 0) row.loss_first = loss;
    row.loss_last = loss;
    row.clipped_steps += result.clipped;
    row.skipped_steps += result.skipped;
    if (progress) progress(step, loss, result.norm);
  }
  if (rank == 0) {
    const zc_zero_stats stats = stats_of(model);
    row.stage = options.model.stage;
    row.ranks = options.ranks;
    row.logical_bytes = (stats.gather_logical_bytes + stats.reduce_logical_bytes) / options.steps;
    row.moved_bytes = moved_by(comm) / options.steps;
    row.gathered_peak_bytes = stats.gathered_peak_bytes;
    row.budget_bytes = stats.budget_bytes;
    row.budget_peak_bytes = stats.budget_peak_bytes;
    row.buckets_before_end = stats.buckets_before_end;
    report_memory(model, options, row);
    std::nth_element(step_ms.begin(), step_ms.begin() + static_cast<std::ptrdiff_t>(step_ms.size() / 2), step_ms.end());
    row.step_ms = step_ms[step_ms.size() / 2];
    row.weights_hash = model.weights_hash();
  }
  check(zc_barrier(comm, nullptr));  // rank 0 has read everybody's shards
}

}  // namespace

Row run_job(const JobOptions& options, const Text& text, const Progress& progress) {
  const CommHandles comms(options.ranks);
  Row row;
  std::mutex mutex;
  std::exception_ptr first_error;
  std::vector<std::thread> threads;
  for (std::int32_t rank = 0; rank < options.ranks; ++rank)
    threads.emplace_back([&, rank] {
      zc_comm* comm = comms.of_rank[static_cast<std::size_t>(rank)];
      try {
        run_rank(comm, rank, options, text, progress, row);
      } catch (...) {
        {
          const std::lock_guard lock(mutex);
          if (!first_error) first_error = std::current_exception();
        }
        zc_comm_abort(comm);  // the others must not wait for this rank
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (first_error) std::rethrow_exception(first_error);
  return row;
}

}  // namespace gpt
