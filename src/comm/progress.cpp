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

zc_progress* add(zc_progress_fn run, bool (*work)(void*), void* context, const void* group) {
  auto entry = std::make_shared<zc_progress>();
  entry->run = run;
  entry->work = work;
  entry->context = context;
  entry->group = group;
  entry->generation = fork_generation();
  const std::lock_guard lock(list_mutex);
  auto longer = std::make_shared<Entries>(*list);
  longer->push_back(entry);
  list = std::move(longer);
  return entry.get();
}

}  // namespace

zc_progress* add_progress(zc_progress_fn run, void* context, const void* group) {
  return add(run, nullptr, context, group);
}

zc_progress* add_progress(bool (*work)(void*), void* context, const void* group) {
  return add(nullptr, work, context, group);
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

Progress run_progress(const void* group) noexcept {
  Progress result;
  const std::shared_ptr<const Entries> entries = current_list();  // kept while it is walked
  for (const Entry& entry : *entries) {
    if (entry->generation != fork_generation()) continue;
    entry->running.fetch_add(1);
    if (!entry->removed.load()) {
      if (entry->work != nullptr)
        result.more = entry->work(entry->context) || result.more;
      else
        entry->run(entry->context);
      result.foreign = result.foreign || (entry->group != group && !entry->quiet.load());
    }
    entry->running.fetch_sub(1);
  }
  return result;
}

}  // namespace zerocomm::comm
