#include "boot/launch.hpp"

#include "boot/slurm.hpp"

#include "base/check.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>

namespace zerocomm::boot {
namespace {

// The variables by which a launcher tells a rank who it is.
struct Row {
  Launcher launcher = Launcher::none;
  const char* name = nullptr;
  const char* rank = nullptr;
  const char* ranks = nullptr;
  const char* local_rank = nullptr;     // need not be set
  const char* local_ranks = nullptr;    // need not be set
  const char* winner[2] = {};           // if one is set, later rows do not count
  const char* job = nullptr;            // names the job; null: the launcher's process does
  const char* address[2] = {};          // name it together, where `job` is not set
  const char* more = nullptr;           // makes the name more exact
  bool more_is_local = false;           // and is another on each host
  const char* needs = nullptr;          // without it the row does not count
  const char* ranks_else = nullptr;     // instead of `ranks`, where that is not set
  const char* node = nullptr;           // number of this host, and
  const char* per_node = nullptr;       // a list of ranks on each: instead of `local_ranks`
  Launcher yields_to = Launcher::none;  // if complete, this row does not count
};

// In order of preference. Open MPI makes PMIX_NAMESPACE from 16 bits of a process id, so two jobs may share it; the
// port of their server tells them apart. So does MASTER_PORT for torchruns with the default id, "none".
constexpr Row kRows[] = {
    {.launcher = Launcher::zc_run,
     .name = "zc run",
     .rank = "ZC_RANK",
     .ranks = "ZC_RANKS",
     .local_rank = "ZC_LOCAL_RANK",
     .local_ranks = "ZC_LOCAL_RANKS",
     .winner = {"ZC_RANK", "ZC_RANKS"},
     .job = "ZC_JOB"},
    {.launcher = Launcher::torchrun,
     .name = "torchrun",
     .rank = "RANK",
     .ranks = "WORLD_SIZE",
     .local_rank = "LOCAL_RANK",
     .local_ranks = "LOCAL_WORLD_SIZE",
     .winner = {"TORCHELASTIC_RUN_ID"},
     .job = "TORCHELASTIC_RUN_ID",
     .address = {"MASTER_ADDR", "MASTER_PORT"},
     .more = "TORCHELASTIC_RESTART_COUNT"},
    {.launcher = Launcher::slurm,
     .name = "Slurm",
     .rank = "SLURM_PROCID",
     .ranks = "SLURM_STEP_NUM_TASKS",
     .local_rank = "SLURM_LOCALID",
     .job = "SLURM_JOB_ID",
     .more = "SLURM_STEP_ID",
     .needs = "SLURM_STEP_ID",
     .ranks_else = "SLURM_NTASKS",
     .node = "SLURM_NODEID",
     .per_node = "SLURM_STEP_TASKS_PER_NODE",
     .yields_to = Launcher::torchrun},
    {.launcher = Launcher::open_mpi,
     .name = "Open MPI",
     .rank = "OMPI_COMM_WORLD_RANK",
     .ranks = "OMPI_COMM_WORLD_SIZE",
     .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
     .local_ranks = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .job = "PMIX_NAMESPACE",
     .more = "PMIX_SERVER_URI2",
     .more_is_local = true},
    {.launcher = Launcher::hydra,
     .name = "Hydra (MPICH)",
     .rank = "PMI_RANK",
     .ranks = "PMI_SIZE",
     .local_rank = "MPI_LOCALRANKID",
     .local_ranks = "MPI_LOCALNRANKS"},
};

void append(std::string& list, const std::string& item, const char* separator) {
  if (!list.empty()) list += separator;
  list += item;
}

// What one row's variables say.
struct Claim {
  const Row* row;
  Launch launch;
  std::string set;      // "NAME=value, NAME=value" of rank and ranks
  std::string missing;  // "NAME, NAME"; if not empty, nothing of `launch` is good
};

// Reads the variables of one row.
class Reader {
 public:
  Reader(Lookup lookup, const Row& row) : lookup_(lookup), row_(row), ranks_(row.ranks) {
    if (!is_set(ranks_) && is_set(row.ranks_else)) ranks_ = row.ranks_else;
  }

