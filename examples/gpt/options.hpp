// The command line of the example.
#pragma once

#include <optional>
#include <string>

#include "job.hpp"

namespace gpt {

struct Command {
  JobOptions job;
  std::string text_path;          // empty: the longest licence text of the system
  std::string json_path;          // empty: none
  std::optional<zc_stage> stage;  // none: the main job, all stages
  bool help = false;
};

extern const char* const kUsage;

// Throws std::runtime_error with one clear line.
Command parse_command(int argc, char** argv);

}  // namespace gpt
