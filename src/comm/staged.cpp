#include "comm/staged.hpp"

#include "comm/copies.hpp"
#include "comm/copy_leaf.hpp"
#include "comm/fault.hpp"
#include "comm/reductions.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace zerocomm::comm {
namespace {

// A rank that fills round k has seen that all have filled round k - 2 and so have taken round k - 4. One that also
// collects has seen all results of round k - 3.
constexpr std::size_t kSlots = 4, kCollectedSlots = 3;

}  // namespace

Staged::Staged(const Comm& comm, const Operation& operation, const Posts& posts, device::Stores stores,
               std::size_t before)
    : comm_(&comm), operation_(&operation), posts_(posts), stores_(stores), before_(before) {
  const std::int32_t ranks = comm.ranks();
  const std::size_t bytes = 2 * posts.half_bytes(), in_bytes = zc_dtype_bytes(operation.dtype()),
                    line = kLineBytes / in_bytes;
  copies_ = is_copy(operation.collective());
  std::size_t longest = 0;
  if (copies_) {
    lanes_ = lanes(operation, ranks);
    longest = longest_lane(operation, ranks);
  } else {
    lanes_ = index(ranks);
    for (std::int32_t rank = 0; rank < ranks; ++rank) longest = std::max(longest, share(rank).count);
    collects_ = !scatters(operation);
    is_root_or_all_ = operation.collective() != Collective::reduce || comm.rank() == operation.call.root;
  }
  slots_ = collects_ ? kCollectedSlots : kSlots;
  const std::size_t out_bytes = collects_ ? zc_dtype_bytes(operation.output_dtype()) : 0;
  const std::size_t most = bytes / (slots_ * (lanes_ * in_bytes + out_bytes));
  const std::size_t lined = most >= line ? most / line * line : most;
  // Rounds of one size.
  rounds_ = ceil_div(longest, lined);
  if (rounds_ == 0) {
    action_ = Action::over;
    return;
  }
  lane_count_ = std::min(lined, ceil_div(ceil_div(longest, rounds_), line) * line);
  lane_bytes_ = lane_count_ * in_bytes;
  output_bytes_ = lane_count_ * out_bytes;
  slot_bytes_ = lanes_ * lane_bytes_;
}

std::byte* Staged::input_slot(std::int32_t rank, std::size_t round) const {
  // What was said before the first round lies in the first slot, and is read until all have filled that round.
  return posts_.half(rank, 0) + (before_ + round) % slots_ * slot_bytes_;
}

std::byte* Staged::output_slot(std::int32_t rank, std::size_t round) const {
  return posts_.half(rank, 0) + slots_ * slot_bytes_ + round % slots_ * output_bytes_;
}

Part Staged::share(std::int32_t rank) const { return reduced_share(*operation_, Form::staged, comm_->ranks(), rank); }

Part Staged::piece_of(const Part& whole, std::size_t round) const {
  const std::size_t first = std::min(round * lane_count_, whole.count);
  return {whole.offset + first, std::min(lane_count_, whole.count - first)};
}

// Post::filled after an action: where nobody collects it counts rounds that are filled, else it goes up with each fill
// and each take.
std::uint64_t Staged::wanted() const {
  if (action_ == Action::take) return before_ + (collects_ ? 2 * turn_ - 1 : turn_);
  return before_ + 2 * turn_;
}

bool Staged::is_due(Action action) const {
  switch (action) {
    case Action::fill:
      return turn_ < rounds_;
    case Action::take:
      return turn_ >= 1 && turn_ - 1 < rounds_;
    case Action::collect:
      return collects_ && turn_ >= 2;
    case Action::over:
      break;
  }
  return true;
}

void Staged::advance() noexcept {
  next_ = 0;
  do {
    switch (action_) {
      case Action::fill:
        action_ = Action::take;
        break;
      case Action::take:
        action_ = Action::collect;
        break;
      default:
        ++turn_;
        action_ = turn_ == rounds_ + (collects_ ? 2 : 1) ? Action::over : Action::fill;
        break;
    }
  } while (!is_due(action_));
}

bool Staged::ready() noexcept {
  if (action_ == Action::fill || action_ == Action::over) return true;
  while (next_ < posts_.count() && posts_.of(posts_.rank(next_)).filled.load() >= wanted()) ++next_;
  return next_ == posts_.count();
}