  bool any_set() const {
    return (row_.needs == nullptr || is_set(row_.needs)) && (is_set(row_.rank) || is_set(ranks_));
  }
  bool wins() const { return is_set(row_.winner[0]) || is_set(row_.winner[1]); }

  Claim read() {
    claim_.row = &row_;
    claim_.launch.launcher = row_.launcher;
    for (const char* name : {row_.rank, ranks_}) {
      add_if_set(claim_.set, name, ", ");
      if (!is_set(name)) miss(name);
    }
    read_job();
    if (claim_.missing.empty()) read_numbers();
    for (const char* name : {row_.rank, ranks_, row_.local_rank, row_.local_ranks, row_.node, row_.per_node, row_.job,
                             row_.more, row_.address[0], row_.address[1]})
      if (is_set(name)) add_if_set(claim_.launch.used.emplace_back(), name, "");
    return std::move(claim_);
  }

 private:
  bool is_set(const char* name) const { return name != nullptr && lookup_(name).has_value(); }
  void miss(const std::string& name) { append(claim_.missing, name, ", "); }
  void add_if_set(std::string& list, const char* name, const char* separator) const {
    if (is_set(name)) append(list, std::string(name) + "=" + *lookup_(name), separator);
  }

  std::int32_t number(const char* name, std::int32_t least, std::int32_t most, std::int32_t otherwise) const {
    const auto text = name != nullptr ? lookup_(name) : std::nullopt;
    if (!text) return otherwise;
    std::int32_t value = 0;
    const char* end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, value);
    ZC_REQUIRE(error == std::errc() && stop == end && value >= least && value <= most, ZC_ARGUMENT,
               "the variable %s is \"%.40s\"; it takes a whole number from %d to %d", name, text->c_str(), least, most);
    return value;
  }

  void read_numbers() {
    Launch& launch = claim_.launch;
    launch.ranks = number(ranks_, 1, std::numeric_limits<std::int32_t>::max(), 0);
    launch.rank = number(row_.rank, 0, launch.ranks - 1, 0);
    launch.local_ranks =
        is_set(row_.per_node) ? listed_ranks(launch.ranks) : number(row_.local_ranks, 1, launch.ranks, launch.ranks);
    if (launch.local_ranks < launch.ranks && !is_set(row_.local_rank)) return miss(row_.local_rank);
    launch.local_rank = number(row_.local_rank, 0, launch.local_ranks - 1, launch.rank);
  }

  // Those of this host, by the list.
  std::int32_t listed_ranks(std::int32_t ranks) {
    const std::string list = *lookup_(row_.per_node);
    const std::int32_t node = number(row_.node, 0, ranks - 1, 0);
    const std::optional<SlurmTasks> tasks = slurm_tasks(list, node);
    ZC_REQUIRE(tasks, ZC_ARGUMENT, "the variable %s is \"%.40s\"; it takes a list such as 2(x3),1", row_.per_node,
               list.c_str());
    ZC_REQUIRE(tasks->tasks == ranks && tasks->on_node > 0, ZC_ARGUMENT,
               "the variable %s is \"%.40s\": %lld ranks on %lld hosts; that does not go with %s=%d and %s=%d",
               row_.per_node, list.c_str(), static_cast<long long>(tasks->tasks), static_cast<long long>(tasks->nodes),
               ranks_, ranks, row_.node, node);
    if (tasks->nodes > 1 && !is_set(row_.node)) miss(row_.node);
    return tasks->on_node;
  }

