#include "comm/program_cache.hpp"

#include <utility>

namespace zerocomm::comm {

KeptProgram ProgramCache::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = programs_.find(key);
  return found == programs_.end() ? KeptProgram{} : found->second;
}

KeptProgram ProgramCache::keep(const std::string& key, schedule::Program program, bool canonical) {
  auto made = std::make_shared<const schedule::Program>(std::move(program));
  const std::lock_guard lock(mutex_);
  return programs_.try_emplace(key, KeptProgram{std::move(made), canonical}).first->second;
}

}  // namespace zerocomm::comm
