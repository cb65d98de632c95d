#include "comm/transfer.hpp"

#include "base/check.hpp"
#include "comm/fault.hpp"
#include "comm/reductions.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace zerocomm::comm {
namespace {

// This rank reads other ranks' buffers while one of these lives.
class Reading {
 public:
  explicit Reading(std::atomic<std::uint32_t>& busy) : busy_(&busy) { busy_->fetch_add(1); }
  ~Reading() { busy_->fetch_sub(1); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  std::atomic<std::uint32_t>* busy_;
};

// From here on a buffer is worth a system call per peer.
constexpr std::uint64_t kLeastPrivateRead = std::uint64_t{128} << 10;

// Which buffers other ranks touch when data moves directly. `call` is that of the rank.
bool touches_send(const transport::CallRecord& call, std::int32_t rank) {
  switch (static_cast<Collective>(call.collective)) {
    case Collective::broadcast:
    case Collective::scatter_from_root:
      return rank == call.root;
    case Collective::recv:
      return false;
    default:
      return true;
  }
}
bool touches_recv(const transport::CallRecord& call, std::int32_t rank) {
  const auto collective = static_cast<Collective>(call.collective);
  return collective == Collective::all_reduce || (collective == Collective::reduce && rank == call.root);
}

bool exchanges(Collective collective) {
  return collective == Collective::all_to_all || collective == Collective::all_to_all_v;
}

// In place, the blocks of two ranks change places: nobody can read a block that its owner has written already.
bool swaps(const transport::CallRecord& call) {
  return call.in_place == 1 && exchanges(static_cast<Collective>(call.collective));
}

}  // namespace

bool moves_data(const Operation& operation) {
  return is_copy(operation.collective()) || is_reduction(operation.collective());
}

bool always_stages(const Operation& operation) {
  return operation.collective() == Collective::all_to_all_v || swaps(operation.call);
}

bool can_move_directly(const Comm& comm, const Operation& operation, const Posts& posts) noexcept {
  if (comm.ranks() == 1) return true;
  std::uint64_t most_bytes = 0;
  bool all_shared = true;
  for (std::size_t i = 0; i < posts.count(); ++i) {
    const std::int32_t rank = posts.rank(i);
    const transport::Post& post = posts.of(rank);
    if (swaps(post.call)) return false;  // of any rank: one with nothing to exchange is in no place
    if (touches_send(post.call, rank) && !comm.group().is_shared(post.send)) {
      all_shared = false;
      most_bytes = std::max(most_bytes, post.send.bytes);
    }
    if (touches_recv(post.call, rank) && !comm.group().is_shared(post.recv)) return false;
  }
  return all_shared ||
         (is_copy(operation.collective()) && most_bytes >= kLeastPrivateRead && comm.group().can_read_private());
}

Transfer::Transfer(Comm& comm, Operation& operation, const Posts& posts,
                   FunctionRef<zc_status(const Peers&)>* local) noexcept
    : comm_(&comm), operation_(&operation), posts_(posts), local_(local) {
  if (operation.collective() == Collective::all_to_all_v)
    stage_ = Stage::fill_counts;
  else
    choose_way();
}

void Transfer::choose_way() noexcept {
  if (local_ == nullptr && operation_->plan == nullptr && !moves_data(*operation_)) {
    stage_ = Stage::done;
  } else if (operation_->plan != nullptr) {
    scheduled_.emplace(*comm_, *operation_, posts_);
    stage_ = Stage::follow;
  } else if (local_ != nullptr || can_move_directly(*comm_, *operation_, posts_)) {
    stage_ = Stage::move;
  } else {
    rounds_ = is_copy(operation_->collective()) ? copy_rounds(*operation_, comm_->ranks(), posts_.half_bytes())
                                                : reduction_rounds(*operation_, comm_->ranks(), posts_.half_bytes());
    stage_ = rounds_ == 0 ? Stage::done : Stage::fill;
  }
}

void Transfer::expect_all(Stage stage) noexcept {
  stage_ = stage;
  next_ = 0;
}

bool Transfer::ready() noexcept {
  const auto all = [&](auto&& there) {
    while (next_ < posts_.count() && there(posts_.of(posts_.rank(next_)))) ++next_;
    return next_ == posts_.count();
  };
  switch (stage_) {
    case Stage::others_move:
      return all([](const transport::Post& post) { return post.finished.load() != 0; });
    case Stage::compare_counts:
      return all([](const transport::Post& post) { return post.filled.load() != 0; });
    case Stage::read:
      return all([&](const transport::Post& post) { return post.filled.load() > counts_rounds_ + round_; });
    case Stage::follow:
      return scheduled_->ready();
    default:
      return true;
  }
}

zc_status Transfer::work(std::size_t slice_bytes) noexcept {
  switch (stage_) {
    case Stage::fill_counts: {
      std::byte* const half = posts_.half(comm_->rank(), 0);
      const std::size_t bytes = static_cast<std::size_t>(comm_->ranks()) * sizeof(std::size_t);
      std::memcpy(half, operation_->counts, bytes);
      std::memcpy(half + bytes, operation_->recv_counts, bytes);
      fill_round();
      counts_rounds_ = 1;
      expect_all(Stage::compare_counts);
      return ZC_OK;
    }
    case Stage::compare_counts:
      ZC_TRY(compare_counts());
      choose_way();
      return ZC_OK;
    case Stage::move:
      return move_slice(slice_bytes);
    case Stage::others_move:
      stage_ = Stage::done;
      return ZC_OK;
    case Stage::fill: {
      step("free half");
      std::byte* const half = posts_.half(comm_->rank(), counts_rounds_ + round_);
      if (is_copy(operation_->collective()))
        fill_copies(*comm_, *operation_, round_, half, posts_.half_bytes());
      else
        fill_reduction(*comm_, *operation_, round_, half, posts_.half_bytes());
      fill_round();
      expect_all(Stage::read);
      return ZC_OK;
    }
    case Stage::read:
      step("all filled");
      if (is_copy(operation_->collective()))
        read_copies(*comm_, *operation_, posts_, round_, counts_rounds_ + round_);
      else
        read_reduction(*comm_, *operation_, posts_, round_, counts_rounds_ + round_);
      step("drained");
      stage_ = ++round_ == rounds_ ? Stage::done : Stage::fill;
      return ZC_OK;
    case Stage::follow:
      return follow_schedule(slice_bytes);
    case Stage::done:
      break;
  }
  return ZC_OK;
}

// Actions read other ranks' buffers, and look for errors as move_slice does.
zc_status Transfer::follow_schedule(std::size_t slice_bytes) noexcept {
  ZC_TRY(scheduled_->check_fit());
  bool died = false;
  {
    const Reading reading(comm_->own_block().busy);
    died = comm_->dead() || someone_left();
    if (!died) scheduled_->work(slice_bytes);
    died = died || comm_->dead() || someone_left();
  }
  if (died) return comm_->check_alive();
  if (!scheduled_->over()) return ZC_OK;
  posts_.own().finished.store(1);
  step("finished");
  stage_ = Stage::done;
  return ZC_OK;
}

void Transfer::fill_round() noexcept {
  posts_.own().filled.store(counts_rounds_ + round_ + 1);
  step("filled");
  comm_->control().ring_all();
}

// What each rank sends to each, against what each expects. All ranks see all numbers, so all come to the same.
zc_status Transfer::compare_counts() noexcept {
  const auto ranks = static_cast<std::size_t>(comm_->ranks()), self = static_cast<std::size_t>(comm_->rank());
  const auto number = [&](std::size_t rank, std::size_t index) {
    std::size_t value = 0;
    std::memcpy(&value, posts_.half(static_cast<std::int32_t>(rank), 0) + index * sizeof value, sizeof value);
    return value;
  };
  operation_->longest = 0;
  for (std::size_t from = 0; from < ranks; ++from) {
    std::size_t offset = 0;
    for (std::size_t to = 0; to < ranks; ++to) {
      const std::size_t sent = number(from, to), expected = number(to, ranks + from);
      if (sent != expected) {
        Counters::add(comm_->counters().mismatches, 1);
        return fail(ZC_MISMATCH,
                    "%s: zc_all_to_all_v: rank %zu sends %zu elements to rank %zu, which expects %zu (this is "
                    "rank %zu)",
                    posts_.name().c_str(), from, sent, to, expected, self);
      }
      if (to == self) operation_->source_offsets[from] = offset;
      offset += sent;
      operation_->longest = std::max(operation_->longest, sent);
    }
  }
  return ZC_OK;
}

zc_status Transfer::move_share(std::size_t slice_bytes, bool* done) noexcept {
  const Peers peers(*comm_, posts_);
  if (local_ != nullptr) {
    *done = true;
    return (*local_)(peers);
  }
  if (is_copy(operation_->collective())) return copy_slice(*comm_, *operation_, peers, &cursor_, slice_bytes, done);
  const std::size_t count = own_share(*operation_, comm_->ranks(), comm_->rank()).count;
  const std::size_t now =
      std::min(count - reduced_, std::max<std::size_t>(slice_bytes / zc_dtype_bytes(operation_->dtype()), 1));
  reduce_share(*comm_, *operation_, peers, reduced_, now);
  reduced_ += now;
  *done = reduced_ == count;
  return ZC_OK;
}

// A rank that has gone with the call unfinished has given its buffers back. Of a schedule, one that has finished has
// also seen that nobody needs them any more; elsewhere it waits for all to finish.
bool Transfer::someone_left() const noexcept {
  for (std::size_t i = 0; i < posts_.count(); ++i) {
    const std::int32_t rank = posts_.rank(i);
    if (comm_->control().rank(rank).detached.load() == 0) continue;
    if (stage_ == Stage::follow && posts_.of(rank).finished.load() != 0) continue;
    comm_->record_first_error(ZC_PEER_LOST, format("rank %d has destroyed its communicator in the middle of %s, %s",
                                                   rank, posts_.name().c_str(), describe(operation_->call).c_str())
                                                .c_str());
    return true;
  }
  return false;
}

// Moves a part of this rank's share directly.
zc_status Transfer::move_slice(std::size_t slice_bytes) noexcept {
  bool died = false, over = false;
  zc_status moved = ZC_OK;
  {
    // Announced first, then checked: a rank that has returned an error sees us and waits, or we see its error.
    const Reading reading(comm_->own_block().busy);
    died = comm_->dead() || someone_left();
    step("reading");
    if (!died) moved = move_share(slice_bytes, &over);
    // Once more: others may have been told of an error while this rank was stopped in the middle, and have written
    // again what it read.
    died = died || comm_->dead() || someone_left();
    step("read");
  }
  ZC_TRY(moved);
  if (died) return comm_->check_alive();
  if (!over) return ZC_OK;
  posts_.own().finished.store(1);
  step("finished");
  comm_->control().ring_all();
  expect_all(Stage::others_move);
  return ZC_OK;
}

std::int32_t Transfer::awaited() const noexcept {
  if (stage_ == Stage::follow) return static_cast<std::int32_t>(scheduled_->waits_for().rank);
  return posts_.rank(std::min(next_, posts_.count() - 1));
}

void Transfer::blame(std::int32_t* culprit, char* text, std::size_t capacity_bytes) const noexcept {
  if (stage_ == Stage::follow) {
    const schedule::Reached wait = scheduled_->waits_for();
    *culprit = static_cast<std::int32_t>(wait.rank);
    std::snprintf(text, capacity_bytes, "rank %d has not done step %u of the schedule for %s, %s", *culprit, wait.step,
                  posts_.name().c_str(), describe(operation_->call).c_str());
    return;
  }
  *culprit = awaited();
  const char* const missing = stage_ == Stage::others_move ? "finished its share of" : "filled its staging for";
  std::snprintf(text, capacity_bytes, "rank %d has not %s %s, %s", *culprit, missing, posts_.name().c_str(),
                describe(operation_->call).c_str());
}

}  // namespace zerocomm::comm
