// Ranks that are threads: one communicator per row.
#include <exception>
#include <mutex>
#include <thread>

#include "checked.hpp"
#include "ranks.hpp"

namespace gpt {
namespace {

class ThreadRanks final : public Ranks {
 public:
  explicit ThreadRanks(std::int32_t count) : count_(count) {}

  std::int32_t count() const override { return count_; }
  bool speaks() const override { return true; }
  std::string name() const override { return ""; }
  void require_same(const std::string& /*options_hash*/) override {}
  bool all_well(bool well) override { return well; }
  void abort() override {}

  std::optional<Row> run(const JobOptions& options, const Text& text, const Progress& progress) override {
    const std::vector<CommHandle> comms = make_comms(options.ranks);
    std::optional<Row> row;
    std::mutex mutex;
    std::exception_ptr first_error;
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < comms.size(); ++rank)
      threads.emplace_back([&, rank] {
        zc_comm* comm = comms[rank].get();
        try {
          Row own = run_rank(comm, options, text, rank == 0 ? progress : Progress(), std::nullopt);
          if (rank == 0) row = std::move(own);
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

 private:
  static std::vector<CommHandle> make_comms(std::int32_t count) {
    std::vector<zc_comm*> handles(static_cast<std::size_t>(count));
    check(zc_comm_create_threads(count, nullptr, handles.data()));
    return {handles.begin(), handles.end()};
  }

  std::int32_t count_;
};

}  // namespace

std::unique_ptr<Ranks> thread_ranks(std::int32_t count) { return std::make_unique<ThreadRanks>(count); }

}  // namespace gpt
