// Work that any waiting call of the process may do: engines register what they can advance.
#pragma once

#include <zerocomm/comm.h>

#include <atomic>
#include <memory>

// The handle of one registration.
struct zc_progress {
  zc_progress_fn run = nullptr;
  void* context = nullptr;
  std::uint32_t generation = 0;  // of the process that registered it: nothing runs in its children
  const void* group = nullptr;   // control segment whose bells announce that there is something to do
  std::atomic<int> running{0};
  std::atomic<bool> removed{false};
};

namespace zerocomm::comm {

zc_progress* add_progress(zc_progress_fn run, void* context, const void* group);

// Returns when no call of it runs.
void remove_progress(zc_progress* handle) noexcept;

// Runs all registered functions once. Returns whether any belongs to another group than `group`: the bells of this
// group do not announce such work, so a waiting call looks again after a while.
bool run_progress(const void* group) noexcept;

}  // namespace zerocomm::comm
