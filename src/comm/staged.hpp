// The data phase of a call whose buffers not all ranks can reach: a pipeline through memory that they share.
//
// A rank's share of the vector, and what it sends to each other rank, is cut into rounds. In round k a rank fills a
// slot of its staging with what others need of it, takes what it needs out of theirs, and, where results are needed by
// others as well, leaves its result in a slot and collects those of the others. A rank fills round k before it takes
// round k - 1 and collects round k - 2, so that it does not wait for the others as soon as it has filled; the slots are
// used in turn, and there are as many as that takes. All together are small, and stay in cache.
#pragma once

#include "comm/operation.hpp"
#include "comm/posts.hpp"
#include "comm/selection.hpp"

#include <cstddef>

namespace zerocomm::comm {

class Staged {
 public:
  // `before`: how often this call has been counted in Post::filled already.
  Staged(const Comm& comm, const Operation& operation, const Posts& posts, device::Stores stores, std::size_t before);

  bool over() const { return action_ == Action::over; }
  bool ready() noexcept;
  // One action, which waits for nothing.
  void work() noexcept;
  // The rank that ready() waits for, and whether it is one that has filled.
  std::size_t awaited() const { return next_; }
  bool awaits_results() const { return action_ == Action::collect; }

 private:
  enum class Action : std::uint8_t { fill, take, collect, over };

  std::uint64_t wanted() const;
  void advance() noexcept;
  bool is_due(Action action) const;
  void tell(std::uint64_t count) noexcept;
  std::byte* input_slot(std::int32_t rank, std::size_t round) const;
  std::byte* output_slot(std::int32_t rank, std::size_t round) const;
  Part share(std::int32_t rank) const;
  Part piece_of(const Part& whole, std::size_t round) const;
  bool needs_results() const { return is_root_or_all_; }

  void fill(std::size_t round) noexcept;
  void take_copies(std::size_t round) noexcept;
  void take_reduction(std::size_t round) noexcept;
  void collect(std::size_t round) noexcept;

  const Comm* comm_;
  const Operation* operation_;
  Posts posts_;
  device::Stores stores_;
  bool copies_ = false;         // no reduction
  bool collects_ = false;       // results are needed by more than the rank that makes them
  bool is_root_or_all_ = true;  // this rank needs all results
  std::size_t before_ = 0;
  std::size_t lanes_ = 1;       // of an input slot
  std::size_t lane_count_ = 0;  // elements of a lane
  std::size_t lane_bytes_ = 0, slots_ = 0, slot_bytes_ = 0, output_bytes_ = 0;
  std::size_t rounds_ = 0;
  std::size_t turn_ = 0;  // fills round turn_, takes turn_ - 1, collects turn_ - 2
  Action action_ = Action::fill;
  std::size_t next_ = 0;  // ranks before it have what this one waits for
};

}  // namespace zerocomm::comm
