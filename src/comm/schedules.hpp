// Which schedule moves the data of a call: options in, a plan out. Plans' programs are made once and kept.
#pragma once

#include "comm/comm.hpp"
#include "comm/operation.hpp"
#include "schedule/step.hpp"

namespace zerocomm::comm {

// What the caller wants moved by which schedule. Neither: the native form.
struct ScheduleChoice {
  const char* algorithm = nullptr;               // of the catalogue
  const schedule::Schedule* schedule = nullptr;  // the caller's own
  bool reproducible = true;
};

// Gives the operation its plan, and names it in the call's record. Throws Error: ARGUMENT, UNSUPPORTED with the reason.
void choose_schedule(const Comm& comm, Operation& operation, const ScheduleChoice& choice);

}  // namespace zerocomm::comm
