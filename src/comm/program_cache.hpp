// Schedules that have moved data for a communicator, made ready to do so again.
#pragma once

#include "schedule/program.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace zerocomm::comm {

// The programs of one rank's communicator. Threads: any.
class ProgramCache {
 public:
  std::shared_ptr<const schedule::Program> find(const std::string& key) const;
  std::shared_ptr<const schedule::Program> keep(const std::string& key, schedule::Program program);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const schedule::Program>> programs_;
};

}  // namespace zerocomm::comm
