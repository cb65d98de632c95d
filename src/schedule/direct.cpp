// The algorithm "direct", any number of ranks, any root.
//
// Sums: owner of a block is the rank that the block belongs to. It starts at x0 and takes the contributions in rank
// order, its own among them, in one held run: one accumulator, one rounding, the canonical result. Sends go round the
// ring of ranks from the sender on, so that no receiver is everybody's first.
#include "schedule/direct.hpp"

#include "schedule/builder.hpp"

namespace zerocomm::schedule {
namespace {

// The contributions to `range`, in rank order, in one held run.
void ordered_sum(const Place& at, ChunkRange range, std::vector<Step>& steps) {
  const std::uint32_t p = at.key.ranks;
  for (std::uint32_t q = 0; q < p; ++q) {
    Step step = q == at.rank ? (q == 0 ? copy(input(range), output(range)) : reduce(input(range), output(range)))
                             : (q == 0 ? recv(q, output(range)) : recv_reduce(q, output(range)));
    steps.push_back(q + 1 < p ? held(step) : step);
  }
}

void sum_own_block(const Place& at, std::vector<Step>& steps) {
  for (std::uint32_t d = 1; d < at.key.ranks; ++d)
    steps.push_back(send(at.after_me(d), input(at.block(at.after_me(d)))));
  ordered_sum(at, at.block(at.rank), steps);
}

void sum_at_root(const Place& at, std::vector<Step>& steps) {
  const ChunkRange all = at.part({0, at.key.chunks});
  if (at.rank == at.key.root)
    ordered_sum(at, all, steps);
  else
    steps.push_back(send(at.key.root, input(all)));
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

void gather_to_root(const Place& at, std::vector<Step>& steps) {
  const ChunkRange own = at.block(at.rank);
  if (at.rank != at.key.root) {
    steps.push_back(send(at.key.root, input(own)));
    return;
  }
  steps.push_back(copy(input(own), output(own)));
  for (std::uint32_t d = 1; d < at.key.ranks; ++d)
    steps.push_back(recv(at.after_me(d), output(at.block(at.after_me(d)))));
}

void scatter_from_root(const Place& at, std::vector<Step>& steps) {
  const ChunkRange own = at.block(at.rank);
  if (at.rank != at.key.root) {
    steps.push_back(recv(at.key.root, output(own)));
    return;
  }
  steps.push_back(copy(input(own), output(own)));
  for (std::uint32_t d = 1; d < at.key.ranks; ++d)
    steps.push_back(send(at.after_me(d), input(at.block(at.after_me(d)))));
}

void exchange_all(const Place& at, std::vector<Step>& steps) {
  const auto pair = [&](std::uint32_t from, std::uint32_t to) { return at.part(pair_block(at.key, from, to)); };
  for (std::uint32_t d = 1; d < at.key.ranks; ++d)
    steps.push_back(send(at.after_me(d), input(pair(at.rank, at.after_me(d)))));
  const ChunkRange own = pair(at.rank, at.rank);
  steps.push_back(copy(input(own), output(own)));
  for (std::uint32_t d = 1; d < at.key.ranks; ++d)
    steps.push_back(recv(at.before_me(d), output(pair(at.before_me(d), at.rank))));
}

// Lanes order nothing between themselves, so one lane is enough and the others stay empty.
void barrier(const Place& at, std::vector<Step>& steps) {
  if (at.lane != 0) return;
  for (std::uint32_t d = 1; d < at.key.ranks; ++d) steps.push_back(send(at.after_me(d)));
  for (std::uint32_t d = 1; d < at.key.ranks; ++d) steps.push_back(recv(at.after_me(at.key.ranks - d)));
}

}  // namespace

RankSchedule direct_steps(const Key& key, std::uint32_t rank) {
  return each_lane(key, rank, [](const Place& at, std::vector<Step>& steps) {
    switch (at.key.collective) {
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
      case Collective::reduce:
        sum_at_root(at, steps);
        break;
      case Collective::all_to_all:
        exchange_all(at, steps);
        break;
      case Collective::gather_to_root:
        gather_to_root(at, steps);
        break;
      case Collective::scatter_from_root:
        scatter_from_root(at, steps);
        break;
    }
  });
}

Cost direct_cost(const Key& key) {
  const std::uint64_t p = key.ranks, others = p - 1, l = key.lanes;
  const std::uint64_t phases = key.collective == Collective::all_reduce ? 2 : 1;
  const std::uint64_t block =
      key.chunks / block_count(key.collective, key.ranks);  // what one peer gets, over all lanes
  const std::uint64_t messages = phases * others * (key.collective == Collective::barrier ? 1 : l);
  const std::uint64_t chunks = phases * others * block;
  Cost cost;
  cost.ranks.assign(p, Traffic{messages, chunks, messages, chunks});
  cost.critical_path = others == 0 ? PathLength{} : PathLength{phases, chunks / l};
  const bool from_root = key.collective == Collective::broadcast || key.collective == Collective::scatter_from_root;
  if (from_root) {
    cost.ranks.assign(p, Traffic{0, 0, l, block});
    cost.ranks[key.root] = Traffic{messages, chunks, 0, 0};
  } else if (has_root(key.collective)) {
    cost.ranks.assign(p, Traffic{l, block, 0, 0});
    cost.ranks[key.root] = Traffic{0, 0, messages, chunks};
    if (others > 0) cost.critical_path = {1, block / l};  // all arrive at the same time
  }
  return cost;
}

}  // namespace zerocomm::schedule
