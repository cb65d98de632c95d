// Lists in Slurm's variables. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zerocomm::boot {

// SLURM_STEP_TASKS_PER_NODE: "2(x3),1" are nodes with 2, 2, 2 and 1 tasks.
struct SlurmTasks {
  std::int64_t nodes = 0, tasks = 0;
  std::int32_t on_node = 0;  // tasks of the node that was asked for; 0: there is no such node
};
// Nothing if the text is none of these.
std::optional<SlurmTasks> slurm_tasks(std::string_view text, std::int64_t node);

// The first of SLURM_STEP_NODELIST: "node[003-005,7],login" begins with "node003". Empty: no such list.
std::string slurm_first_host(std::string_view text);

// The first of SLURM_STEP_RESV_PORTS: "12000-12003" begins with 12000.
std::optional<std::uint16_t> slurm_first_port(std::string_view text);

}  // namespace zerocomm::boot
