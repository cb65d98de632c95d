// Schedules as readable text that can be diffed, and back.
//
//   schedule all_reduce direct ranks=2 root=0 chunks=2 lanes=1 scratch=0
//   rank 0
//   lane 0
//     send to=1 input[1]
//     copy input[0] -> output[0] hold
//     recv_reduce from=1 output[0]
//     send to=1 output[0]
//     recv from=1 output[1]
//   rank 1
//   ...
// Ranges are [first] or [first..last]; `none` is a message without data. Other words: hold, codec=N, wait=LANE:STEP.
// The first line may end with loss=N. Empty lines and lines that start with # are skipped.
#pragma once

#include "schedule/step.hpp"

#include <string>
#include <string_view>

namespace zerocomm::schedule {

const char* collective_name(Collective collective);
const char* op_name(Op op);

// One step, without indent or line end.
std::string step_text(const Step& step);

// "rank 1 lane 0 step 3 `recv from=0 output[2]`".
std::string place_text(const Schedule& schedule, StepRef at);

std::string to_text(const Schedule& schedule);

// Throws ARGUMENT naming the line. What it accepts need not be a correct schedule: see verify.hpp.
Schedule from_text(std::string_view text);

}  // namespace zerocomm::schedule
