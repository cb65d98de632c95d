#include "comm/progress.hpp"

#include "base/fork.hpp"

#include <mutex>
#include <thread>
#include <vector>

namespace zerocomm::comm {
namespace {

using Entry = std::shared_ptr<zc_progress>;
using Entries = std::vector<Entry>;

// The list is replaced, never changed, so that it can be walked without the lock.
std::mutex list_mutex;
std::shared_ptr<const Entries> list = std::make_shared<const Entries>();

std::shared_ptr<const Entries> current_list() {
  const std::lock_guard lock(list_mutex);
  return list;
}

}  // namespace

zc_progress* add_progress(zc_progress_fn run, void* context, const void* group) {
  auto entry = std::make_shared<zc_progress>();
  entry->run = run;
  entry->context = context;
  entry->group = group;
  entry->generation = fork_generation();
  const std::lock_guard lock(list_mutex);
  auto longer = std::make_shared<Entries>(*list);
  longer->push_back(entry);
  list = std::move(longer);
  return entry.get();
}

void remove_progress(zc_progress* handle) noexcept {
  Entry kept;  // alive until nobody runs it
  {
    const std::lock_guard lock(list_mutex);
    auto shorter = std::make_shared<Entries>();
    for (const Entry& entry : *list) (entry.get() == handle ? kept : shorter->emplace_back()) = entry;
    list = std::move(shorter);
  }
  if (!kept) return;
  kept->removed.store(true);
  while (kept->running.load() != 0) std::this_thread::yield();
}

bool run_progress(const void* group) noexcept {
  bool foreign = false;
  const std::shared_ptr<const Entries> entries = current_list();  // kept while it is walked
  for (const Entry& entry : *entries) {
    if (entry->generation != fork_generation()) continue;
    entry->running.fetch_add(1);
    if (!entry->removed.load()) {
      entry->run(entry->context);
      foreign = foreign || entry->group != group;
    }
    entry->running.fetch_sub(1);
  }
  return foreign;
}

}  // namespace zerocomm::comm
