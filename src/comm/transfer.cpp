#include "comm/transfer.hpp"

#include "base/check.hpp"
#include "comm/fault.hpp"
#include "comm/reductions.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace zerocomm::comm {
namespace {

// This rank reads and writes other ranks' buffers while one of these lives.
class Reading {
 public:
  explicit Reading(std::atomic<std::uint32_t>& busy) : busy_(&busy) { busy_->fetch_add(1); }
  ~Reading() { busy_->fetch_sub(1); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  std::atomic<std::uint32_t>* busy_;
};

// Which buffers other ranks read, and which ones they may write. `call` is that of the rank.
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
  switch (static_cast<Collective>(call.collective)) {
    case Collective::reduce:
      return rank == call.root;
    case Collective::broadcast:
      return rank != call.root;
    default:
      return true;
  }
}

// The least that the ranks together read and write.
std::uint64_t least_traffic(const Operation& operation, std::uint64_t ranks) {
  const std::uint64_t in = operation.call.count * zc_dtype_bytes(operation.dtype()),
                      out = operation.call.count * zc_dtype_bytes(operation.output_dtype());
  switch (operation.collective()) {
    case Collective::all_reduce:
      return ranks * (in + out);
    case Collective::reduce:
    case Collective::reduce_scatter_v:
      return ranks * in + out;
    case Collective::reduce_scatter:
      return ranks * (ranks * in + out);
    case Collective::all_gather:
      return ranks * (ranks + 1) * in;
    case Collective::all_gather_v:
      return (ranks + 1) * in;
    case Collective::broadcast:
      return ranks * in;
    case Collective::all_to_all:
      return 2 * ranks * ranks * in;
    default:
      return 2 * ranks * in;
  }
}

bool exchanges(Collective collective) {
  return collective == Collective::all_to_all || collective == Collective::all_to_all_v;
}

// In place, the blocks of two ranks change places: nobody can read a block that its owner has written already.
bool swaps(const transport::CallRecord& call) {
  return call.in_place == 1 && exchanges(static_cast<Collective>(call.collective));
}

const Selection& selection_of(const Comm& comm, const Operation& operation) {
  static const Selection built_in;
  return operation.call.schedule == transport::CallRecord::kByTable ? built_in : comm.settings().selection;
}

}  // namespace

bool moves_data(const Operation& operation) {
  return is_copy(operation.collective()) || is_reduction(operation.collective());
}

bool always_stages(const Comm& comm, const Operation& operation) {
  return operation.collective() == Collective::all_to_all_v || swaps(operation.call) ||
         (comm.ranks() > 1 && moves_data(operation) &&
          selection_of(comm, operation).forces_staging(operation.collective()));
}

CallFacts facts_of(const Comm& comm, const Operation& operation, const Posts& posts) noexcept {
  CallFacts facts;
  facts.collective = operation.collective();
  facts.ranks = static_cast<std::uint64_t>(comm.ranks());
  facts.moved_bytes = least_traffic(operation, facts.ranks);
  facts.is_skewed = operation.counts != nullptr && operation.collective() != Collective::all_to_all_v &&
                    is_skewed(blocks_of(operation, comm.ranks()), facts.ranks);
  facts.sources_shared = facts.results_shared = true;
  for (std::size_t i = 0; i < posts.count(); ++i) {
    const std::int32_t rank = posts.rank(i);
    const transport::Post& post = posts.of(rank);
    facts.swaps = facts.swaps || swaps(post.call);  // of any rank: one with nothing to exchange is in no place
    facts.in_place = facts.in_place || post.call.in_place == 1;
    if (touches_send(post.call, rank)) {
      if (!comm.group().is_shared(post.send)) {
        facts.sources_shared = false;
        facts.most_private_bytes = std::max(facts.most_private_bytes, post.send.bytes);
      }
    }
    if (touches_recv(post.call, rank)) facts.results_shared = facts.results_shared && comm.group().is_shared(post.recv);
  }
  facts.sources_readable = is_copy(operation.collective()) && comm.group().can_read_private();
  return facts;
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
  } else if (local_ != nullptr) {
    stage_ = Stage::move;
  } else {
    if (comm_->ranks() == 1)
      choice_.form = Form::pull;  // of itself: nothing to choose
    else
      choice_ = selection_of(*comm_, *operation_).choose(facts_of(*comm_, *operation_, posts_));
    if (choice_.obstacle != nullptr) {
      stage_ = Stage::refused;
    } else if (choice_.form != Form::staged) {
      stage_ = Stage::move;
    } else {
      staged_.emplace(*comm_, *operation_, posts_, choice_.stores, counts_rounds_);
      stage_ = staged_->over() ? Stage::done : Stage::rounds;
    }
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
    case Stage::rounds:
      return staged_->ready();
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
      counts_rounds_ = 1;
      posts_.own().filled.store(1);
      step("filled");
      comm_->control().ring_all();
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
    case Stage::rounds:
      staged_->work();
      if (staged_->over()) stage_ = Stage::done;
      return ZC_OK;
    case Stage::refused:
      return fail(ZC_UNSUPPORTED, "rank %d: ZC_ALGO asks for the form %s, which cannot be had for %s: %s",
                  comm_->rank(), form_name(choice_.form), describe(operation_->call).c_str(), choice_.obstacle);
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
  const bool copies = is_copy(operation_->collective());
  if (copies && choice_.form == Form::pull)
    return copy_slice(*comm_, *operation_, peers, choice_.stores, &cursor_, slice_bytes, done);
  const Part share = copies ? spread_share(*operation_, comm_->ranks(), comm_->rank())
                            : reduced_share(*operation_, choice_.form, comm_->ranks(), comm_->rank());
  const std::size_t now =
      std::min(share.count - moved_, std::max<std::size_t>(slice_bytes / zc_dtype_bytes(operation_->dtype()), 1));
  if (copies)
    spread_copies(*comm_, *operation_, peers, choice_.stores, share.offset + moved_, now);
  else
    reduce_elements(*comm_, *operation_, peers, choice_.stores, share.offset + moved_, now);
  moved_ += now;
  *done = moved_ == share.count;
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
    if (!died) moved = move_share(std::min(slice_bytes, kMostSliceBytes), &over);
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
  const std::size_t next = stage_ == Stage::rounds ? staged_->awaited() : next_;
  return posts_.rank(std::min(next, posts_.count() - 1));
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
  const bool awaits_share = stage_ == Stage::others_move || (stage_ == Stage::rounds && staged_->awaits_results());
  const char* const missing = awaits_share ? "finished its share of" : "filled its staging for";
  std::snprintf(text, capacity_bytes, "rank %d has not %s %s, %s", *culprit, missing, posts_.name().c_str(),
                describe(operation_->call).c_str());
}

}  // namespace zerocomm::comm
