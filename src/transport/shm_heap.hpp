// The allocations of one rank in a shared arena. A communicator and all that are split from it take memory from the
// same heap, so that what one of them gives back another can have.
#pragma once

#include "transport/control.hpp"
#include "transport/group.hpp"
#include "transport/shm_arena.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace zerocomm::transport {

class ShmHeap {
 public:
  // How many allocations somebody has made and still uses: for the ledger.
  using Count = std::shared_ptr<std::atomic<std::size_t>>;

  // `root` is the control segment at the beginning of the arena: it hands out places to all ranks.
  ShmHeap(std::shared_ptr<ShmArena> arena, const Control& root) : arena_(std::move(arena)), root_(root) {}
  ShmHeap(const ShmHeap&) = delete;
  ShmHeap& operator=(const ShmHeap&) = delete;

  const ShmArena& arena() const { return *arena_; }

  // Zeroed memory, whole pages. It is given back by the last of its users, whichever rank that is. `own` may be
  // nullptr. Throws Error(NO_MEMORY).
  std::shared_ptr<Segment> allocate(std::size_t bytes, const char* purpose, const Count& own);

  // Where the header of the allocation lies that `segment` holds; 0 if it holds none.
  static std::uint64_t header_of(const Segment& segment);
  // `segment` begins with the control segment of a group, all of whose ranks use it.
  void mark_core(const Segment& segment) const;
  // The group's core, and where it has none the arena, uses this allocation as well: it stays as long as the last of
  // the group's ranks. The control segment names it as the staging of a rank's requests.
  void leave_to_core(const Segment& segment) const;
  // One more user of another rank's allocation; nullptr if it has no user any more.
  std::shared_ptr<void> use(std::uint64_t header_offset) const;

 private:
  struct Place {
    std::uint64_t offset = 0;  // of the header page
    std::uint64_t bytes = 0;   // header page included
  };
  bool is_free(const Place& place) const;
  Place find_place(std::uint64_t bytes, bool* is_new);

  std::shared_ptr<ShmArena> arena_;
  Control root_;
  std::mutex mutex_;
  std::vector<Place> places_;  // everything this rank has ever taken; free again when nobody uses it
};

}  // namespace zerocomm::transport
