// Model of the frame of collectives (src/comm/collective.cpp): post, see all posts, agree, move, count the readers out.
//
// One rank is one thread. A record is written in two steps and torn between them; a buffer is lent from the post to the
// return of its owner's call. The first error is one word here (first_error.hpp has how it comes to stand).
#pragma once

#include "model/explorer.hpp"

#include <string>
#include <vector>

namespace zerocomm::test {

struct SequenceSlots {
  static constexpr int kMostRanks = 3, kMostCalls = 6, kKeeper = 3, kFate = 4, kThreads = 5;

  // A call that moves data, a barrier; and the same when one rank calls something else.
  enum class Call : std::uint8_t { data, barrier, odd_data, odd_barrier };
  // What a case leaves out.
  enum class Without : std::uint8_t {
    nothing,
    wait_for_posts,
    second_slot,
    record_before_sequence,
    agreement,
    agreement_with_all,
    finished_after_move,
    finished_of_empty_share,
    finished_set_back,
    wait_for_readers_out,
    busy_while_moving,
    busy_before_check,
    check_of_error,
    readers_after_failed_post,
    readers_after_late_check,
    readers_after_failed_end,
    death_of_readers,
    second_check_of_error,
  };

  int ranks = 2;
  std::vector<Call> calls;
  int deadlines = 0;  // how many ranks may run into theirs
  int deaths = 0;
  int stops = 0;  // ranks that may be stopped for a while; nobody waits for a reader that is
  Without without = Without::nothing;

  struct Rank {
    // Shared.
    std::uint8_t sequence[2] = {};
    std::uint8_t record[2] = {};
    std::uint8_t finished[2] = {};  // set back before each post
    std::uint8_t busy = 0;
    std::uint8_t lent = 0;  // call + 1 whose buffers others may use
    // Its own.
    std::uint8_t call = 0;
    std::uint8_t peer = 0;
    std::uint8_t differs = 0;
    std::uint8_t expired = 0;
    std::uint8_t dead = 0;
    std::uint8_t stopped = 0;  // 1: now, 2: it goes on again
    std::uint8_t place = 0;    // where it was stopped
    std::uint8_t spoilt = 0;   // it has read what was no longer lent
  };
  struct State {
    std::uint8_t at[kThreads] = {};
    Rank rank[kMostRanks];
    std::uint8_t error = 0;                 // the first error stands
    std::uint8_t verdict[kMostCalls] = {};  // of a call: 1 agreed, 2 mismatch
    std::uint8_t deadlines = 0;
    std::uint8_t deaths = 0;
    std::uint8_t stops = 0;
  };

  State start() const {
    State state;
    for (int rank = ranks; rank < kMostRanks; ++rank) state.at[rank] = kEnded;
    return state;
  }
  int threads() const { return kThreads; }
  std::string who(int thread) const {
    return thread == kKeeper ? "keeper" : thread == kFate ? "fate" : "rank " + std::to_string(thread);
  }
  const char* wrong(const State& state) const {
    for (int a = 0; a < ranks && state.error == 0; ++a)
      for (int b = 0; b < ranks; ++b)
        if (state.rank[a].call > state.rank[b].call + 1) return "a rank is two calls ahead of another";
    return nullptr;
  }
  const char* stuck(const State& state) const {
    for (int rank = 0; rank < ranks; ++rank)
      if (state.rank[rank].stopped == 1) return nullptr;  // deadlines will pass
    for (int rank = 0; rank < ranks; ++rank)
      if (state.at[rank] != kEnded) return "a rank hangs";
    return nullptr;
  }
  std::span<const Line<SequenceSlots>> program(int thread) const;

