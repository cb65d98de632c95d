#include "comm/program_cache.hpp"

#include <utility>

namespace zerocomm::comm {

std::shared_ptr<const schedule::Program> ProgramCache::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = programs_.find(key);
  return found == programs_.end() ? nullptr : found->second;
}

std::shared_ptr<const schedule::Program> ProgramCache::keep(const std::string& key, schedule::Program program) {
  auto made = std::make_shared<const schedule::Program>(std::move(program));
  const std::lock_guard lock(mutex_);
  return programs_.try_emplace(key, std::move(made)).first->second;
}

}  // namespace zerocomm::comm
