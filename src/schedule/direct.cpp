// The algorithm "direct", any number of ranks, any root.
//
// Sums: owner of a block is the rank that the block belongs to. It starts at x0 and takes the contributions in rank
// order, its own among them, in one held run: one accumulator, one rounding, the canonical result. Sends go round the
// ring of ranks from the sender on, so that no receiver is everybody's first.
#include "schedule/direct.hpp"

#include "schedule/builder.hpp"

namespace zerocomm::schedule {
namespace {

struct Place {
  const Key& key;
  std::uint32_t rank;
  std::uint32_t lane;
  ChunkRange part(ChunkRange range) const { return lane_part(range, lane, key.lanes); }
  ChunkRange block(std::uint32_t of_rank) const { return part(block_of(key, of_rank)); }
  std::uint32_t after_me(std::uint32_t distance) const {
    return static_cast<std::uint32_t>((std::uint64_t{rank} + distance) % key.ranks);
  }
};

void sum_own_block(const Place& at, std::vector<Step>& steps) {
  const std::uint32_t p = at.key.ranks;
  for (std::uint32_t d = 1; d < p; ++d) steps.push_back(send(at.after_me(d), input(at.block(at.after_me(d)))));
  const ChunkRange own = at.block(at.rank);
  for (std::uint32_t q = 0; q < p; ++q) {
    Step step = q == at.rank ? (q == 0 ? copy(input(own), output(own)) : reduce(input(own), output(own)))
                             : (q == 0 ? recv(q, output(own)) : recv_reduce(q, output(own)));
    steps.push_back(q + 1 < p ? held(step) : step);
  }
}

// Sends come from output: in place, input and output of the own block are the same memory anyway.
void share_own_block(const Place& at, std::vector<Step>& steps) {
  const std::uint32_t p = at.key.ranks;
  for (std::uint32_t d = 1; d < p; ++d) steps.push_back(send(at.after_me(d), output(at.block(at.rank))));
  for (std::uint32_t d = 1; d < p; ++d) {
    const std::uint32_t from = at.after_me(p - d);
    steps.push_back(recv(from, output(at.block(from))));
  }
}

void gather(const Place& at, std::vector<Step>& steps) {
  const ChunkRange own = at.block(at.rank);
  steps.push_back(copy(input(own), output(own)));
  share_own_block(at, steps);
}

void broadcast(const Place& at, std::vector<Step>& steps) {
  const ChunkRange all = at.part({0, at.key.chunks});
  if (at.rank != at.key.root) {
    steps.push_back(recv(at.key.root, output(all)));
    return;
  }
  steps.push_back(copy(input(all), output(all)));
  for (std::uint32_t d = 1; d < at.key.ranks; ++d) steps.push_back(send(at.after_me(d), output(all)));
}

// Lanes order nothing between themselves, so one lane is enough and the others stay empty.
void barrier(const Place& at, std::vector<Step>& steps) {
  if (at.lane != 0) return;
  for (std::uint32_t d = 1; d < at.key.ranks; ++d) steps.push_back(send(at.after_me(d)));
  for (std::uint32_t d = 1; d < at.key.ranks; ++d) steps.push_back(recv(at.after_me(at.key.ranks - d)));
}

}  // namespace

RankSchedule direct_steps(const Key& key, std::uint32_t rank) {
  RankSchedule result;
  result.lanes.resize(key.lanes);
  for (std::uint32_t lane = 0; lane < key.lanes; ++lane) {
    const Place at{key, rank, lane};
    std::vector<Step>& steps = result.lanes[lane].steps;
    switch (key.collective) {
      case Collective::all_reduce:
        sum_own_block(at, steps), share_own_block(at, steps);
        break;
      case Collective::reduce_scatter:
        sum_own_block(at, steps);
        break;
      case Collective::all_gather:
        gather(at, steps);
        break;
      case Collective::broadcast:
        broadcast(at, steps);
        break;
      case Collective::barrier:
        barrier(at, steps);
        break;
    }
  }
  return result;
}

Cost direct_cost(const Key& key) {
  const std::uint64_t p = key.ranks, others = p - 1, n = key.chunks, l = key.lanes;
  const std::uint64_t phases = key.collective == Collective::all_reduce ? 2 : 1;
  const std::uint64_t block = has_blocks(key.collective) ? n / p : n;  // the chunks that one peer gets, over all lanes
  const std::uint64_t messages = phases * others * (key.collective == Collective::barrier ? 1 : l);
  Cost cost;
  cost.critical_path = others == 0 ? PathLength{} : PathLength{phases, phases * others * block / l};
  const Traffic all{messages, phases * others * block, messages, phases * others * block};
  cost.ranks.assign(p, all);
  if (key.collective == Collective::broadcast) {
    cost.ranks.assign(p, Traffic{0, 0, l, n});
    cost.ranks[key.root] = Traffic{messages, others * n, 0, 0};
  }
  return cost;
}

}  // namespace zerocomm::schedule
