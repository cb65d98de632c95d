// zc bench: starts the ranks, or is one of them, and has them measured.
#include "cli/bench_command.hpp"
#include "cli/bench_clock.hpp"
#include "cli/bench_facts.hpp"
#include "cli/bench_peers.hpp"
#include "cli/bench_rank.hpp"
#include "cli/bench_session.hpp"
#include "cli/bench_sizes.hpp"
#include "cli/model_layout.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"

#include <zerocomm/coll.h>
#include <zerocomm/version.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <list>
#include <memory>
#include <thread>

namespace zerocomm::cli {
namespace {

constexpr double kStartLimit = 60;  // seconds for all ranks of a group to come

struct DestroyComm {
  void operator()(zc_comm* comm) const { (void)zc_comm_destroy(comm); }
};
using CommPointer = std::unique_ptr<zc_comm, DestroyComm>;

// No call of a rank waits longer than the whole answer may take.
zc_comm_config comm_config(double timeout_s) {
  zc_comm_config config{};
  config.struct_size = sizeof config;
  if (timeout_s > 0) config.deadline_ns = static_cast<std::int64_t>(timeout_s * 1e9);
  return config;
}

CommPointer create_comm(double timeout_s) {
  const zc_comm_config config = comm_config(timeout_s);
  zc_comm* comm = nullptr;
  require_ok(zc_comm_create(&config, &comm), "zc_comm_create");
  return CommPointer(comm);
}

// One line that is written over, on a terminal alone.
class Progress {
 public:
  explicit Progress(bool quiet) : on_(!quiet && isatty(STDERR_FILENO) == 1) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(double done, const std::string& next) const {
    if (on_) std::fprintf(stderr, "\r\033[K%3.0f %%  %s", 100 * done, next.c_str());
  }
  void clear() const {
    if (on_) std::fputs("\r\033[K", stderr);
  }

 private:
  bool on_;
};

// Standard output, or a file that is written at the end.
class RowOutput {
 public:
  explicit RowOutput(std::string path) : path_(std::move(path)) {}
  void put(const std::string& text) {
    if (path_.empty())
      write_output(text, "");
    else
      held_ += text;
  }
  void finish() const {
    if (!path_.empty()) write_output(held_, path_);
  }

 private:
  std::string path_, held_;
};

// Everything that happens where the driver is: peers are started, rows shown, files written. Returns the exit status.
class Job {
 public:
  Job(const BenchOptions& options, BenchRun run, const HostFacts& facts)
      : options_(options), run_(std::move(run)), facts_(facts), output_(options.output), progress_(options.quiet) {}

  BenchDriver& driver() { return driver_; }
  int drive();

 private:
  void start_peers();
  void describe();

