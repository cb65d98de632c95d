// Model of the first error (Comm::record_first_error, Comm::wait, src/transport/keeper.cpp) among ranks that may die
// between any two steps.
//
// A rank writes its own record, makes it the first error with one compare-exchange of one word, and rings everybody,
// whether it was the first or not. Rank r has a caller (thread r), who posts, waits for all posts and destroys the
// communicator after its calls, and a keeper (thread 3 + r), who watches the next rank that has not left. Their bell is
// whole here (bell.hpp takes it apart): `rung` says that it was rung since the caller began to look.
#pragma once

#include "model/explorer.hpp"

#include <string>

namespace zerocomm::test {

struct FirstError {
  static constexpr int kMostRanks = 3, kAborter = 2 * kMostRanks, kFate = kAborter + 1, kThreads = kFate + 1;

  enum class Without : std::uint8_t {
    nothing,
    one_word,  // the form for threads: claim, write, say that it stands
    record_before_word,
    own_lock,
    look_before_writing,
    ring_when_not_first,
    ring,
    look_at_error,
    second_look_at_post,
    watch_beyond_who_left,
    keeper,
  };

  int ranks = 2;
  std::uint8_t calls[kMostRanks] = {1, 1, 1};  // of each rank
  int deaths = 0;
  int deadlines = 0;
  int aborts = 0;     // by rank 0, at any time
  bool late = false;  // the last rank may come or stay away; nobody need end before there is an error
  Without without = Without::nothing;

  struct Rank {
    // Shared.
    std::uint8_t word = 0;  // calls posted
    std::uint8_t detached = 0;
    std::uint8_t left = 0;
    std::uint8_t dead = 0;  // what the kernel makes of its liveness word
    std::uint8_t record = 0;
    // Of its process.
    std::uint8_t locked = 0;
    std::uint8_t leaving = 0;
    std::uint8_t expired = 0;
    // Of the caller.
    std::uint8_t call = 0;
    std::uint8_t peer = 0;
    std::uint8_t rung = 0;
    std::uint8_t sleeping = 0;
    // Of the keeper.
    std::uint8_t reported = 0;  // one bit per rank
    // What caller and keeper are recording, and whom they ring.
    std::uint8_t text[2] = {};
    std::uint8_t bell[2] = {};
  };
  struct State {
    std::uint8_t at[kThreads] = {};
    Rank rank[kMostRanks];
    std::uint8_t first = 0;   // rank + 1 of the first error; kAborted with it
    std::uint8_t stands = 0;  // in the form for threads
    std::uint8_t stood = 0;   // the record as it was when it became the first error
    std::uint8_t bell = 0;    // of the aborter
    std::uint8_t deaths = 0;
    std::uint8_t deadlines = 0;
  };

