// The command line of the example.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "job.hpp"

namespace gpt {

// Which job this process belongs to, and as whom. Without a text the launcher's variables say it.
struct JobId {
  std::string text;
  std::int32_t rank = -1;  // -1 and 0: not given
  std::int32_t ranks = 0;
};

struct Command {
  enum class Action { train, help, make_id };
  Action action = Action::train;
  JobOptions job;                 // its ranks count for threads alone
  bool threads = false;           // ranks are threads of this process
  JobId id;                       // of ranks that are processes
  std::string text_path;          // empty: the longest licence text of the system
  std::string json_path;          // empty: none
  std::optional<zc_stage> stage;  // none: the main job, all stages
};

extern const char* const kUsage;

// Throws std::runtime_error with one clear line.
Command parse_command(int argc, char** argv);

}  // namespace gpt
