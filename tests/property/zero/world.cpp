// The scheduler of the world, and the calls of a program.
#include "property/zero/world.hpp"

#include "base/check.hpp"

#include <algorithm>

namespace zerocomm::test {

using zero::Publication;

namespace {

constexpr std::size_t kMostMoves = 100000;
constexpr const char* kPassNames[] = {"train", "evaluation", "other evaluation"};

zero::ReducerConfig reducer_config(const History& history, const Faults& faults) {
  zero::ReducerConfig config = history.reducer;
  if (faults.no_reserved_slot) config.own_slots = true;  // look() then counts slots, without the rule
  return config;
}

}  // namespace

World::World(const History& history, const Faults& faults, std::uint64_t seed)
    : history_(history), faults_(faults), random_(seed) {
  const std::size_t ranks = history_.programs.size(), units = history_.layout.units.size();
  for (std::size_t r = 0; r < ranks; ++r) {
    ranks_.push_back(std::make_unique<Rank>(history_, reducer_config(history_, faults_)));
    ranks_[r]->holds.resize(units);
    ranks_[r]->generation_of.resize(units);
  }
  published_.resize(ranks, zero::pack({}));
  done_.resize(ranks);
  shards_.resize(ranks, Validity{});
  replicas_.resize(ranks, std::vector<Validity>(ranks));
  buckets_.resize(history_.layout.buckets.size());
  for (Bucket& bucket : buckets_) bucket.arrivals.resize(ranks);
  slots_.resize(ranks, std::vector<Slot>(std::max<std::size_t>(buckets_.size(), history_.reducer.slots)));
}

void World::fail(const std::string& what) {
  if (failure_.empty()) failure_ = what;
}

std::string World::run() {
  for (std::size_t moves = 0; failure_.empty(); ++moves) {
    collect();
    if (moves_.empty()) break;
    if (moves == kMostMoves) fail("endless");
    std::size_t total = 0;
    for (const Move& move : moves_) total += move.weight;
    std::size_t chosen = below(random_, total);
    std::size_t index = 0;
    while (chosen >= moves_[index].weight) chosen -= moves_[index++].weight;
    past_.push_back(moves_[index]);
    try {
      apply(moves_[index]);
    } catch (const Error& error) {
      fail(std::string("a machine refuses: ") + error.what());
    }
  }
  for (std::size_t r = 0; r < ranks_.size() && failure_.empty(); ++r)
    if (ranks_[r]->next_op < history_.programs[r].size() || ranks_[r]->state != State::between) fail("deadlock");
  for (const auto& rank : ranks_) {
    reached_.evictions += rank->fetcher.counters().evictions;
    reached_.wasted += rank->fetcher.counters().wasted;
    reached_.ahead += rank->fetcher.counters().prefetches;
    reached_.refused += rank->refused.size();
  }
  return failure_.empty() ? std::string() : failure_ + history_text();
}

std::string first_failure(const Faults& faults, std::uint64_t first_seed, std::uint64_t count,
                          const std::string& what) {
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    Random random(seed);
    const std::string failure = World(random_history(random), faults, seed).run();
    if (!failure.empty() && failure.find(what) != std::string::npos)
      return "seed " + std::to_string(seed) + ": " + failure;
  }
  return {};
}

void World::collect() {
  moves_.clear();
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = *ranks_[r];
    const std::size_t speed = history_.speeds[r];
    const bool more = rank.next_op < history_.programs[r].size() || rank.state != State::between;
    if (more && can_step(r)) moves_.push_back({Kind::program, r, 0, speed});
    for (std::size_t i = 0; i < rank.fetches.size(); ++i)
      if (can_copy(rank.fetches[i])) moves_.push_back({Kind::copy, r, i, history_.copy_speed});
    if (rank.publication.gradients_open() && rank.stirred &&
        (rank.state == State::ending || !history_.gradients_wait_for_end))
      moves_.push_back({Kind::look, r, 0, speed});
  }
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    if (complete(buckets_[b])) moves_.push_back({Kind::reduce, b, 0, history_.copy_speed});
}

