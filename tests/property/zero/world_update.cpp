// Updates: the actions that Publication asks for, and the owner's writing.
#include "property/zero/world.hpp"

#include <algorithm>

namespace zerocomm::test {

using zero::Action;
using zero::Step;

void World::start_actions(std::size_t r, const zero::Verdict& verdict) {
  Rank& rank = *ranks_[r];
  if (verdict.status != ZC_OK) return fail("update: " + verdict.text);
  rank.actions.assign(verdict.actions.begin(), verdict.actions.end());
  if (faults_.done_before_drain && rank.actions.size() > 2 && rank.actions[0].step == Step::drain)
    std::rotate(rank.actions.begin(), rank.actions.begin() + 2, rank.actions.begin() + 3);
  rank.action = 0;
  rank.substep = 0;
  rank.state = State::acting;
}

bool World::may_act(const Rank& rank, const Action& action) const {
  switch (action.step) {
    case Step::drain:
      return faults_.no_drain || rank.fetches.empty();
    case Step::wait_all_done:
      return faults_.no_done_wait ||
             std::all_of(done_.begin(), done_.end(), [&](std::uint64_t done) { return done > action.value; });
    case Step::wait_all_published:
      return faults_.no_published_wait || std::all_of(published_.begin(), published_.end(), [&](std::uint64_t word) {
               return zero::unpack(word).generation >= action.value;
             });
    case Step::drop_cache:
    case Step::set_done:
    case Step::set_published:
    case Step::pull_replicas:
      return true;
  }
  return true;
}

void World::act(std::size_t r) {
  Rank& rank = *ranks_[r];
  const Action action = rank.actions[rank.action];
  switch (action.step) {
    case Step::drain:
    case Step::wait_all_done:
    case Step::wait_all_published:
      break;
    case Step::drop_cache:
      if (!faults_.keep_cache) {
        const zero::Plan plan = rank.fetcher.drop_all();
        if (plan.status == ZC_OK)
          take_out(r, plan);
        else if (!faults_.no_drain)
          return fail("drop_all: " + plan.text);
      }
      break;
    case Step::set_done:
      done_[r] = action.value + 1;
      break;
    case Step::set_published:
      if (action.changed) replicas_[r][r] = {action.value, action.value};
      published_[r] = zero::pack(rank.publication.published());
      break;
    case Step::pull_replicas:
      pull(r);
      if (rank.substep < 2 * ranks_.size()) return;
      break;
  }
  rank.substep = 0;
  if (++rank.action == rank.actions.size()) finish_op(rank);
}

// Start or end of pulling one owner's part into the own replica.
void World::pull(std::size_t r) {
  Rank& rank = *ranks_[r];
  const std::size_t owner = rank.substep / 2;
  const std::uint64_t generation = rank.actions[rank.action].value;
  const std::optional<Validity>& shard = shards_[owner];
  if (!shard.has_value() || shard->first > generation || shard->last < generation)
    return fail("a pull reads another generation than the published one");
  replicas_[r][owner] = {generation, generation};
  ++rank.substep;
}

// Start and end of the owner's writing of its shard.
void World::write(std::size_t r) {
  Rank& rank = *ranks_[r];
  if (rank.substep++ == 0) {
    for (const auto& reader : ranks_)
      for (const Fetch& fetch : reader->fetches)
        if (fetch.started && fetch.owner == r) return fail("a shard is overwritten while it is read");
    shards_[r].reset();
    return;
  }
  const std::uint64_t generation = rank.publication.published().generation + 1;
  shards_[r] = Validity{generation, generation};
  finish_op(rank);
}

// What was not changed holds for the next generation as well.
void World::mark_unchanged(std::size_t r) {
  const std::uint64_t generation = ranks_[r]->publication.published().generation + 1;
  shards_[r]->last = generation;
  for (Validity& part : replicas_[r]) part.last = generation;
}

}  // namespace zerocomm::test
