// The algorithm "circulant".
//
// A rank counts blocks from its own on: slot i is the block of the rank i after it. Let s0 = p and s(k+1) =
// ceil(s(k) / 2), until 1. Reduce-scatter takes the pairs (a, b) = (s(k), s(k+1)) in order: partial sums of slots b to
// a-1 go to the rank b after, which adds them to its slots 0 to a-b-1. All-gather is the mirror: the pairs in reverse,
// slots 0 to a-b-1 go to the rank b before.
#include "schedule/circulant.hpp"

#include "schedule/builder.hpp"

namespace zerocomm::schedule {
namespace {

struct Round {
  std::uint32_t a, b;
  std::uint32_t n() const { return a - b; }  // blocks that travel
};
std::vector<Round> rounds_of(std::uint32_t ranks) {
  std::vector<Round> rounds;
  for (std::uint32_t a = ranks; a > 1; a -= a / 2) rounds.push_back({a, a - a / 2});
  return rounds;
}

// Slots as ranges of chunks of the vector, and of scratch.
struct SlotRun {
  ChunkRange slots;
  ChunkRange chunks;
};
std::vector<SlotRun> in_vector(const Place& at, ChunkRange slots) {
  const std::uint32_t each = at.key.chunks / at.key.ranks;
  std::vector<SlotRun> runs;
  for (const auto& [offset, blocks] : wrapped_blocks(at.after_me(slots.first), slots.count, at.key.ranks))
    runs.push_back({{(slots.first + offset) * each, blocks.count * each}, {blocks.first * each, blocks.count * each}});
  return runs;
}
At in_scratch(const Place& at, ChunkRange slots) {
  const std::uint32_t each = at.key.chunks / at.key.ranks;
  return scratch({slots.first * each, slots.count * each});
}

// The last round: slot 0 is this rank's own block.
void finish_own(const Place& at, std::uint32_t from, At partial, std::vector<Step>& steps) {
  const At own = output(at.block(at.rank));
  steps.push_back(held(copy(partial, own)));
  steps.push_back(recv_reduce(from, own));
}

// Contributions come from input; partial sums live in scratch.
void first_sums(const Place& at, Round round, std::vector<Step>& steps) {
  const std::uint32_t to = at.after_me(round.b), from = at.before_me(round.b);
  for (const SlotRun& run : in_vector(at, {round.b, round.n()})) steps.push_back(send(to, input(run.chunks)));
  if (round.b == 1) return finish_own(at, from, input(at.block(at.rank)), steps);
  for (const SlotRun& run : in_vector(at, {0, round.n()})) {
    steps.push_back(held(copy(input(run.chunks), scratch(run.slots))));
    steps.push_back(recv_reduce(from, scratch(run.slots)));
  }
  if (round.b > round.n())  // an odd one that nobody adds to in this round
    steps.push_back(copy(input(at.block(at.after_me(round.n()))), in_scratch(at, {round.n(), 1})));
}

void scatter_sums(const Place& at, std::vector<Step>& steps) {
  for (const Round round : rounds_of(at.key.ranks)) {
    if (round.a == at.key.ranks) {
      first_sums(at, round, steps);
      continue;
    }
    const std::uint32_t from = at.before_me(round.b);
    steps.push_back(send(at.after_me(round.b), in_scratch(at, {round.b, round.n()})));
    if (round.b == 1)
      finish_own(at, from, in_scratch(at, {0, 1}), steps);
    else
      steps.push_back(recv_reduce(from, in_scratch(at, {0, round.n()})));
  }
}

void gather_blocks(const Place& at, std::vector<Step>& steps) {
  const std::vector<Round> rounds = rounds_of(at.key.ranks);
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    for (const SlotRun& run : in_vector(at, {0, round->n()}))
      steps.push_back(send(at.before_me(round->b), output(run.chunks)));
    for (const SlotRun& run : in_vector(at, {round->b, round->n()}))
      steps.push_back(recv(at.after_me(round->b), output(run.chunks)));
  }
}

}  // namespace

RankSchedule circulant_steps(const Key& key, std::uint32_t rank) {
  return each_lane(key, rank, [](const Place& at, std::vector<Step>& steps) {
    const ChunkRange own = at.block(at.rank);
    if (at.key.ranks == 1 || at.key.collective == Collective::all_gather)
      steps.push_back(copy(input(own), output(own)));
    if (is_reduction(at.key.collective)) scatter_sums(at, steps);
    if (at.key.collective != Collective::reduce_scatter) gather_blocks(at, steps);
  });
}

Cost circulant_cost(const Key& key) {
  const std::uint64_t p = key.ranks, block = key.chunks / key.ranks;
  const std::vector<Round> rounds = rounds_of(key.ranks);
  const auto wraps = [&](std::uint64_t start, std::uint64_t n) { return start % p + n > p ? 1u : 0u; };
  const bool sums = is_reduction(key.collective), gathers = key.collective != Collective::reduce_scatter;
  Cost cost;
  for (std::uint64_t rank = 0; rank < p; ++rank) {
    Traffic traffic;
    for (const auto [a, b] : rounds) {
      const std::uint64_t n = a - b;
      if (sums) {  // later rounds work on scratch, where nothing wraps
        traffic.messages_sent += 1 + (a == p ? wraps(rank + b, n) : 0u);
        traffic.messages_received += 1 + (a == p ? wraps(rank, n) : 0u);
      }
      if (gathers) {
        traffic.messages_sent += 1 + wraps(rank, n);
        traffic.messages_received += 1 + wraps(rank + b, n);
      }
    }
    const std::uint64_t phases = (sums ? 1u : 0u) + (gathers ? 1u : 0u);
    traffic.elements_sent = traffic.elements_received = phases * (p - 1) * block;
    cost.critical_path = {phases * rounds.size(), phases * (p - 1) * block};
    cost.ranks.push_back(traffic);
  }
  return cost;
}

std::uint32_t circulant_scratch(const Key& key) {
  return key.ranks < 3 ? 0 : (key.ranks + 1) / 2 * (key.chunks / key.ranks);
}

}  // namespace zerocomm::schedule
