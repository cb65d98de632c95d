// The data phase of a call that a schedule moves: actions of schedule/program.hpp on the ranks' buffers.
//
// Where all ranks can reach all buffers, actions read and write them in place, and only scratch lies in staging. Else
// everything goes through staging: a piece of every chunk is copied in, the schedule runs on it, and its results are
// copied out. Long vectors take several rounds, so that what lies in staging fits.
#pragma once

#include "comm/operation.hpp"
#include "comm/posts.hpp"
#include "schedule/partition.hpp"
#include "schedule/program.hpp"

#include <memory>

namespace zerocomm::comm {

// A schedule made ready for one call of one rank.
struct MovePlan {
  std::shared_ptr<const schedule::Program> program;
  schedule::Partition partition;
};

class Scheduled {
 public:
  Scheduled(const Comm& comm, const Operation& operation, const Posts& posts);

  // UNSUPPORTED if not one element of every chunk fits into staging.
  zc_status check_fit() const noexcept;
  bool over() const { return stage_ == Stage::over; }
  bool ready() noexcept;
  void work(std::size_t slice_bytes) noexcept;
  // The rank that ready() waits for, and how many of its steps.
  schedule::Reached waits_for() const noexcept;

 private:
  enum class Stage : std::uint8_t { copy_in, act, drain, over };
  struct Slot {
    std::byte* address;
    std::size_t count;
  };

  const schedule::Program& program() const { return *operation_->plan->program; }
  const schedule::Partition& partition() const { return operation_->plan->partition; }
  std::span<const schedule::Reached> waits() const;
  Part range(std::uint32_t chunk) const;  // elements of a chunk in this round
  std::size_t own_offset(schedule::Buf buf, std::int32_t rank, std::uint32_t chunk) const;
  std::size_t slot(schedule::Buf buf, std::int32_t rank, std::uint32_t chunk) const;
  std::byte* place(std::int32_t rank, schedule::Buf buf, std::uint32_t chunk, bool raw) const;
  std::size_t element_bytes(bool raw) const;
  std::size_t act(const schedule::Action& action) noexcept;
  std::size_t act_on(const schedule::Action& action, std::uint32_t index) noexcept;
  void copy_in() noexcept;
  void copy_out() noexcept;
  void begin_round() noexcept;
  void advance_position(std::uint32_t steps) noexcept;

  const Comm* comm_;
  const Operation* operation_;
  Posts posts_;
  bool staged_ = false;
  std::size_t slot_bytes_ = 0;            // of one chunk in staging
  std::size_t most_ = 0;                  // elements of a chunk in one round
  std::size_t inputs_ = 0, outputs_ = 0;  // slots before those of outputs and of scratch, where staged
  std::size_t round_ = 0, rounds_ = 1;
  std::size_t next_ = 0;       // action
  std::size_t next_wait_ = 0;  // of it
  Stage stage_ = Stage::act;
};

}  // namespace zerocomm::comm
