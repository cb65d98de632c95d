// Units: what is pinned, where it lies, and that a copy always finds the generation that was pinned.
#include "property/zero/world.hpp"

#include <algorithm>

namespace zerocomm::test {

using zero::Need;
using zero::Plan;

void World::begin_acquire(std::size_t r) {
  Rank& rank = *ranks_[r];
  if (const zero::Verdict verdict = rank.publication.acquire(rank.fetcher.held_units()); verdict.status != ZC_OK)
    return fail("acquire: " + verdict.text);
  rank.substep = 0;
  rank.need = 0;
  rank.wait = Wait::none;
  rank.all_pinned = false;
  rank.state = history_.stage == ZC_STAGE_3 ? State::acquiring : State::reading;
}

// Pins the next of the unit's needs, or looks at the one that it waited for.
void World::continue_acquire(std::size_t r) {
  Rank& rank = *ranks_[r];
  const Op& op = history_.programs[r][rank.next_op];
  const std::vector<std::size_t>& needs = history_.layout.units[op.index].needs;
  if (rank.wait == Wait::quiet) return pin_all(r);
  if (rank.wait == Wait::resident) ++rank.need;
  rank.wait = Wait::none;
  if (rank.need == needs.size()) {
    for (const std::size_t need : needs) check_unit(r, need);
    rank.fetcher.visit(op.index);
    finish_op(rank);
  } else if (rank.all_pinned) {
    rank.wait = Wait::resident;
  } else if (!pin(r, needs[rank.need])) {
    // What Fetcher::drop_unheld says is to be done: let go, wait until nothing is being fetched, then pin_all.
    while (rank.need > 0) unpin(r, needs[--rank.need]);
    rank.wait = Wait::quiet;
  }
}

// Pins one storing unit and says what to wait for; false: BUDGET.
bool World::pin(std::size_t r, std::size_t unit) {
  Rank& rank = *ranks_[r];
  const Plan plan = rank.fetcher.acquire(unit);
  if (plan.status == ZC_BUDGET) return false;
  if (plan.status != ZC_OK) fail("acquire: " + plan.text);
  if (plan.need == Need::retry) {
    if (rank.fetches.empty()) fail("retry without a fetch under way");
    rank.wait = Wait::landing;
    rank.landings_seen = rank.landings;
    ++reached_.retries;
    return true;
  }
  if (plan.need == Need::busy) ++reached_.busy;
  ++rank.holds[unit];
  obey(r, plan);
  rank.wait = Wait::resident;
  check_held(rank);
  return true;
}

void World::check_held(const Rank& rank) {
  std::size_t held = 0;
  for (std::size_t u = 0; u < rank.holds.size(); ++u)
    if (rank.holds[u] > 0 && !history_.layout.units[u].persistent) held += history_.layout.units[u].gathered_bytes;
  if (held > history_.fetcher.max_held_bytes) fail("more is held than max_held_bytes");
  if (held != rank.fetcher.held_bytes()) fail("held bytes are miscounted");
}

void World::pin_all(std::size_t r) {
  Rank& rank = *ranks_[r];
  const Op& op = history_.programs[r][rank.next_op];
  const std::vector<std::size_t>& needs = history_.layout.units[op.index].needs;
  const bool nothing_held = rank.fetcher.held_units() == 0;
  take_out(r, rank.fetcher.drop_unheld());
  for (rank.need = 0; rank.need < needs.size(); ++rank.need) {
    if (pin(r, needs[rank.need])) continue;
    if (nothing_held) fail("BUDGET for a unit while nothing else is held");
    while (rank.need > 0) unpin(r, needs[--rank.need]);
    rank.refused.insert(op.key);
    return finish_op(rank);
  }
  ++reached_.made_room;
  rank.all_pinned = true;
  rank.need = 0;
}

void World::check_unit(std::size_t r, std::size_t unit) {
  const Rank& rank = *ranks_[r];
  if (history_.layout.units[unit].gathered_bytes == 0) return;
  if (!rank.fetcher.resident(unit)) return fail("a held unit is not resident");
  if (rank.generation_of[unit] != rank.publication.pinned())
    fail("stale: a unit of another generation than the pinned one is used");
}

void World::unpin(std::size_t r, std::size_t unit) {
  Rank& rank = *ranks_[r];
  --rank.holds[unit];
  const Plan plan = rank.fetcher.release(unit);
  if (plan.status != ZC_OK) return fail("release: " + plan.text);
  take_out(r, plan);
}

void World::release(std::size_t r, const Op& op) {
  Rank& rank = *ranks_[r];
  if (history_.stage == ZC_STAGE_3 && rank.refused.count(op.key) == 0) {
    for (const std::size_t need : history_.layout.units[op.index].needs) {
      check_unit(r, need);
      unpin(r, need);
    }
    fetch_ahead(r);
  }
  finish_op(rank);
}

void World::fetch_ahead(std::size_t r) {
  if (history_.stage != ZC_STAGE_3) return;
  for (std::size_t i = 0; i < history_.ahead_at_once; ++i) {
    const std::optional<Plan> plan = ranks_[r]->fetcher.prefetch();
    if (!plan.has_value()) return;
    obey(r, *plan);
  }
}

void World::take_out(std::size_t r, const Plan& plan) {
  Rank& rank = *ranks_[r];
  for (std::size_t i = 0; i < plan.dropped.size(); ++i) {
    const std::size_t unit = plan.dropped[i];
    if (rank.holds[unit] > 0) fail("a held unit was dropped");
    for (const Fetch& fetch : rank.fetches)
      if (fetch.unit == unit) fail("a unit was dropped while it is being fetched");
    if (rank.places.count(unit) == 0 || rank.places[unit] != plan.dropped_offset_bytes[i])
      fail("a unit was dropped from a place where it was not");
    rank.places.erase(unit);
  }
}

// Takes out what the plan drops and starts its fetch, if it has one.
void World::obey(std::size_t r, const Plan& plan) {
  Rank& rank = *ranks_[r];
  take_out(r, plan);
  if (plan.need != Need::fetch) return;
  const shard::Unit& unit = history_.layout.units[plan.unit];
  const std::size_t begin = plan.offset_bytes, end = begin + unit.gathered_bytes;
  if (begin % history_.fetcher.alignment_bytes != 0) fail("a place is not aligned");
  if (!unit.persistent && end > history_.fetcher.arena_bytes) fail("the budget is exceeded");
  for (const auto& [other, offset] : rank.places) {
    const shard::Unit& there = history_.layout.units[other];
    if (there.persistent == unit.persistent && offset < end && begin < offset + there.gathered_bytes)
      fail("two units share bytes");
  }
  rank.places[plan.unit] = begin;
  rank.fetches.push_back({plan.unit, rank.publication.pinned()});
}

bool World::can_copy(const Fetch& fetch) const {
  return fetch.started || faults_.no_published_wait ||
         zero::unpack(published_[fetch.owner]).generation >= fetch.generation;
}

// Start or end of copying one owner's part.
void World::copy(std::size_t r, std::size_t index) {
  Rank& rank = *ranks_[r];
  Fetch& fetch = rank.fetches[index];
  const std::optional<Validity>& shard = shards_[fetch.owner];
  if (!shard.has_value() || shard->first > fetch.generation || shard->last < fetch.generation)
    return fail("a copy reads another generation than the pinned one");
  if (!fetch.started) {
    if (!faults_.no_published_wait) {
      const zero::Change theirs = change_of(zero::unpack(published_[fetch.owner]), fetch.generation);
      const zero::Change ours = change_of(rank.publication.published(), fetch.generation);
      if (theirs != ours && theirs != zero::Change::unknown && ours != zero::Change::unknown)
        return fail("two ranks seem to have published differently");
    }
    fetch.started = true;
    if (zero::unpack(published_[fetch.owner]).generation > fetch.generation) ++reached_.late_readers;
    return;
  }
  fetch.started = false;
  if (++fetch.owner < ranks_.size()) return;
  const std::size_t unit = fetch.unit;
  rank.generation_of[unit] = fetch.generation;
  rank.fetches.erase(rank.fetches.begin() + static_cast<std::ptrdiff_t>(index));
  rank.fetcher.landed(unit, true);
  ++rank.landings;
}

// Stages 1 and 2: the unit is read where it lies, in the rank's replica.
void World::read_replica(std::size_t r) {
  Rank& rank = *ranks_[r];
  for (const Validity& part : replicas_[r])
    if (part.first > rank.publication.pinned() || part.last < rank.publication.pinned())
      return fail("a replica is read at another generation than the pinned one");
  if (rank.substep++ == 1) finish_op(rank);
}

}  // namespace zerocomm::test