  const BenchOptions& options_;
  BenchRun run_;
  const HostFacts& facts_;
  BenchDriver driver_;
  std::list<PeerJob> peers_;
  RowOutput output_;
  Progress progress_;
};

void Job::start_peers() {
  for (const std::string& peer : run_.plan.peers) {
    progress_.show(0, "starting " + peer);
    peers_.emplace_back(peer, options_.peers, driver_.name(), run_.plan.ranks, facts_.usable_cores, run_.plan.pin);
    PeerJob& job = peers_.back();
    driver_.expect(peer, run_.plan.ranks, kStartLimit, [&] { return job.trouble(); });
    run_.peer_libraries[peer] = driver_.library_of(peer);
  }
}

void Job::describe() {
  run_.library = driver_.library_of(kOwnGroup);
  const std::vector<int> pids = driver_.pids_of(kOwnGroup);
  for (std::size_t rank = 0; rank < pids.size(); ++rank)
    run_.devices.push_back({static_cast<int>(rank), pids[rank], facts_.host, facts_.model});
}

int Job::drive() {
  // Without a limit of its own an answer is still bounded, by the deadline of the ranks.
  driver_.set_limit(options_.timeout_s > 0 ? options_.timeout_s + 5 : 0);
  driver_.expect(kOwnGroup, run_.plan.ranks, kStartLimit, [] { return std::nullopt; });
  describe();
  start_peers();
  const bool csv = options_.csv;
  const BenchSession::Listener listener{
      [&](const BenchRun& run) {
        progress_.clear();
        output_.put(csv ? csv_header(run) : table_header(run));
      },
      [&](const BenchRun& run, const BenchRow& row) {
        progress_.clear();
        output_.put(csv ? csv_row(run, row) : table_title(run, row) + table_row(run, row));
      },
      [&](double done, const std::string& next) { progress_.show(done, next); }};
  BenchSession(driver_, run_, listener).measure();
  run_.end_time = time_text();
  driver_.quit();
  if (!csv) output_.put(table_footer(run_));
  output_.finish();
  if (!options_.json.empty()) write_output(bench_json(run_), options_.json);
  return has_failed(run_) ? static_cast<int>(Exit::failed) : 0;
}

// ---- ranks that are processes of this job

std::vector<std::string> serve_words(const BenchOptions& options, const std::string& socket) {
  return {"/proc/self/exe", "bench", "--serve", socket, "-T", fmt::format("{}", options.timeout_s)};
}

// The driver is a thread beside that which starts the ranks and looks after them.
int with_processes(const BenchOptions& options, Job& job, int ranks_count) {
  int status = 0;
  std::exception_ptr failure;
  RunOptions ranks;
  ranks.program = serve_words(options, job.driver().name());
  ranks.prefix = Prefix::never;
  ranks.ranks = ranks_count;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the thread of the ranks
  std::thread driver([&] {
    try {
      status = job.drive();
    } catch (...) {
      failure = std::current_exception();
    }
    job.driver().quit();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  int ended = static_cast<int>(Exit::failed);
  std::exception_ptr not_run;
  try {
    ended = run_ranks(ranks);
  } catch (...) {
    not_run = std::current_exception();
  }
  job.driver().stop();
  driver.join();
  if (not_run) std::rethrow_exception(not_run);
  if (ended != 0) return ended;  // and zc run has said why
  if (failure) std::rethrow_exception(failure);
  return status;
}

// ---- ranks that are threads

int with_threads(const BenchOptions& options, Job& job, int ranks) {
  const zc_comm_config config = comm_config(options.timeout_s);
  std::vector<zc_comm*> handles(static_cast<std::size_t>(ranks));
  require_ok(zc_comm_create_threads(ranks, &config, handles.data()), "zc_comm_create_threads");
  std::vector<CommPointer> comms;
  comms.reserve(handles.size());
  for (zc_comm* handle : handles) comms.emplace_back(handle);
  std::vector<std::thread> threads;
  threads.reserve(handles.size());
  const auto join = [&] {
    for (std::thread& thread : threads) thread.join();
  };
  for (const CommPointer& comm : comms)
    threads.emplace_back([&job, handle = comm.get()] {
      try {
        BenchRank(handle).serve(job.driver().name());
      } catch (const std::exception& error) {
        std::fprintf(stderr, "zc: %s\n", error.what());
        (void)zc_comm_abort(handle);
        job.driver().stop();
      }
    });
  int status = 0;
  try {
    status = job.drive();
  } catch (...) {
    (void)zc_comm_abort(comms[0].get());  // who is inside a collective is to come out
    job.driver().quit();
    join();
    throw;
  }
  join();
  return status;
}

// ---- ranks that a launcher has started: this process is one of them

// Rank 0 has the driver, and tells the others where it is.
std::string share_socket(zc_comm* comm, const std::string& own) {
  std::array<char, 108> name{};
  own.copy(name.data(), name.size() - 1);
  require_ok(zc_broadcast(comm, name.data(), name.size(), ZC_DTYPE_U8, 0, nullptr), "zc_broadcast");
  return name.data();
}

int under_launcher_rank_0(zc_comm* comm, Job& job) {
  const std::string socket = share_socket(comm, job.driver().name());
  std::thread rank([&] {
    try {
      BenchRank(comm).serve(socket);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "zc: %s\n", error.what());
      job.driver().stop();
    }
  });
  int status = 0;
  std::exception_ptr failure;
  try {
    status = job.drive();
  } catch (...) {
    failure = std::current_exception();
    (void)zc_comm_abort(comm);
  }
  job.driver().quit();
  rank.join();
  if (failure) std::rethrow_exception(failure);
  return status;
}

BenchRun describe_run(const BenchOptions& options, const BenchPlan& plan, const HostFacts& facts,
                      const std::string& ranks_are) {
  BenchRun run;
  run.plan = plan;
  run.words = options.words;
  run.version = zc_version_text();
  run.clock = BenchClock().text();
  run.ranks_are = ranks_are;
  run.memory_text = plan.plain ? "plain, as of malloc" : "registered, of zc_mem_alloc";
  run.start_time = time_text();
  run.variables = facts.variables;
  run.min_busbw = options.min_busbw;
  return run;
}

// Several times the last-level cache, unless that is huge or memory is short.
std::size_t triad_bytes(const HostFacts& facts) {
  constexpr std::size_t kSmall = 256U << 20, kLarge = 1536U << 20;
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::size_t wanted = std::clamp(4 * static_cast<std::size_t>(std::max(cache, 0L)), kSmall, kLarge);
  return std::min(wanted, static_cast<std::size_t>(facts.memory_left_bytes / 4));
}

// A file that cannot be written is to be known before the work, not after it. Leaves what is in it.
void require_writable(const std::string& path) {
  if (path.empty()) return;
  std::FILE* file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) throw Failure(path + ": cannot be written: " + std::strerror(errno));
  std::fclose(file);
}

int serve(const BenchOptions& options) {
  const CommPointer comm = create_comm(options.timeout_s);
  BenchRank(comm.get()).serve(options.serve);
  return 0;
}

int run_under_launcher(const BenchOptions& asked, const HostFacts& facts) {
  if (asked.threads)
    throw Failure("--threads: " + facts.launcher + " has started this process; start zc bench alone", Exit::usage);
  if (asked.ranks && *asked.ranks != facts.ranks)
    throw Failure(
        fmt::format("--ranks {}: {} has started {}; leave --ranks out", *asked.ranks, facts.launcher, facts.ranks),
        Exit::usage);
  BenchOptions options = asked;
  options.ranks = facts.ranks;
  if (!options.compare.empty())
    throw Failure("--compare starts the ranks of the peers, and cannot be one of the ranks of " + facts.launcher,
                  Exit::usage);
  BenchPlan plan = plan_bench(options, facts.usable_cores);
  if (plan.triad_bytes == 0) plan.triad_bytes = triad_bytes(facts);
  require_memory(std::max(bench_memory_bytes(plan), static_cast<double>(plan.triad_bytes)), facts,
                 fmt::format("{} ranks", plan.ranks));
  const CommPointer comm = create_comm(options.timeout_s);
  if (facts.rank == 0) {
    require_writable(options.output);
    require_writable(options.json);
    Job job(options, describe_run(options, plan, facts, "of " + facts.launcher), facts);
    return under_launcher_rank_0(comm.get(), job);
  }
  BenchRank(comm.get()).serve(share_socket(comm.get(), ""));
  return 0;
}

}  // namespace

int run_bench(const BenchOptions& options) {
  if (!options.serve.empty()) return serve(options);
  const HostFacts facts = host_facts();
  if (!facts.launcher.empty()) return run_under_launcher(options, facts);
  BenchPlan plan = plan_bench(options, facts.usable_cores);
  if (plan.triad_bytes == 0) plan.triad_bytes = triad_bytes(facts);
  // A peer has two buffers too, and its library takes scratch memory of about one.
  const double groups = 1 + 1.5 * static_cast<double>(plan.peers.size());
  require_memory(std::max(groups * bench_memory_bytes(plan), static_cast<double>(plan.triad_bytes)), facts,
                 fmt::format("{} ranks{}", plan.ranks, plan.peers.empty() ? "" : " and as many of each peer"));
  require_writable(options.output);
  require_writable(options.json);
  Job job(options, describe_run(options, plan, facts, options.threads ? "threads" : "processes"), facts);
  return options.threads ? with_threads(options, job, plan.ranks) : with_processes(options, job, plan.ranks);
}

}  // namespace zerocomm::cli
