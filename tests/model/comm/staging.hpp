// Model of the pipeline through staging (src/comm/staged.cpp). Turn t of a call: a rank fills its slot of round t, then
// takes round t - 1 from all, once all have filled it, and where results are needed by all it then collects those of
// round t - 2, once all have taken it. It waits for nothing before it fills: with four slots, or three where results
// are collected, whoever has come that far has seen that nobody needs the slot's old content any more. The same holds
// for the slots of results.
//
// The counts lie in the posts of calls, two of which alternate, and are set back before each post.
#pragma once

#include "model/explorer.hpp"

#include <string>

namespace zerocomm::test {

struct StagingModel {
  static constexpr int kMostRanks = 3;

  enum class Without : std::uint8_t {
    nothing,
    wait_for_posts,
    second_slot,
    set_back,
    set_back_before_post,
    wait_until_filled,
    filled_of_all,
    last_slot,
    fill_before_filled,
    wait_until_taken,
    count_of_empty_share,
  };

  int ranks = 2;
  int calls = 1;
  int rounds = 1;  // of each call
  bool collects = false;
  Without without = Without::nothing;

  struct Rank {
    std::uint8_t input[4] = {};   // what was filled in: call * rounds + round + 1
    std::uint8_t result[4] = {};  // the same of what was taken
    std::uint8_t filled[2] = {};
    std::uint8_t sequence[2] = {};
    std::uint8_t call = 0;
    std::uint8_t turn = 0;
    std::uint8_t peer = 0;
  };
  struct State {
    std::uint8_t at[kMostRanks] = {};
    Rank rank[kMostRanks];
  };

