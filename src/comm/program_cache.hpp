// Schedules that have moved data for a communicator, made ready to do so again.
#pragma once

#include "schedule/program.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace zerocomm::comm {

// A schedule of one rank's lane, and whether its bits are those of all canonical schedules.
struct KeptProgram {
  std::shared_ptr<const schedule::Program> program;  // empty: none is kept
  bool canonical = false;
};

// The programs of one rank's communicator, by what they were made from. Threads: any.
class ProgramCache {
 public:
  KeptProgram find(const std::string& key) const;
  KeptProgram keep(const std::string& key, schedule::Program program, bool canonical);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, KeptProgram> programs_;
};

}  // namespace zerocomm::comm
