// Who started this process, as the environment tells: rank, number of ranks, and what names the job.
#pragma once

#include "base/function_ref.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zerocomm::boot {

// One launcher that the library knows.
enum class Launcher : std::uint8_t { none, zc_run, torchrun, slurm, open_mpi, hydra };
const char* launcher_name(
    Launcher launcher);  // "no launcher", "zc run", "torchrun", "Slurm", "Open MPI", "Hydra (MPICH)"

struct Launch {
  Launcher launcher = Launcher::none;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;         // 0: no launcher
  std::int32_t local_rank = 0;    // where the launcher does not tell: rank
  std::int32_t local_ranks = 0;   // where the launcher does not tell: ranks; fewer than ranks: several hosts
  std::string job;                // names the job among those of this user on this host; empty: no launcher
  std::string job_everywhere;     // the same, of what is equal on all hosts; empty: nothing is
  std::vector<std::string> used;  // "NAME=value" of the variables that decided, for printing
};

// Looks a variable up; nothing if unset or empty.
using Lookup = FunctionRef<std::optional<std::string>(const char*)>;

// Pure. zc run's variables win over all others, and torchrun's over those of a launcher around it, where
// TORCHELASTIC_RUN_ID tells that it was torchrun itself that set them; over Slurm's in any case. Slurm's count inside a
// step alone: a batch script has some too, and is no rank. A launcher whose variables are incomplete counts
// for nothing where another's are complete. Two that agree in rank and ranks: the earlier of enum Launcher.
//
// Throws Error(ARGUMENT): a value is no number or out of range (names the variable and its value), a launcher's
// variables are incomplete (names what is missing), or two launchers disagree (names both, with their variables).
//
// `parent` gives a text for the process that started the ranks, and is called only for a launcher that names no job.
Launch detect_launch(Lookup lookup, FunctionRef<std::string()> parent);

// Name of the process through which Hydra starts the ranks of one host: for ancestor_text.
inline constexpr const char* kHydraProcess = "hydra_pmi_proxy";

// "name:pid:start time" of the nearest ancestor of this process that is called `name`, else of its parent. Empty where
// neither can be seen.
std::string ancestor_text(const char* name);

}  // namespace zerocomm::boot
