// Model of the bell (src/base/wait.cpp and the loop of Comm::wait): a waiter counts itself as a sleeper, looks once
// more and sleeps on the bell's count; whoever changes a word rings the bells that have sleepers.
//
// Rank r is thread r, which raises its word once in each round, rings all bells and waits for all words. A second
// thread of rank r only waits, on the same bell.
#pragma once

#include "model/explorer.hpp"

#include <string>

namespace zerocomm::test {

struct BellModel {
  static constexpr int kMostRanks = 3, kFate = 2 * kMostRanks, kThreads = kFate + 1;

  enum class Without : std::uint8_t {
    nothing,
    store_before_ring,
    count_of_rings,
    wake,
    wake_of_all,
    count_of_sleepers,
    second_look,
    count_before_look,
    comparison_before_sleep,
  };

  int ranks = 2;
  int rounds = 1;
  int second_threads = 0;  // ranks that have one
  int early = 0;           // sleeps that may end although nobody rang
  Without without = Without::nothing;

  struct Rank {
    std::uint8_t word = 0;
    std::uint8_t count = 0;
    std::uint8_t sleepers = 0;
  };
  struct Thread {
    std::uint8_t round = 0;
    std::uint8_t peer = 0;
    std::uint8_t seen = 0;
    std::uint8_t counted = 0;   // it is one of the bell's sleepers
    std::uint8_t sleeping = 0;  // in the kernel
  };
  struct State {
    std::uint8_t at[kThreads] = {};
    Rank rank[kMostRanks];
    Thread thread[kFate];
    std::uint8_t early = 0;
  };

  State start() const;
  int threads() const { return kThreads; }
  std::string who(int thread) const {
    if (thread == kFate) return "fate";
    return (thread < kMostRanks ? "rank " : "second thread of rank ") + std::to_string(thread % kMostRanks);
  }
  const char* wrong(const State&) const { return nullptr; }
  const char* stuck(const State& state) const {
    for (int thread = 0; thread < kFate; ++thread)
      if (state.at[thread] != kEnded) return "a wake is lost";
    return nullptr;
  }
  std::span<const Line<BellModel>> program(int thread) const;
  bool lacks(Without what) const { return without == what; }
};

namespace bell {

using Model = BellModel;
using State = Model::State;
using Without = Model::Without;

enum At : std::uint8_t {
  store,
  see_sleepers,
  count_ring,
  wake,
  store_late,
  read_count,
  look,
  count_in,
  read_count_late,
  sleep,
  asleep,
  count_out,
};

inline Model::Rank& own(State& s, int me) { return s.rank[me % Model::kMostRanks]; }

inline Flow rung(const Model& m, State& s, int me) {
  Model::Thread& self = s.thread[me];
  if (++self.peer < m.ranks) return jump(see_sleepers);
  self.peer = 0;
  return jump(m.lacks(Without::store_before_ring) ? store_late : read_count);
}

inline constexpr Line<Model> kLines[] = {
    {store, "raises its word",
     [](const Model& m, State& s, int me, int) {
       if (!m.lacks(Without::store_before_ring)) ++own(s, me).word;
       return next();
     }},
    {see_sleepers, "ring: looks for sleepers",
     [](const Model& m, State& s, int me, int) {
       return s.rank[s.thread[me].peer].sleepers == 0 ? rung(m, s, me) : next();
     }},
    {count_ring, "ring: counts up",
     [](const Model& m, State& s, int me, int) {
       if (!m.lacks(Without::count_of_rings)) ++s.rank[s.thread[me].peer].count;
       return next();
     }},
    {wake, "ring: wakes all",
     [](const Model& m, State& s, int me, int) {
       if (m.lacks(Without::wake)) return rung(m, s, me);
       for (int thread = s.thread[me].peer; thread < Model::kFate; thread += Model::kMostRanks) {
         if (s.thread[thread].sleeping == 0) continue;
         s.thread[thread].sleeping = 0;
         if (m.lacks(Without::wake_of_all)) break;
       }
       return rung(m, s, me);
     }},
    {store_late, "raises its word",
     [](const Model&, State& s, int me, int) {
       ++own(s, me).word;
       return next();
     }},
    {read_count, "wait: reads the count",
     [](const Model&, State& s, int me, int) {
       s.thread[me].seen = own(s, me).count;
       return next();
     }},
    {look, "wait: looks at a word",
     [](const Model& m, State& s, int me, int) {
       Model::Thread& self = s.thread[me];
       if (s.rank[self.peer].word > self.round) {
         if (++self.peer < m.ranks) return jump(look);
         self.peer = 0;
         return jump(count_out);
       }
       if (self.counted == 0) return next();
       return jump(m.lacks(Without::count_before_look) ? read_count_late : sleep);
     }},
    {count_in, "wait: counts itself as a sleeper",
     [](const Model& m, State& s, int me, int) {
       s.thread[me].counted = 1;
       if (!m.lacks(Without::count_of_sleepers)) ++own(s, me).sleepers;
       return jump(m.lacks(Without::second_look) ? sleep : read_count);
     }},
    {read_count_late, "wait: reads the count",
     [](const Model&, State& s, int me, int) {
       s.thread[me].seen = own(s, me).count;
       return next();
     }},
    {sleep, "wait: goes to sleep unless the count has changed",
     [](const Model& m, State& s, int me, int) {
       Model::Thread& self = s.thread[me];
       if (own(s, me).count != self.seen && !m.lacks(Without::comparison_before_sleep)) return jump(read_count);
       self.sleeping = 1;
       return next();
     }},
    {asleep, "wait: wakes up",
     [](const Model&, State& s, int me, int) { return s.thread[me].sleeping != 0 ? blocked() : jump(read_count); }},
    {count_out, "wait: is over",
     [](const Model& m, State& s, int me, int) {
       Model::Thread& self = s.thread[me];
       if (self.counted != 0 && !m.lacks(Without::count_of_sleepers)) --own(s, me).sleepers;
       self.counted = 0;
       if (++self.round == m.rounds) return end();
       return jump(me < Model::kMostRanks ? store : read_count);
     }},
};

inline constexpr Line<Model> kFate[] = {{0, "a sleep ends early",
                                         [](const Model& m, State& s, int, int choice) {
                                           if (s.early == m.early || s.thread[choice].sleeping == 0) return blocked();
                                           ++s.early;
                                           s.thread[choice].sleeping = 0;
                                           return jump(0);
                                         },
                                         Model::kFate, true}};

}  // namespace bell

inline BellModel::State BellModel::start() const {
  State state;
  for (int rank = 0; rank < kMostRanks; ++rank) {
    state.at[rank] = rank < ranks ? std::uint8_t{bell::store} : kEnded;
    state.at[kMostRanks + rank] = rank < second_threads ? std::uint8_t{bell::read_count} : kEnded;
  }
  return state;
}

inline std::span<const Line<BellModel>> BellModel::program(int thread) const {
  if (thread == kFate) return bell::kFate;
  return bell::kLines;
}

}  // namespace zerocomm::test