void Staged::tell(std::uint64_t count) noexcept {
  posts_.own().filled.store(before_ + count);
  step("filled");
  comm_->control().ring_all();
}

void Staged::work() noexcept {
  switch (action_) {
    case Action::fill:
      step("free half");
      fill(turn_);
      tell(collects_ ? 2 * turn_ + 1 : turn_ + 1);
      break;
    case Action::take:
      step("all filled");
      if (copies_)
        take_copies(turn_ - 1);
      else
        take_reduction(turn_ - 1);
      if (collects_) tell(2 * turn_ + 2);
      step("drained");
      break;
    case Action::collect:
      step("all reduced");
      collect(turn_ - 2);
      step("collected");
      break;
    case Action::over:
      return;
  }
  advance();
}

void Staged::fill(std::size_t round) noexcept {
  const std::int32_t self = comm_->rank();
  std::byte* const slot = input_slot(self, round);
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    // What a rank sends to itself is read where it lies.
    if (lane == index(self) && (!copies_ || has_lane_per_rank(operation_->collective()))) continue;
    const Part whole = copies_ ? outgoing(*operation_, comm_->ranks(), self, lane) : share(static_cast<int>(lane));
    if (const Part now = piece_of(whole, round); now.count != 0)
      std::memcpy(slot + lane * lane_bytes_, at(operation_->send, now.offset, operation_->dtype()),
                  now.count * zc_dtype_bytes(operation_->dtype()));
  }
}

void Staged::take_copies(std::size_t round) noexcept {
  const std::int32_t ranks = comm_->ranks(), self = comm_->rank();
  for (std::int32_t turn = 0; turn < ranks; ++turn) {
    const std::int32_t peer = (self + turn) % ranks;
    const Incoming block = incoming(*operation_, ranks, self, peer);
    const Part now = piece_of({block.source_offset, block.count}, round);
    if (now.count == 0) continue;
    const std::byte* const source = peer == self ? at(operation_->send, now.offset, operation_->dtype())
                                                 : input_slot(peer, round) + block.lane * lane_bytes_;
    void* const output =
        at(operation_->recv, block.destination_offset + (now.offset - block.source_offset), operation_->dtype());
    copy_over_ranks(*comm_, {source, peer, &output, &self, 1, now.count * zc_dtype_bytes(operation_->dtype()), stores_,
                             operation_->traffic});
  }
}

void Staged::take_reduction(std::size_t round) noexcept {
  const std::int32_t self = comm_->rank();
  const Part whole = share(self), now = piece_of(whole, round);
  if (now.count == 0) return;
  std::array<const void*, kMostRanks> inputs;
  for (std::int32_t rank = 0; rank < comm_->ranks(); ++rank)
    inputs[index(rank)] = input_slot(rank, round) + index(self) * lane_bytes_;
  inputs[index(self)] = at(operation_->send, now.offset, operation_->dtype());
  std::array<void*, 2> outputs;
  const std::array<std::int32_t, 2> output_ranks = {self, self};
  std::size_t output_count = 0;
  if (needs_results())
    outputs[output_count++] =
        at(operation_->recv, collects_ ? now.offset : now.offset - whole.offset, operation_->output_dtype());
  if (collects_ && !(needs_results() && operation_->collective() == Collective::reduce))
    outputs[output_count++] = output_slot(self, round);
  // What lies in staging is read at once: it must not pass by the cache.
  reduce_to(*comm_, *operation_, inputs.data(), outputs.data(), output_ranks.data(), output_count, now.count,
            collects_ ? device::Stores::cached : stores_);
}

void Staged::collect(std::size_t round) noexcept {
  if (!needs_results()) return;
  const std::int32_t self = comm_->rank();
  for (std::int32_t turn = 1; turn < comm_->ranks(); ++turn) {
    const std::int32_t peer = (self + turn) % comm_->ranks();
    const Part now = piece_of(share(peer), round);
    void* const output = at(operation_->recv, now.offset, operation_->output_dtype());
    copy_over_ranks(*comm_, {output_slot(peer, round), peer, &output, &self, 1,
                             now.count * zc_dtype_bytes(operation_->output_dtype()), stores_, operation_->traffic});
  }
}

}  // namespace zerocomm::comm