  void read_job() {
    if (row_.job == nullptr) return;
    for (const char* name : {row_.job, row_.more, row_.address[0], row_.address[1]}) {
      add_if_set(claim_.launch.job, name, ",");
      if (name != row_.more || !row_.more_is_local) add_if_set(claim_.launch.job_everywhere, name, ",");
    }
    if (is_set(row_.job)) return;
    if (row_.address[0] == nullptr) return miss(row_.job);
    std::string parts;
    for (const char* name : row_.address)
      if (!is_set(name)) append(parts, name, ", ");
    if (!parts.empty()) miss(parts + " (or " + row_.job + ")");
  }

  Lookup lookup_;
  const Row& row_;
  const char* ranks_;
  Claim claim_{};
};

Launch choose(Claim claim, FunctionRef<std::string()> parent) {
  ZC_REQUIRE(claim.missing.empty(), ZC_ARGUMENT, "the variables of %s are incomplete: %s set, but not %s",
             claim.row->name, claim.set.c_str(), claim.missing.c_str());
  if (claim.row->job == nullptr) {
    claim.launch.job = parent();
    ZC_REQUIRE(!claim.launch.job.empty(), ZC_ARGUMENT,
               "%s gives its jobs no name, and /proc does not show the process that started this one (%s)",
               claim.row->name, claim.set.c_str());
  }
  return std::move(claim.launch);
}

// What /proc/<pid>/stat says of a process.
struct Process {
  std::string name;
  int parent = 0;
  unsigned long long start_ticks = 0;
};

std::optional<Process> find_process(int pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return std::nullopt;
  char line[1024];
  line[std::fread(line, 1, sizeof line - 1, file)] = '\0';
  std::fclose(file);
  // The name stands in parentheses and may have some of its own.
  const char* open = std::strchr(line, '(');
  const char* shut = std::strrchr(line, ')');
  if (open == nullptr || shut == nullptr || shut < open) return std::nullopt;
  Process process;
  process.name.assign(open + 1, shut);
  // Field 3 is the state, 4 the parent, 22 the start time.
  if (std::sscanf(shut + 1, " %*c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
                  &process.parent, &process.start_ticks) != 2)
    return std::nullopt;
  return process;
}

}  // namespace

const char* launcher_name(Launcher launcher) {
  for (const Row& row : kRows)
    if (row.launcher == launcher) return row.name;
  return "no launcher";
}

Launch detect_launch(Lookup lookup, FunctionRef<std::string()> parent) {
  std::optional<Claim> best, incomplete;
  for (const Row& row : kRows) {
    Reader reader(lookup, row);
    if (!reader.any_set()) continue;
    if (best && row.yields_to == best->launch.launcher) continue;
    const bool wins = reader.wins();
    Claim claim = reader.read();
    if (wins) return choose(std::move(claim), parent);
    if (!claim.missing.empty()) {
      if (!incomplete) incomplete = std::move(claim);
    } else if (!best) {
      best = std::move(claim);
    } else {
      ZC_REQUIRE(best->launch.rank == claim.launch.rank && best->launch.ranks == claim.launch.ranks, ZC_ARGUMENT,
                 "%s and %s disagree about this process: %s; %s. Unset the variables of the one that did not start it",
                 best->row->name, claim.row->name, best->set.c_str(), claim.set.c_str());
    }
  }
  if (best) return choose(std::move(*best), parent);
  if (incomplete) return choose(std::move(*incomplete), parent);
  return {};
}

std::string ancestor_text(const char* name) {
  // The kernel keeps 15 characters of a name.
  const std::string wanted(name, strnlen(name, 15));
  std::string first;
  for (int pid = getppid(); pid > 0;) {
    const std::optional<Process> process = find_process(pid);
    if (!process) break;
    std::string text = format("%s:%d:%llu", process->name.c_str(), pid, process->start_ticks);
    if (process->name == wanted) return text;
    if (first.empty()) first = std::move(text);
    pid = process->parent;
  }
  return first;
}

}  // namespace zerocomm::boot