  State start() const;
  int threads() const { return kThreads; }
  std::string who(int thread) const;
  const char* wrong(const State&) const { return nullptr; }
  const char* stuck(const State& state) const;
  std::span<const Line<FirstError>> program(int thread) const;
  bool lacks(Without what) const { return without == what; }
};

namespace first_error {

using Model = FirstError;
using State = Model::State;
using Rank = Model::Rank;
using Without = Model::Without;

constexpr std::uint8_t kTorn = 0xff, kTimeout = 0x10, kLost = 0x20, kAborted = 0x80;

inline Rank& own(State& s, int me) { return s.rank[me % Model::kMostRanks]; }
inline bool is_keeper(int me) { return me >= Model::kMostRanks; }
inline bool is_dead(const Model& m, const State& s) { return (m.lacks(Without::one_word) ? s.stands : s.first) != 0; }

enum At : std::uint8_t {
  come,
  begin,
  post,
  ring_post,
  read_count,
  look,
  see_detached,
  look_again,
  see_error,
  sleep,
  asleep,
  lock,
  see_first,
  write_record,
  end_record,
  exchange,
  unlock,
  stand,
  ring_error,
  wait_until_it_stands,
  tell,
  detach,
  ring_detach,
  leave,
  wait_for_keeper,
  watch,
  let_go,
};

// Rings one bell; true when it was the last.
inline bool ring(const Model& m, State& s, std::uint8_t& bell) {
  Rank& heard = s.rank[bell];
  if (s.at[bell] != kEnded) heard.rung = 1;
  heard.sleeping = 0;
  bell = static_cast<std::uint8_t>((bell + 1) % m.ranks);
  return bell == 0;
}

inline Flow record(State& s, int me, int text) {
  own(s, me).text[is_keeper(me)] = static_cast<std::uint8_t>(text);
  return jump(lock);
}

// The rank that is waited for has left without coming.
inline Flow lose(State& s, int me) {
  const Rank& self = s.rank[me];
  if (s.rank[self.peer].word > self.call) return broken("PEER_LOST of a rank that has come");
  return record(s, me, kLost + self.peer);
}

inline constexpr Line<Model> kRank[] = {
    {come, "comes at last", [](const Model&, State&, int, int) { return next(); }, 1, true},
    {begin, "begins a call: is the communicator alive?",
     [](const Model& m, State& s, int me, int) {
       if (s.rank[me].call == m.calls[me]) return jump(detach);
       return is_dead(m, s) ? jump(tell) : next();
     }},
    {post, "posts",
     [](const Model&, State& s, int me, int) {
       s.rank[me].word = static_cast<std::uint8_t>(s.rank[me].call + 1);
       return next();
     }},
    {ring_post, "rings a bell",
     [](const Model& m, State& s, int me, int) { return ring(m, s, s.rank[me].bell[0]) ? next() : jump(ring_post); }},
    {read_count, "wait: reads the count of its bell",
     [](const Model&, State& s, int me, int) {
       s.rank[me].rung = 0;
       return next();
     }},
    {look, "wait: looks for a post",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       if (s.rank[self.peer].word <= self.call) return next();
       if (++self.peer < m.ranks) return jump(look);
       self.peer = 0;
       ++self.call;
       return jump(begin);
     }},
    {see_detached, "wait: looks whether that rank has destroyed its communicator",
     [](const Model& m, State& s, int me, int) {
       const Rank& self = s.rank[me];
       if (s.rank[self.peer].detached == 0) return jump(see_error);
       return m.lacks(Without::second_look_at_post) ? lose(s, me) : next();
     }},
    {look_again, "wait: looks for its post again",
     [](const Model&, State& s, int me, int) {
       const Rank& self = s.rank[me];
       return s.rank[self.peer].word > self.call ? jump(look) : lose(s, me);
     }},
    {see_error, "wait: looks for an error, then at the time",
     [](const Model& m, State& s, int me, int) {
       if (is_dead(m, s) && !m.lacks(Without::look_at_error)) return jump(tell);
       return s.rank[me].expired != 0 ? record(s, me, kTimeout) : next();
     }},
    {sleep, "wait: goes to sleep unless it was rung",
     [](const Model&, State& s, int me, int) {
       if (s.rank[me].rung != 0) return jump(read_count);
       s.rank[me].sleeping = 1;
       return next();
     }},
    {asleep, "wait: wakes up",
     [](const Model&, State& s, int me, int) {
       if (s.rank[me].sleeping != 0 && s.rank[me].expired == 0) return blocked();
       s.rank[me].sleeping = 0;
       return jump(read_count);
     }},
    {lock, "takes the lock of its rank's record",
     [](const Model& m, State& s, int me, int) {
       if (m.lacks(Without::own_lock)) return next();
       if (own(s, me).locked != 0) return blocked();
       own(s, me).locked = 1;
       return next();
     }},
    {see_first, "looks whether there is a first error already",
     [](const Model& m, State& s, int, int) {
       if (m.lacks(Without::one_word) || m.lacks(Without::record_before_word)) return jump(exchange);
       return s.first != 0 && !m.lacks(Without::look_before_writing) ? jump(unlock) : next();
     }},
    {write_record, "begins to write its record",
     [](const Model&, State& s, int me, int) {
       own(s, me).record = kTorn;
       return next();
     }},
    {end_record, "has written its record",
     [](const Model& m, State& s, int me, int) {
       Rank& self = own(s, me);
       self.record = self.text[is_keeper(me)];
       if (m.lacks(Without::record_before_word)) s.stood = self.record;
       return m.lacks(Without::one_word) ? jump(stand) : m.lacks(Without::record_before_word) ? jump(unlock) : next();
     }},
    {exchange, "makes its record the first error if there is none",
     [](const Model& m, State& s, int me, int) {
       const bool first = s.first == 0;
       if (first) {
         s.first = static_cast<std::uint8_t>(me % Model::kMostRanks + 1);
         s.stood = own(s, me).record;
       }
       if (m.lacks(Without::one_word)) return jump(first ? write_record : wait_until_it_stands);
       if (m.lacks(Without::record_before_word)) return jump(first ? write_record : unlock);
       return next();
     }},
    {unlock, "gives the lock back",
     [](const Model& m, State& s, int me, int) {
       Rank& self = own(s, me);
       self.locked = 0;
       if (m.lacks(Without::ring)) return jump(is_keeper(me) ? watch : tell);
       const bool was_first = s.first == me % Model::kMostRanks + 1;
       if (!was_first && m.lacks(Without::ring_when_not_first)) return jump(is_keeper(me) ? watch : tell);
       return jump(ring_error);
     }},
    {stand, "says that the record stands",
     [](const Model&, State& s, int me, int) {
       s.stands = 1;
       s.stood = own(s, me).record;
       return next();
     }},
    {ring_error, "rings a bell",
     [](const Model& m, State& s, int me, int) {
       if (!ring(m, s, own(s, me).bell[is_keeper(me)])) return jump(ring_error);
       return m.lacks(Without::one_word) ? next() : jump(is_keeper(me) ? watch : tell);
     }},
    {wait_until_it_stands, "waits until the record stands",
     [](const Model&, State& s, int me, int) {
       if (s.stands == 0) return blocked();
       return jump(is_keeper(me) ? watch : tell);
     }},
    {tell, "returns the first error",
     [](const Model&, State& s, int me, int) {
       Rank& self = s.rank[me];
       self.peer = 0;
       if ((s.first & kAborted) != 0) return next();
       const std::uint8_t record = s.rank[s.first - 1].record;
       if (record == kTorn || record == 0) return broken("reads a record before it is whole");
       if (record != s.stood) return broken("the first error has changed");
       if (record == kTimeout && s.rank[s.first - 1].expired == 0) return broken("TIMEOUT before the deadline");
       if (record >= kLost && s.rank[record - kLost].dead == 0 && s.rank[record - kLost].detached == 0)
         return broken("PEER_LOST of a rank that is there");
       return next();
     }},
    {detach, "destroys its communicator",
     [](const Model&, State& s, int me, int) {
       s.rank[me].detached = 1;
       return next();
     }},
    {ring_detach, "rings a bell",
     [](const Model& m, State& s, int me, int) { return ring(m, s, s.rank[me].bell[0]) ? next() : jump(ring_detach); }},
    {leave, "tells its keeper to leave",
     [](const Model&, State& s, int me, int) {
       s.rank[me].leaving = 1;
       return next();
     }},
    {wait_for_keeper, "waits for its keeper",
     [](const Model&, State& s, int me, int) {
       if (s.at[me + Model::kMostRanks] != kEnded) return blocked();
       s.rank[me].rung = 0;
       return end();
     }},
    {watch, "watches the next rank that has not left",
     [](const Model& m, State& s, int me, int) {
       Rank& self = own(s, me);
       if (self.leaving != 0) return next();
       if (m.lacks(Without::keeper)) return blocked();
       for (int step = 1; step < m.ranks; ++step) {
         const int rank = (me % Model::kMostRanks + step) % m.ranks;
         const Rank& other = s.rank[rank];
         if (other.left != 0) {
           if (m.lacks(Without::watch_beyond_who_left)) return blocked();
           continue;
         }
         if (other.dead == 0) return blocked();
         if ((self.reported >> rank & 1) != 0) continue;
         self.reported = static_cast<std::uint8_t>(self.reported | 1 << rank);
         return record(s, me, kLost + rank);
       }
       return blocked();
     }},
    {let_go, "lets go of its rank's word",
     [](const Model&, State& s, int me, int) {
       own(s, me).left = 1;
       return end();
     }},
};

// Rank 0's call of abort, from another thread or a signal handler.
inline constexpr Line<Model> kAbort[] = {
    {0, "aborts",
     [](const Model& m, State& s, int, int) {
       if (m.aborts == 0 || s.at[0] == kEnded) return blocked();
       if (s.first == 0) s.first = 1 | kAborted;
       return next();
     },
     1, true},
    {1, "rings a bell", [](const Model& m, State& s, int, int) { return ring(m, s, s.bell) ? end() : jump(1); }},
};

inline constexpr Line<Model> kFate[] = {{0, "a rank dies (0 to 2), or its deadline passes (3 to 5)",
                                         [](const Model& m, State& s, int, int choice) {
                                           const int rank = choice % Model::kMostRanks;
                                           if (rank >= m.ranks || s.at[rank] == kEnded) return blocked();
                                           Rank& which = s.rank[rank];
                                           if (choice < Model::kMostRanks) {
                                             if (s.deaths == m.deaths) return blocked();
                                             ++s.deaths;
                                             Rank dead;  // what others can see of it stays
                                             dead.word = which.word;
                                             dead.detached = which.detached;
                                             dead.left = which.left;
                                             dead.record = which.record;
                                             dead.expired = which.expired;
                                             dead.dead = 1;
                                             which = dead;
                                             s.at[rank] = s.at[rank + Model::kMostRanks] = kEnded;
                                             if (rank == 0) s.at[Model::kAborter] = kEnded;
                                           } else {
                                             if (s.deadlines == m.deadlines || which.expired != 0) return blocked();
                                             ++s.deadlines;
                                             which.expired = 1;
                                           }
                                           return jump(0);
                                         },
                                         6, true}};

}  // namespace first_error

