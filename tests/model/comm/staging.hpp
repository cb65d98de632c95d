// Model of rounds through staging (src/comm/transfer.cpp): every rank has two halves; round k of a call uses half k
// % 2. A rank fills its half, waits until all have filled the round, and reads. It waits for nothing before it fills:
// whoever has filled round k has read round k - 1, and whoever has posted a call has read all of the one before.
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
    second_half,
    fill_before_filled,
    count_of_empty_share,
  };

  int ranks = 2;
  int calls = 1;
  int rounds = 1;  // of each call
  Without without = Without::nothing;

  struct Rank {
    std::uint8_t half[2] = {};  // what was filled in: call * rounds + round + 1
    std::uint8_t filled[2] = {};
    std::uint8_t sequence[2] = {};
    std::uint8_t call = 0;
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

enum At : std::uint8_t { set_back, post, late_set_back, see_post, fill, store_filled, see_filled, read };

inline int slot_of(const Model& m, const Rank& self) { return m.lacks(Without::second_slot) ? 0 : self.call % 2; }
inline std::uint8_t& half(const Model& m, State& s, int rank, int round) {
  return s.rank[rank].half[m.lacks(Without::second_half) ? 0 : round % 2];
}
inline std::uint8_t content_of(const Model& m, const Rank& self) {
  return static_cast<std::uint8_t>(self.call * m.rounds + self.round + 1);
}

// On to the next rank; after the last one, to the next line.
inline Flow turn(const Model& m, State& s, int me, std::uint8_t line) {
  if (++s.rank[me].peer < m.ranks) return jump(line);
  s.rank[me].peer = 0;
  return next();
}

inline void store(const Model& m, State& s, int me) {
  Rank& self = s.rank[me];
  self.filled[slot_of(m, self)] = static_cast<std::uint8_t>(self.round + 1);
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
    {fill, "begins to fill its half",
     [](const Model& m, State& s, int me, int) {
       half(m, s, me, s.rank[me].round) = kTorn;
       if (m.lacks(Without::fill_before_filled)) store(m, s, me);
       return next();
     }},
    {store_filled, "has filled its half, and stores filled",
     [](const Model& m, State& s, int me, int) {
       half(m, s, me, s.rank[me].round) = content_of(m, s.rank[me]);
       if (!m.lacks(Without::count_of_empty_share) || me != 0) store(m, s, me);
       return next();
     }},
    {see_filled, "looks what a rank has filled",
     [](const Model& m, State& s, int me, int) {
       const Rank& self = s.rank[me];
       if (m.lacks(Without::wait_until_filled)) return next();
       const bool asks = !m.lacks(Without::filled_of_all) || self.peer == me;
       if (asks && s.rank[self.peer].filled[slot_of(m, self)] < self.round + 1) return blocked();
       return turn(m, s, me, see_filled);
     }},
    {read, "reads the half of a rank",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       const std::uint8_t content = half(m, s, self.peer, self.round), wanted = content_of(m, self);
       if (content == kTorn) return broken("reads a half while its owner fills it");
       if (content > wanted) return broken("a half was filled again before it was read");
       if (content < wanted) return broken("reads a half before it is filled");
       if (++self.peer < m.ranks) return jump(read);
       self.peer = 0;
       if (++self.round < m.rounds) return jump(fill);
       self.round = 0;
       return ++self.call == m.calls ? end() : jump(set_back);
     }},
};

}  // namespace staging

inline std::span<const Line<StagingModel>> StagingModel::program(int) const { return staging::kRank; }

}  // namespace zerocomm::test
