// Work that any waiting call of the process may do: engines register what they can advance.
#pragma once

#include <zerocomm/comm.h>

#include <atomic>
#include <memory>

// The handle of one registration.
struct zc_progress {
  zc_progress_fn run = nullptr;
  bool (*work)(void*) = nullptr;  // instead of it: says whether there may be more to do at once
  void* context = nullptr;
  std::uint32_t generation = 0;  // of the process that registered it: nothing runs in its children
  const void* group = nullptr;   // control segment whose bells announce that there is something to do
  std::atomic<int> running{0};
  std::atomic<bool> removed{false};
  std::atomic<bool> quiet{false};  // nothing is to be done before this rank itself calls again
};

namespace zerocomm::comm {

zc_progress* add_progress(zc_progress_fn run, void* context, const void* group);

// The same for work of the library itself.
zc_progress* add_progress(bool (*work)(void*), void* context, const void* group);

// Returns when no call of it runs.
void remove_progress(zc_progress* handle) noexcept;

// What came of it.
struct Progress {
  bool foreign = false;  // some of it belongs to other groups: the bells of this group do not announce such work, so a
                         // waiting call looks again after a while
  bool more = false;     // there may be more to do at once
};
// Runs all registered functions once.
Progress run_progress(const void* group) noexcept;

}  // namespace zerocomm::comm
