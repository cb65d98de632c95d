// A schedule as one rank carries it out where it can read its peers' memory: actions, each with the conditions it waits
// for and the places it reads. Pure; made once per schedule and rank, run as often as one likes.
//
// Every rank has one word: how many steps of its lane it has done in this round. A held run is one action: it waits for
// all of its messages, reads them in order in one pass, and stores once.
#pragma once

#include "schedule/bound.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace zerocomm::schedule {

// Chunks of a rank, from `chunk` on; how many says the action.
struct Source {
  std::uint32_t rank = 0;
  Buf buf = Buf::none;
  std::uint32_t chunk = 0;
};

// What is known of a chunk that an action makes.
struct Outcomes {
  bool completes = false;   // every rank's contribution is in it
  bool all_raw = false;     // every source of it is a rank's contribution as it was brought
  bool any_raw = false;     // some source is
  std::uint32_t chunk = 0;  // of the vector: what it is a part of, wherever it lies
};

struct Action {
  Step step;               // the last of its steps: destination, n_chunks
  std::uint32_t done = 0;  // steps done when it is over
  std::uint32_t first_wait = 0, waits = 0;
  std::uint32_t first_source = 0, sources = 0;  // none: a send, or a message without data
  std::uint32_t first_outcome = 0;              // one per chunk
  bool reduces = false;                         // else the only source is copied
};

class Program {
 public:
  std::span<const Action> actions() const { return actions_; }
  std::span<const Reached> waits(const Action& action) const {
    return std::span(waits_).subspan(action.first_wait, action.waits);
  }
  std::span<const Source> sources(const Action& action) const {
    return std::span(sources_).subspan(action.first_source, action.sources);
  }
  const Outcomes& outcome(const Action& action, std::uint32_t chunk) const {
    return outcomes_[action.first_outcome + chunk];
  }
  // What must hold before the round is over: all sends were read.
  std::span<const Reached> at_end() const { return at_end_; }
  // Steps of every rank's lane.
  std::uint32_t steps_of(std::uint32_t rank) const { return steps_[rank]; }
  std::uint32_t scratch_chunks() const { return scratch_chunks_; }
  const Key& key() const { return key_; }

 private:
  friend Program make_program(const Schedule& schedule, std::uint32_t rank);
  Key key_;
  std::uint32_t scratch_chunks_ = 0;
  std::vector<Action> actions_;
  std::vector<Reached> waits_, at_end_;
  std::vector<Source> sources_;
  std::vector<Outcomes> outcomes_;
  std::vector<std::uint32_t> steps_;
};

// Throws what bind_lane throws, and UNSUPPORTED if the ranks would wait for each other because a held run reads all of
// its messages at its end. The schedule must be one that ends.
Program make_program(const Schedule& schedule, std::uint32_t rank);

}  // namespace zerocomm::schedule