  bool lacks(Without what) const { return without == what; }
  int slot_of(const Rank& self) const { return lacks(Without::second_slot) ? 0 : self.call % 2; }
  bool moves(const Rank& self) const { return calls[self.call] == Call::data || calls[self.call] == Call::odd_data; }
  bool odd(std::size_t call) const { return calls[call] == Call::odd_data || calls[call] == Call::odd_barrier; }
};

namespace sequence_slots {

using Model = SequenceSlots;
using State = Model::State;
using Rank = Model::Rank;
using Without = Model::Without;

constexpr std::uint8_t kTorn = 0xff;

// In an odd call the last rank calls something else.
inline std::uint8_t record_of(const Model& m, std::uint8_t call, int rank) {
  return static_cast<std::uint8_t>(2 * call + 1 + (m.odd(call) && rank == m.ranks - 1));
}

enum At : std::uint8_t {
  begin,
  write_record,
  end_record,
  store_sequence,
  see_post,
  agree,
  announce,
  check_error,
  announce_late,
  move_bytes,
  check_again,
  leave,
  store_finished,
  see_finished,
  return_ok,
  failed_post,
  failed_check,
  failed_end,
  see_reader,
  return_error,
};

// The next rank after the present one that a loop over all others looks at; false when it has seen all.
inline bool turn(const Model& m, Rank& self, int me) {
  ++self.peer;
  if (self.peer == me) ++self.peer;
  return self.peer < m.ranks;
}
inline void first(Rank& self, int me) { self.peer = me == 0 ? 1 : 0; }

inline Flow see(const Model& m, State& s, int me, int choice, bool there, std::uint8_t seen_all, std::uint8_t failed) {
  Rank& self = s.rank[me];
  if (choice == 1) {  // the condition was false when it was looked at; now there is an error, or the time is up
    if (s.error == 0 && self.expired == 0) return blocked();
    s.error = 1;
    return jump(failed);
  }
  if (!there) return blocked();
  if (turn(m, self, me)) return jump(s.at[me]);
  first(self, me);
  return jump(seen_all);
}

inline constexpr Line<Model> kRank[] = {
    {begin, "begins a call: is the communicator alive?",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       if (self.call == m.calls.size() || s.error != 0) return end();
       self.lent = static_cast<std::uint8_t>(self.call + 1);
       first(self, me);
       return next();
     }},
    {write_record, "begins to write its record",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       self.record[m.slot_of(self)] = kTorn;
       if (!m.lacks(Without::finished_set_back)) self.finished[m.slot_of(self)] = 0;
       if (m.lacks(Without::record_before_sequence)) self.sequence[m.slot_of(self)] = self.lent;
       return next();
     }},
    {end_record, "has written its record",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       self.record[m.slot_of(self)] = record_of(m, self.call, me);
       return next();
     }},
    {store_sequence, "stores its sequence",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       self.sequence[m.slot_of(self)] = self.lent;
       return m.lacks(Without::wait_for_posts) ? jump(agree) : next();
     }},
    {see_post, "looks for a post",
     [](const Model& m, State& s, int me, int choice) {
       const Rank& self = s.rank[me];
       return see(m, s, me, choice, s.rank[self.peer].sequence[m.slot_of(self)] > self.call, agree, failed_post);
     },
     2},
    {agree, "compares a record with its own",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       const std::uint8_t record = s.rank[self.peer].record[m.slot_of(self)];
       if (record == kTorn) return broken("reads a record while its owner writes it");
       if ((record - 1) / 2 != self.call) return broken("reads the record of another call");
       const bool compares = !m.lacks(Without::agreement) && (!m.lacks(Without::agreement_with_all) || self.peer == 0);
       if (compares && record != record_of(m, self.call, me)) self.differs = 1;
       if (turn(m, self, me)) return jump(agree);
       first(self, me);
       const std::uint8_t verdict = self.differs != 0 ? 2 : 1;
       std::uint8_t& all = s.verdict[self.call];
       if (all != 0 && all != verdict) return broken("two ranks find different verdicts");
       all = verdict;
       return self.differs != 0 || !m.moves(self) ? jump(return_ok) : next();
     }},
    {announce, "counts itself as a reader",
     [](const Model& m, State& s, int me, int) {
       s.rank[me].busy = !m.lacks(Without::busy_while_moving) && !m.lacks(Without::busy_before_check);
       if (m.lacks(Without::finished_after_move)) s.rank[me].finished[m.slot_of(s.rank[me])] = 1;
       return next();
     }},
    {check_error, "looks for an error",
     [](const Model& m, State& s, int, int) {
       if (s.error != 0 && !m.lacks(Without::check_of_error)) return jump(failed_check);
       return m.lacks(Without::busy_before_check) ? next() : jump(move_bytes);
     }},
    {announce_late, "counts itself as a reader",
     [](const Model&, State& s, int me, int) {
       s.rank[me].busy = 1;
       return next();
     }},
    {move_bytes, "reads or writes a buffer of another rank",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       const Rank& peer = s.rank[self.peer];
       if (m.odd(self.call)) return broken("moves bytes in a call that was a mismatch");
       // The memory of a rank that died stays mapped, and nobody else gets it.
       if (peer.dead == 0 && peer.lent != self.lent) {
         if (self.stopped == 0) return broken("uses a buffer after its owner's call returned");
         self.spoilt = 1;  // it was given up
       } else if (peer.record[m.slot_of(self)] != self.record[m.slot_of(self)]) {
         return broken("finds the buffers of another call");
       }
       if (turn(m, self, me)) return jump(move_bytes);
       first(self, me);
       return next();
     }},
    {check_again, "looks for an error again",
     [](const Model& m, State& s, int, int) {
       return s.error != 0 && !m.lacks(Without::second_check_of_error) ? jump(failed_check) : next();
     }},
    {leave, "is no reader any more",
     [](const Model&, State& s, int me, int) {
       s.rank[me].busy = 0;
       return next();
     }},
    {store_finished, "stores finished",
     [](const Model& m, State& s, int me, int) {
       const bool empty = me == m.ranks - 1 && m.lacks(Without::finished_of_empty_share);
       if (!empty) s.rank[me].finished[m.slot_of(s.rank[me])] = 1;
       return m.lacks(Without::wait_for_readers_out) ? jump(return_ok) : next();
     }},
    {see_finished, "looks whether a rank has finished",
     [](const Model& m, State& s, int me, int choice) {
       const Rank& self = s.rank[me];
       return see(m, s, me, choice, s.rank[self.peer].finished[m.slot_of(self)] != 0, return_ok, failed_end);
     },
     2},
    {return_ok, "returns",
     [](const Model&, State& s, int me, int) {
       Rank& self = s.rank[me];
       if (self.spoilt != 0) return broken("returns OK with what it read after the owner's call returned");
       self.lent = 0;
       self.differs = 0;
       ++self.call;
       return jump(begin);
     }},
    {failed_post, "gives up its wait for posts",
     [](const Model& m, State& s, int me, int) {
       first(s.rank[me], me);
       return jump(m.lacks(Without::readers_after_failed_post) ? return_error : see_reader);
     }},
    {failed_check, "has seen an error before or after its move",
     [](const Model& m, State& s, int me, int) {
       s.rank[me].busy = 0;
       first(s.rank[me], me);
       return jump(m.lacks(Without::readers_after_late_check) ? return_error : see_reader);
     }},
    {failed_end, "gives up its wait for readers",
     [](const Model& m, State& s, int me, int) {
       first(s.rank[me], me);
       return jump(m.lacks(Without::readers_after_failed_end) ? return_error : see_reader);
     }},
    {see_reader, "looks whether a rank reads, for as long as it does",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       const Rank& peer = s.rank[self.peer];
       const bool given_up = (peer.dead != 0 && !m.lacks(Without::death_of_readers)) || peer.stopped == 1;
       if (peer.busy != 0 && !given_up) return blocked();
       return turn(m, self, me) ? jump(see_reader) : next();
     }},
    {return_error, "returns the error",
     [](const Model&, State& s, int me, int) {
       s.rank[me].lent = 0;
       return end();
     }},
};

