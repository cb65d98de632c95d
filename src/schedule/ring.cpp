// The algorithm "ring".
//
// A partial sum of block b starts at rank b + 1 and goes round to rank b, each rank adding its own contribution. In
// all_reduce it travels through the outputs; in reduce_scatter, where a rank has the output of its own block only,
// through two blocks of scratch in turn: with one, everybody would wait until the next rank had room.
#include "schedule/ring.hpp"

#include "schedule/builder.hpp"

#include <algorithm>

namespace zerocomm::schedule {
namespace {

// Own contribution plus what the rank before has so far.
void add_mine(const Place& at, ChunkRange mine, At into, std::vector<Step>& steps) {
  steps.push_back(held(copy(input(mine), into)));
  steps.push_back(recv_reduce(at.before_me(1), into));
}

void pass_sums(const Place& at, std::vector<Step>& steps) {
  const std::uint32_t p = at.key.ranks;
  const bool through_output = at.key.collective == Collective::all_reduce;
  const auto place = [&](std::uint32_t block, std::uint32_t round) {
    return through_output || block == at.rank ? output(at.block(block)) : scratch(at.block(round % 2));
  };
  for (std::uint32_t s = 0; s + 1 < p; ++s) {
    const std::uint32_t out = at.before_me(1 + s), in = at.before_me((2 + s) % p);
    steps.push_back(send(at.after_me(1), s == 0 ? input(at.block(out)) : place(out, s - 1)));
    add_mine(at, at.block(in), place(in, s), steps);
  }
}

void pass_blocks(const Place& at, std::vector<Step>& steps) {
  for (std::uint32_t s = 0; s + 1 < at.key.ranks; ++s) {
    steps.push_back(send(at.after_me(1), output(at.block(at.before_me(s)))));
    steps.push_back(recv(at.before_me(1), output(at.block(at.before_me(s + 1)))));
  }
}

}  // namespace

RankSchedule ring_steps(const Key& key, std::uint32_t rank) {
  return each_lane(key, rank, [](const Place& at, std::vector<Step>& steps) {
    const ChunkRange own = at.block(at.rank);
    if (at.key.ranks == 1 || at.key.collective == Collective::all_gather)
      steps.push_back(copy(input(own), output(own)));
    if (is_reduction(at.key.collective)) pass_sums(at, steps);
    if (at.key.collective != Collective::reduce_scatter) pass_blocks(at, steps);
  });
}

Cost ring_cost(const Key& key) {
  const std::uint64_t rounds = (key.collective == Collective::all_reduce ? 2 : 1) * (std::uint64_t{key.ranks} - 1);
  const std::uint64_t block = key.chunks / key.ranks;
  Cost cost;
  cost.ranks.assign(key.ranks, Traffic{rounds * key.lanes, rounds * block, rounds * key.lanes, rounds * block});
  cost.critical_path = {rounds, rounds * block / key.lanes};
  return cost;
}

std::uint32_t ring_scratch(const Key& key) {
  return key.ranks < 3 ? 0 : std::min(key.ranks - 2, 2u) * (key.chunks / key.ranks);
}

}  // namespace zerocomm::schedule