void World::apply(const Move& move) {
  switch (move.kind) {
    case Kind::program:
      return step(move.rank);
    case Kind::copy:
      return copy(move.rank, move.index);
    case Kind::look:
      return look(move.rank);
    case Kind::reduce:
      return reduce(move.rank);
  }
}

bool World::can_step(std::size_t r) const {
  const Rank& rank = *ranks_[r];
  switch (rank.state) {
    case State::acquiring:
      if (rank.wait == Wait::landing) return rank.landings != rank.landings_seen;
      if (rank.wait == Wait::quiet) return rank.fetches.empty();
      if (rank.wait == Wait::resident) {
        const Op& op = history_.programs[r][rank.next_op];
        return rank.fetcher.resident(history_.layout.units[op.index].needs[rank.need]);
      }
      return true;
    case State::ending:
      return may_end(rank);
    case State::acting:
      return may_act(rank, rank.actions[rank.action]);
    case State::between:
    case State::reading:
    case State::writing:
      return true;
  }
  return true;
}

void World::step(std::size_t r) {
  Rank& rank = *ranks_[r];
  switch (rank.state) {
    case State::between:
      return start_op(r, history_.programs[r][rank.next_op]);
    case State::acquiring:
      return continue_acquire(r);
    case State::reading:
      return read_replica(r);
    case State::ending:
      return finish_end(r);
    case State::acting:
      return act(r);
    case State::writing:
      return write(r);
  }
}

void World::finish_op(Rank& rank) {
  rank.state = State::between;
  ++rank.next_op;
}

void World::start_op(std::size_t r, const Op& op) {
  Rank& rank = *ranks_[r];
  Publication& publication = rank.publication;
  switch (op.kind) {
    case OpKind::begin: {
      const zero::Verdict verdict = publication.begin(op.phase, history_.most_micro_steps);
      if (verdict.status != ZC_OK) return fail("begin: " + verdict.text);
      rank.fetcher.begin_pass(kPassNames[op.index]);
      if (op.phase != ZC_PHASE_EVAL) {
        rank.reducer.begin(publication.gradient_passes() - 1);
        rank.phases.push_back(op.phase);
        rank.stirred = true;
      }
      fetch_ahead(r);
      return finish_op(rank);
    }
    case OpKind::acquire:
      return begin_acquire(r);
    case OpKind::release:
      return release(r, op);
    case OpKind::hint:
      if (history_.stage == ZC_STAGE_3)
        if (const std::optional<zero::Plan> plan = rank.fetcher.prefetch(op.index)) obey(r, *plan);
      return finish_op(rank);
    case OpKind::ready:
    case OpKind::absent:
      return report(r, op);
    case OpKind::end:
      if (publication.gradients_open()) {
        std::string text;
        if (rank.reducer.close(&text) != ZC_OK) return fail("end: " + text);
        rank.stirred = true;
        rank.state = State::ending;
        return;
      }
      return finish_end(r);
    case OpKind::update_begin:
      return start_actions(r, publication.update_begin(rank.fetcher.held_units()));
    case OpKind::publish:
      return start_actions(r, publication.publish());
    case OpKind::publish_unchanged:
      mark_unchanged(r);
      return start_actions(r, publication.publish_unchanged(rank.fetcher.held_units()));
    case OpKind::write:
      rank.substep = 0;
      rank.state = State::writing;
      return;
  }
}

std::string World::history_text() const {
  constexpr std::size_t kShown = 40;
  std::string text = "\nlast moves:";
  for (std::size_t i = past_.size() > kShown ? past_.size() - kShown : 0; i < past_.size(); ++i) {
    const Move& move = past_[i];
    const char* names[] = {"program", "copy", "look", "reduce"};
    text += std::string(" ") + names[static_cast<std::size_t>(move.kind)] + std::to_string(move.rank);
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    text += "\nrank " + std::to_string(r) + ": operation " + std::to_string(ranks_[r]->next_op) + " of " +
            std::to_string(history_.programs[r].size()) + ", state " +
            std::to_string(static_cast<int>(ranks_[r]->state)) + ", generation " +
            std::to_string(ranks_[r]->publication.published().generation) + ", gradient passes " +
            std::to_string(ranks_[r]->publication.gradient_passes());
  return text;
}

}  // namespace zerocomm::test
