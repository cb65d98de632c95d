// Ranks that are processes: one communicator for the whole job.
#include <algorithm>
#include <stdexcept>

#include "checked.hpp"
#include "gather.hpp"
#include "ranks.hpp"

namespace gpt {
namespace {

CommHandle join(const JobId& id) {
  zc_comm_config config{};
  config.struct_size = sizeof config;
  zc_unique_id unique{};
  if (!id.text.empty()) {  // else the launcher's variables tell
    id.text.copy(unique.text, sizeof unique.text - 1);
    config.id = &unique;
    config.rank = id.rank;
    config.ranks = id.ranks;
  }
  zc_comm* comm = nullptr;
  const zc_status status = zc_comm_create(&config, &comm);
  if (status == ZC_ARGUMENT && id.text.empty())
    throw std::runtime_error(std::string(zc_last_error()) +
                             ". Start it as 'zc run -n 4 -- zc_gpt ...', or add --threads for ranks in one process");
  check(status);
  return CommHandle(comm);
}

class ProcessRank final : public Ranks {
 public:
  explicit ProcessRank(const JobId& id) : private_before_(private_bytes()), comm_(join(id)) {
    check(zc_comm_rank(comm_.get(), &rank_));
    check(zc_comm_size(comm_.get(), &count_));
  }

  std::int32_t count() const override { return count_; }
  bool speaks() const override { return rank_ == 0; }
  std::string name() const override { return "rank " + std::to_string(rank_) + ": "; }

  void require_same(const std::string& options_hash) override {
    if (const auto other = find_other(comm_.get(), options_hash))
      throw std::runtime_error("rank " + std::to_string(*other) +
                               " was given other options or another text than rank 0");
  }

  std::optional<Row> run(const JobOptions& options, const Text& text, const Progress& progress) override {
    if (options.ranks == count_) return run_rank(comm_.get(), options, text, progress, private_before_);
    // One rank alone is a thread of rank 0. The other processes wait for each of its steps: no wait is longer than a
    // step takes, and all end with an error if rank 0 does.
    std::optional<Row> row;
    if (rank_ == 0)
      row = thread_ranks(options.ranks)->run(options, text, [&](std::size_t step, double loss, double norm) {
        check(zc_barrier(comm_.get(), nullptr));
        if (progress) progress(step, loss, norm);
      });
    else
      for (std::size_t step = 0; step < options.steps; ++step) check(zc_barrier(comm_.get(), nullptr));
    return row;
  }

  bool all_well(bool well) override {
    const std::vector<char> all = gather(comm_.get(), static_cast<char>(well));
    return std::all_of(all.begin(), all.end(), [](char one) { return one != 0; });
  }

  void abort() override { zc_comm_abort(comm_.get()); }

 private:
  std::optional<std::uint64_t> private_before_;  // first of all: just before the communicator
  CommHandle comm_;
  std::int32_t rank_ = 0, count_ = 0;
};

}  // namespace

std::unique_ptr<Ranks> process_ranks(const JobId& id) { return std::make_unique<ProcessRank>(id); }

}  // namespace gpt