// Somebody's keeper sees a death and records it.
inline constexpr Line<Model> kKeeper[] = {{0, "records a death", [](const Model& m, State& s, int, int) {
                                             for (int rank = 0; rank < m.ranks; ++rank)
                                               if (s.rank[rank].dead != 0 && s.error == 0) {
                                                 s.error = 1;
                                                 return jump(0);
                                               }
                                             return blocked();
                                           }}};

inline Flow let_happen(const Model& m, State& s, int, int choice) {
  const int rank = choice % Model::kMostRanks;
  Rank& which = s.rank[rank];
  if (rank >= m.ranks || (s.at[rank] == kEnded && which.stopped != 1)) return blocked();
  switch (choice / Model::kMostRanks) {
    case 0:
      if (s.deadlines == m.deadlines || which.expired != 0) return blocked();
      ++s.deadlines;
      which.expired = 1;
      break;
    case 1:
      if (s.deaths == m.deaths || which.stopped == 1) return blocked();
      ++s.deaths;
      which.dead = 1;
      s.at[rank] = kEnded;
      break;
    case 2:
      if (s.stops == m.stops || which.stopped != 0) return blocked();
      ++s.stops;
      which.stopped = 1;
      which.place = s.at[rank];
      s.at[rank] = kEnded;
      break;
    default:
      if (which.stopped != 1) return blocked();
      which.stopped = 2;
      s.at[rank] = which.place;
  }
  return jump(0);
}
inline constexpr Line<Model> kFate[] = {
    {0, "a deadline passes (0 to 2), a rank dies (3 to 5), is stopped (6 to 8) or goes on (9 to 11)", &let_happen, 12,
     true}};

}  // namespace sequence_slots

inline std::span<const Line<SequenceSlots>> SequenceSlots::program(int thread) const {
  if (thread == kKeeper) return sequence_slots::kKeeper;
  if (thread == kFate) return sequence_slots::kFate;
  return sequence_slots::kRank;
}

}  // namespace zerocomm::test
