// Model of staged collectives (src/comm/staging.cpp): every rank has two halves; round k uses half k % 2. A rank fills
// when all have drained round k - 2 and reads when all have filled round k. The counters only rise.
//
// Rounds follow each other without the posts of calls between them, which only takes waits away.
#pragma once

#include "model/explorer.hpp"

#include <string>

namespace zerocomm::test {

struct StagingModel {
  static constexpr int kMostRanks = 3;

  enum class Without : std::uint8_t {
    nothing,
    wait_until_drained,
    wait_for_the_round_before,
    drained_of_all,
    wait_until_filled,
    filled_of_all,
    second_half,
    fill_before_filled,
    read_before_drained,
    count_of_empty_share,
  };

  int ranks = 2;
  int rounds = 1;
  bool of_root = false;  // everybody waits for rank 0 alone and reads its half alone; the library waits for all
  Without without = Without::nothing;

  struct Rank {
    std::uint8_t half[2] = {};  // round + 1
    std::uint8_t filled = 0;
    std::uint8_t drained = 0;
    std::uint8_t round = 0;
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

enum At : std::uint8_t { see_drained, fill, store_filled, see_filled, read, store_drained };

inline std::uint8_t& half(const Model& m, State& s, int rank, int round) {
  return s.rank[rank].half[m.lacks(Without::second_half) ? 0 : round % 2];
}

// On to the next rank; after the last one, to the next line.
inline Flow turn(const Model& m, State& s, int me, std::uint8_t line) {
  if (++s.rank[me].peer < m.ranks) return jump(line);
  s.rank[me].peer = 0;
  return next();
}

inline constexpr Line<Model> kRank[] = {
    {see_drained, "looks what a rank has drained",
     [](const Model& m, State& s, int me, int) {
       const Rank& self = s.rank[me];
       if (m.lacks(Without::wait_until_drained)) return next();
       const int early = m.lacks(Without::wait_for_the_round_before) ? 2 : 1;
       const bool asks = !m.lacks(Without::drained_of_all) || self.peer == me;
       if (asks && self.round >= 2 && s.rank[self.peer].drained < self.round - early) return blocked();
       return turn(m, s, me, see_drained);
     }},
    {fill, "begins to fill its half",
     [](const Model& m, State& s, int me, int) {
       half(m, s, me, s.rank[me].round) = kTorn;
       if (m.lacks(Without::fill_before_filled)) s.rank[me].filled = static_cast<std::uint8_t>(s.rank[me].round + 1);
       return next();
     }},
    {store_filled, "has filled its half, and stores filled",
     [](const Model& m, State& s, int me, int) {
       const auto filled = static_cast<std::uint8_t>(s.rank[me].round + 1);
       half(m, s, me, s.rank[me].round) = filled;
       if (!m.lacks(Without::count_of_empty_share) || me != 0) s.rank[me].filled = filled;
       return next();
     }},
    {see_filled, "looks what a rank has filled",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       if (m.lacks(Without::wait_until_filled)) return next();
       const bool asks = m.of_root ? self.peer == 0 : !m.lacks(Without::filled_of_all) || self.peer == me;
       if (asks && s.rank[self.peer].filled < self.round + 1) return blocked();
       const Flow flow = turn(m, s, me, see_filled);
       if (self.peer == 0 && m.lacks(Without::read_before_drained))
         self.drained = static_cast<std::uint8_t>(self.round + 1);
       return flow;
     }},
    {read, "reads the half of a rank",
     [](const Model& m, State& s, int me, int) {
       const Rank& self = s.rank[me];
       if (m.of_root && self.peer != 0) return turn(m, s, me, read);
       const std::uint8_t content = half(m, s, self.peer, self.round);
       if (content == kTorn) return broken("reads a half while its owner fills it");
       if (content > self.round + 1) return broken("a half was filled again before it was read");
       if (content < self.round + 1) return broken("reads a half before it is filled");
       return turn(m, s, me, read);
     }},
    {store_drained, "stores drained",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       self.drained = ++self.round;
       return self.round == m.rounds ? end() : jump(see_drained);
     }},
};

}  // namespace staging

inline std::span<const Line<StagingModel>> StagingModel::program(int) const { return staging::kRank; }

}  // namespace zerocomm::test