  State start() const {
    State state;
    for (int rank = ranks; rank < kMostRanks; ++rank) state.at[rank] = kEnded;
    return state;
  }
  int threads() const { return kMostRanks; }
  std::string who(int thread) const { return "rank " + std::to_string(thread); }
  const char* wrong(const State&) const { return nullptr; }
  const char* stuck(const State& state) const {
    for (int rank = 0; rank < ranks; ++rank)
      if (state.at[rank] != kEnded) return "a rank hangs";
    return nullptr;
  }
  std::span<const Line<StagingModel>> program(int thread) const;
  bool lacks(Without what) const { return without == what; }
};

namespace staging {

using Model = StagingModel;
using State = Model::State;
using Rank = Model::Rank;
using Without = Model::Without;

constexpr std::uint8_t kTorn = 0xff;

enum At : std::uint8_t {
  set_back,
  post,
  late_set_back,
  see_post,
  fill,
  store_filled,
  see_filled,
  take,
  store_taken,
  see_taken,
  collect,
  next_turn
};

inline int slot_of(const Model& m, const Rank& self) { return m.lacks(Without::second_slot) ? 0 : self.call % 2; }
inline int slots(const Model& m) { return (m.collects ? 3 : 4) - (m.lacks(Without::last_slot) ? 1 : 0); }
inline std::uint8_t& input(const Model& m, State& s, int rank, int round) {
  return s.rank[rank].input[round % slots(m)];
}
inline std::uint8_t& result(const Model& m, State& s, int rank, int round) {
  return s.rank[rank].result[round % slots(m)];
}
inline std::uint8_t content_of(const Model& m, const Rank& self, int round) {
  return static_cast<std::uint8_t>(self.call * m.rounds + round + 1);
}
inline const char* check(std::uint8_t content, std::uint8_t wanted) {
  if (content == kTorn) return "reads a slot while its owner fills it";
  if (content > wanted) return "a slot was filled again before it was read";
  if (content < wanted) return "reads a slot before it is filled";
  return nullptr;
}

// On to the next rank; after the last one, to the next line.
inline Flow turn(const Model& m, State& s, int me, std::uint8_t line) {
  if (++s.rank[me].peer < m.ranks) return jump(line);
  s.rank[me].peer = 0;
  return next();
}

inline void store(const Model& m, State& s, int me, int count) {
  Rank& self = s.rank[me];
  self.filled[slot_of(m, self)] = static_cast<std::uint8_t>(count);
}

inline constexpr Line<Model> kRank[] = {
    {set_back, "sets its count back",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       if (!m.lacks(Without::set_back) && !m.lacks(Without::set_back_before_post)) self.filled[slot_of(m, self)] = 0;
       return next();
     }},
    {post, "posts the call",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       self.sequence[slot_of(m, self)] = static_cast<std::uint8_t>(self.call + 1);
       return m.lacks(Without::set_back_before_post) ? next() : jump(see_post);
     }},
    {late_set_back, "sets its count back",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       self.filled[slot_of(m, self)] = 0;
       return next();
     }},
    {see_post, "looks for a post",
     [](const Model& m, State& s, int me, int) {
       const Rank& self = s.rank[me];
       if (m.lacks(Without::wait_for_posts)) return next();
       if (s.rank[self.peer].sequence[slot_of(m, self)] <= self.call) return blocked();
       return turn(m, s, me, see_post);
     }},
    {fill, "begins to fill its slot",
     [](const Model& m, State& s, int me, int) {
       const int round = s.rank[me].turn;
       if (round >= m.rounds) return jump(see_filled);
       input(m, s, me, round) = kTorn;
       if (m.lacks(Without::fill_before_filled)) store(m, s, me, m.collects ? 2 * round + 1 : round + 1);
       return next();
     }},
    {store_filled, "has filled its slot, and says so",
     [](const Model& m, State& s, int me, int) {
       const int round = s.rank[me].turn;
       input(m, s, me, round) = content_of(m, s.rank[me], round);
       if (!m.lacks(Without::count_of_empty_share) || me != 0) store(m, s, me, m.collects ? 2 * round + 1 : round + 1);
       return next();
     }},
    {see_filled, "looks what a rank has filled",
     [](const Model& m, State& s, int me, int) {
       const Rank& self = s.rank[me];
       const int round = self.turn - 1;
       if (round < 0 || round >= m.rounds) return jump(see_taken);
       if (m.lacks(Without::wait_until_filled)) return next();
       const bool asks = !m.lacks(Without::filled_of_all) || self.peer == me;
       if (asks && s.rank[self.peer].filled[slot_of(m, self)] < (m.collects ? 2 * round + 1 : round + 1))
         return blocked();
       return turn(m, s, me, see_filled);
     }},
    {take, "takes from the slot of a rank",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       const int round = self.turn - 1;
       if (const char* wrong = check(input(m, s, self.peer, round), content_of(m, self, round))) return broken(wrong);
       if (m.collects) result(m, s, me, round) = kTorn;
       return turn(m, s, me, take);
     }},
    {store_taken, "has its result, and says so",
     [](const Model& m, State& s, int me, int) {
       const Rank& self = s.rank[me];
       if (!m.collects) return next();
       result(m, s, me, self.turn - 1) = content_of(m, self, self.turn - 1);
       store(m, s, me, 2 * self.turn + 2);
       return next();
     }},
    {see_taken, "looks what a rank has taken",
     [](const Model& m, State& s, int me, int) {
       const Rank& self = s.rank[me];
       if (!m.collects || self.turn < 2) return jump(next_turn);
       if (m.lacks(Without::wait_until_taken)) return next();
       if (s.rank[self.peer].filled[slot_of(m, self)] < 2 * self.turn) return blocked();
       return turn(m, s, me, see_taken);
     }},
    {collect, "collects the result of a rank",
     [](const Model& m, State& s, int me, int) {
       const Rank& self = s.rank[me];
       const int round = self.turn - 2;
       if (const char* wrong = check(result(m, s, self.peer, round), content_of(m, self, round))) return broken(wrong);
       return turn(m, s, me, collect);
     }},
    {next_turn, "goes on",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       if (++self.turn < m.rounds + (m.collects ? 2 : 1)) return jump(fill);
       self.turn = 0;
       return ++self.call == m.calls ? end() : jump(set_back);
     }},
};

}  // namespace staging

inline std::span<const Line<StagingModel>> StagingModel::program(int) const { return staging::kRank; }

}  // namespace zerocomm::test
