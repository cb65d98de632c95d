// The data phase of a call, once all ranks agree: direct, in rounds through staging, or a local action of the caller.
//
// It can be done bit by bit: ready() says whether the next piece of work can be done, work() does it. Nothing here
// waits.
#pragma once

#include "comm/copies.hpp"
#include "comm/operation.hpp"
#include "comm/posts.hpp"
#include "comm/scheduled.hpp"
#include "comm/selection.hpp"
#include "comm/staged.hpp"

#include <optional>

namespace zerocomm::comm {

// About what a call moves before it looks at other calls.
inline constexpr std::size_t kSliceBytes = std::size_t{256} << 10;
// And before it looks whether somebody has left. A rank that was stopped meanwhile reads and writes no more of others'
// buffers than this, whoever has got them back.
inline constexpr std::size_t kMostSliceBytes = std::size_t{1} << 20;

// Does the call move data? And does it need staging whatever its buffers are?
bool moves_data(const Operation& operation);
bool always_stages(const Comm& comm, const Operation& operation);

class Transfer {
 public:
  // All ranks have posted, and agree. `local` replaces the moving of data: it runs directly, once.
  Transfer(Comm& comm, Operation& operation, const Posts& posts, FunctionRef<zc_status(const Peers&)>* local) noexcept;

  bool done() const { return stage_ == Stage::done; }
  bool ready() noexcept;
  // Moves at most about `slice_bytes` where the way can be cut. An error of the communicator, or MISMATCH.
  zc_status work(std::size_t slice_bytes) noexcept;
  // Several turns of work() are one slice.
  bool is_staged() const { return stage_ == Stage::rounds; }
  // The rank that ready() waits for, and a text about it.
  std::int32_t awaited() const noexcept;
  void blame(std::int32_t* culprit, char* text, std::size_t capacity_bytes) const noexcept;

 private:
  enum class Stage : std::uint8_t { fill_counts, compare_counts, move, others_move, rounds, follow, refused, done };

  zc_status compare_counts() noexcept;
  void choose_way() noexcept;
  bool someone_left() const noexcept;
  zc_status move_slice(std::size_t slice_bytes) noexcept;
  zc_status follow_schedule(std::size_t slice_bytes) noexcept;
  zc_status move_share(std::size_t slice_bytes, bool* done) noexcept;
  void expect_all(Stage stage) noexcept;

  Comm* comm_;
  Operation* operation_;
  Posts posts_;
  FunctionRef<zc_status(const Peers&)>* local_;
  Stage stage_ = Stage::move;
  std::size_t next_ = 0;  // of the ranks that are waited for, those before have done it
  Choice choice_;
  CopyCursor cursor_;              // of a pull
  std::size_t moved_ = 0;          // elements of this rank's share
  std::size_t counts_rounds_ = 0;  // rounds of staging before those of the data
  std::optional<Staged> staged_;
  std::optional<Scheduled> scheduled_;
};

// What the choice of a form depends on: a function of what all ranks posted, so all come to the same.
CallFacts facts_of(const Comm& comm, const Operation& operation, const Posts& posts) noexcept;

}  // namespace zerocomm::comm
