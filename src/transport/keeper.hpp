// The keeper: one sleeping thread per process that stands for its ranks.
//
// It holds a robust futex word per communicator: when the thread ends, however the process ends, the kernel marks the
// word and wakes the keeper that watches it, before the process's memory is taken down. Each rank's keeper watches the
// next rank that has not left, so a death wakes exactly one keeper, and that one tells everybody.
#pragma once

#include "transport/control.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace zerocomm::transport {

class Keeper {
 public:
  // Called by the keeper's thread when a rank has ended without leaving. At most once per communicator and rank.
  using Lost = std::function<void(std::int32_t rank)>;

  // The keeper of this process: made with the first communicator of processes, joined with the last. Throws
  // Error(SYSTEM).
  static std::shared_ptr<Keeper> of_process();
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Begins to stand for `rank`; returns when the word is held.
  std::uint64_t stand_for(const Control& control, std::int32_t rank, Lost lost);
  // Ends it: the rank has left. Returns when `lost` does not run any more.
  void leave(std::uint64_t id);

 private:
  Keeper();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zerocomm::transport