inline FirstError::State FirstError::start() const {
  State state;
  for (int rank = 0; rank < kMostRanks; ++rank) {
    state.at[rank] = rank < ranks ? std::uint8_t{first_error::begin} : kEnded;
    state.at[kMostRanks + rank] = rank < ranks ? std::uint8_t{first_error::watch} : kEnded;
  }
  if (late) state.at[ranks - 1] = first_error::come;
  return state;
}

inline const char* FirstError::stuck(const State& state) const {
  bool excused = late && state.first == 0;
  for (const Rank& rank : state.rank) excused = excused && (rank.dead == 0 || rank.left != 0);
  for (int rank = 0; rank < ranks; ++rank) {
    if (state.at[rank] == kEnded && state.at[rank + kMostRanks] != kEnded) return "a keeper stays";
    if (state.at[rank] != kEnded && state.at[rank] != first_error::come && !excused) return "a survivor hangs";
  }
  return nullptr;
}

inline std::string FirstError::who(int thread) const {
  if (thread == kFate) return "fate";
  if (thread == kAborter) return "rank 0";
  return (thread < kMostRanks ? "rank " : "keeper of rank ") + std::to_string(thread % kMostRanks);
}

inline std::span<const Line<FirstError>> FirstError::program(int thread) const {
  if (thread == kFate) return first_error::kFate;
  if (thread == kAborter) return first_error::kAbort;
  return first_error::kRank;
}

}  // namespace zerocomm::test
