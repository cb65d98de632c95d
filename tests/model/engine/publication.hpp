// Model of the publication of parameters (src/zero/publication.cpp, src/engine/engine_update.cpp, engine_fetch.cpp):
// generations, the words `published` and `done`, copies out of other ranks' shards, the owner's cycle.
//
// Rank r is thread r and runs a program; a second thread of it (thread 3 + r) fetches ahead whenever it may. What a
// shard holds is the generations for which it is right, and nothing while it is being written. An owner whose deadline
// passes in update_begin returns an error, and its caller goes on to write: the shards of a rank stay its own.
#pragma once

#include "model/explorer.hpp"

#include <cctype>
#include <string>

namespace zerocomm::test {

struct PublicationModel {
  static constexpr int kMostRanks = 3, kMostEngines = 2, kFate = 2 * kMostRanks, kThreads = kFate + 1;

  enum class Without : std::uint8_t {
    nothing,
    wait_for_owners,
    wait_for_readers,
    drain,
    drain_before_done,
    drop,
    check_with_plan,
    refused_begin,
    refused_update_while_held,
    done_of_publish_unchanged,
    check_of_changes,
    wait_before_pull,
    check_after_copy,
  };

  int ranks = 2;
  // One letter per call; capitals for a second engine:
  //   b begin  e end  a acquire and release  h hold (a view of the shards)  r release
  //   u update_begin  w write  p publish  n publish_unchanged  l publish in stages 1 and 2 (pulls)  s use the replica
  const char* programs[kMostRanks] = {"", "", ""};
  int ahead = 0;      // fetches ahead of each rank, of the first engine
  int deadlines = 0;  // that may pass in update_begin
  Without without = Without::nothing;

  struct Engine {  // of one rank
    // Shared.
    std::uint8_t published = 0;
    std::uint8_t history = 0;  // bit i: was generation published - i changed?
    std::uint8_t done = 0;     // generation + 1
    std::uint8_t first = 0;    // generations for which the shard is right: first to last
    std::uint8_t last = 0;
    std::uint8_t torn = 0;
    // Its own.
    std::uint8_t pinned = 0;
    std::uint8_t pass = 0;
    std::uint8_t update = 0;  // closed: from update_begin to publish
    std::uint8_t held = 0;
    std::uint8_t cached = 0;  // generation + 1 of the gathered copy
    std::uint8_t fetching = 0;
    std::uint8_t replica[kMostRanks] = {};  // generation of what each rank owns
  };
  struct Thread {
    std::uint8_t op = 0;  // of the main thread: place in its program; of the other: fetches done
    std::uint8_t peer = 0;
    std::uint8_t generation = 0;  // that it fetches
    std::uint8_t changes = 0;     // bit 0: some part was unchanged, bit 1: some part was changed
    std::uint8_t expired = 0;
    std::uint8_t spoilt = 0;  // it has read what its owner wrote after an error
  };
  struct State {
    std::uint8_t at[kThreads] = {};
    Engine engine[kMostEngines][kMostRanks];
    Thread thread[kFate];
    std::uint8_t failed = 0;  // a mismatch or an error: every call returns it
    std::uint8_t deadlines = 0;
  };

  State start() const;
  int threads() const { return kThreads; }
  std::string who(int thread) const {
    if (thread == kFate) return "fate";
    return (thread < kMostRanks ? "rank " : "second thread of rank ") + std::to_string(thread % kMostRanks);
  }
  std::string note(const State& state, int thread, int choice) const;
  const char* wrong(const State& state) const {
    for (const auto& engine : state.engine)
      for (int owner = 0; owner < ranks && state.failed == 0; ++owner)
        for (int reader = 0; reader < ranks && engine[owner].torn != 0; ++reader)
          if (engine[reader].done <= engine[owner].published) return "writes a shard that a rank is not done with";
    return nullptr;
  }
  const char* stuck(const State& state) const;
  std::span<const Line<PublicationModel>> program(int thread) const;
  bool lacks(Without what) const { return without == what; }
};

namespace publication {

using Model = PublicationModel;
using State = Model::State;
using Engine = Model::Engine;
using Thread = Model::Thread;
using Without = Model::Without;

enum At : std::uint8_t {
  call,
  see_published,
  see_change,
  copy,
  land,
  drain,
  set_done,
  drain_late,
  see_done,
  end_write,
  publish,
  see_all_published,
  pull,
  look_ahead,
  fetch_ahead,
};

inline char op_of(const Model& m, const State& s, int me) {
  return me < Model::kMostRanks ? m.programs[me][s.thread[me].op] : 'a';
}
inline Engine* engines_of(const Model& m, State& s, int me) {
  return s.engine[std::isupper(static_cast<unsigned char>(op_of(m, s, me))) != 0 ? 1 : 0];
}
inline Engine& own(const Model& m, State& s, int me) { return engines_of(m, s, me)[me % Model::kMostRanks]; }

// On to the next call of the program, or of the fetches ahead.
inline Flow done_with(const Model& m, State& s, int me) {
  Thread& self = s.thread[me];
  const auto op = static_cast<std::uint8_t>(self.op + 1);
  self = {op, 0, 0, 0, self.expired, 0};
  if (me < Model::kMostRanks) return m.programs[me][op] == '\0' ? end() : jump(call);
  return op == m.ahead ? end() : jump(look_ahead);
}

inline Flow turn(const Model& m, State& s, int me, std::uint8_t again, std::uint8_t after) {
  if (++s.thread[me].peer < m.ranks) return jump(again);
  s.thread[me].peer = 0;
  return jump(after);
}

// A failure ends every call, and here every program.
inline Flow wait(const State& s) { return s.failed != 0 ? end() : blocked(); }

inline bool is_changed(const Engine& owner, int generation) {
  return (owner.history >> (owner.published - generation) & 1) != 0;
}

// Reads a part of another rank: nullptr, or what is wrong with it.
inline const char* read(const Engine& owner, int generation) {
  if (owner.torn != 0) return "reads a shard while its owner writes it";
  if (generation < owner.first || generation > owner.last) return "reads another generation than it pinned";
  return nullptr;
}

inline Flow begin_fetch(State& s, int me, Engine& self, std::uint8_t line) {
  self.fetching = 1;
  s.thread[me].generation = self.pinned;
  return jump(line);
}

inline Flow begin_update(const Model& m, State& s, int me, Engine& self) {
  if (self.pass != 0 || (self.held != 0 && !m.lacks(Without::refused_update_while_held))) return done_with(m, s, me);
  self.update = 1;
  return jump(m.lacks(Without::drain_before_done) ? set_done : drain);
}

inline Flow run_call(const Model& m, State& s, int me, int) {
  if (s.failed != 0) return end();
  Engine& self = own(m, s, me);
  switch (std::tolower(static_cast<unsigned char>(op_of(m, s, me)))) {
    case 'b':
      if (self.update == 0 || m.lacks(Without::refused_begin)) {
        self.pass = 1;
        self.pinned = self.published;
      }
      return done_with(m, s, me);
    case 'e':
      self.pass = 0;
      return done_with(m, s, me);
    case 'a':
      if (self.pass == 0) return done_with(m, s, me);
      if (self.fetching != 0) return wait(s);
      if (self.cached == 0)
        return begin_fetch(s, me, self, m.lacks(Without::wait_for_owners) ? see_change : see_published);
      return self.cached == self.pinned + 1 ? done_with(m, s, me) : broken("uses a copy of another generation");
    case 'h':
      if (self.pass == 0) return done_with(m, s, me);
      for (int rank = 0; rank < m.ranks; ++rank) {
        const Engine& owner = engines_of(m, s, me)[rank];
        if (owner.published < self.pinned) return wait(s);
        if (const char* text = read(owner, self.pinned); text != nullptr) return broken(text);
      }
      self.held = 1;
      return done_with(m, s, me);
    case 'r':
      self.held = 0;
      return done_with(m, s, me);
    case 'u':
      return self.update != 0 ? done_with(m, s, me) : begin_update(m, s, me, self);
    case 'n':
      if (self.update == 0 && m.lacks(Without::done_of_publish_unchanged)) self.cached = 0;
      return self.update != 0 || m.lacks(Without::done_of_publish_unchanged) ? jump(publish)
                                                                             : begin_update(m, s, me, self);
    case 'w':
      if (self.update == 0) return done_with(m, s, me);
      for (int rank = 0; rank < m.ranks; ++rank)
        if (engines_of(m, s, me)[rank].held != 0) return broken("writes a shard that is held");
      self.torn = 1;
      return jump(end_write);
    case 's':
      for (int rank = 0; rank < m.ranks; ++rank)
        if (self.replica[rank] != self.published) return broken("uses a replica of another generation");
      return done_with(m, s, me);
    default:  // p, l
      return self.update == 0 ? done_with(m, s, me) : jump(publish);
  }
}

inline constexpr Line<Model> kLines[] = {
    {call, "calls ", &run_call},
    {see_published, "fetch: looks what a rank has published",
     [](const Model& m, State& s, int me, int) {
       const Thread& self = s.thread[me];
       if (engines_of(m, s, me)[self.peer].published < self.generation) return wait(s);
       return turn(m, s, me, see_published, see_change);
     }},
    {see_change, "looks how a rank published that generation",
     [](const Model& m, State& s, int me, int) {
       Thread& self = s.thread[me];
       const Engine& owner = engines_of(m, s, me)[self.peer];
       if (owner.published >= self.generation && self.generation > 0 && !m.lacks(Without::check_of_changes))
         self.changes = static_cast<std::uint8_t>(self.changes | (is_changed(owner, self.generation) ? 2 : 1));
       if (self.changes == 3) {
         s.failed = 1;
         return end();
       }
       const bool pulls = me < Model::kMostRanks && op_of(m, s, me) == 'l';
       const Flow flow = turn(m, s, me, see_change, pulls ? pull : copy);
       if (self.peer == 0) self.changes = 0;
       return flow;
     }},
    {copy, "fetch: copies a part from its owner",
     [](const Model& m, State& s, int me, int) {
       Thread& self = s.thread[me];
       const Engine& owner = engines_of(m, s, me)[self.peer];
       if (const char* text = read(owner, self.generation); text != nullptr) {
         if (s.failed == 0) return broken(text);
         self.spoilt = 1;
       }
       if (self.generation > 0 && self.spoilt == 0)
         self.changes = static_cast<std::uint8_t>(self.changes | (owner.first == self.generation ? 2 : 1));
       if (self.changes == 3) return broken("a unit mixes updated and unchanged parts");
       return turn(m, s, me, copy, land);
     }},
    {land, "fetch: has landed",
     [](const Model& m, State& s, int me, int) {
       Engine& self = own(m, s, me);
       if (s.failed != 0 && !m.lacks(Without::check_after_copy)) return end();
       if (s.thread[me].spoilt != 0) return broken("returns OK with what an owner wrote after an error");
       self.fetching = 0;
       self.cached = static_cast<std::uint8_t>(s.thread[me].generation + 1);
       return done_with(m, s, me);
     }},
    {drain, "update: waits for its own fetches, and drops copies",
     [](const Model& m, State& s, int me, int) {
       Engine& self = own(m, s, me);
       if (self.fetching != 0 && !m.lacks(Without::drain)) return wait(s);
       if (!m.lacks(Without::drop)) self.cached = 0;
       return next();
     }},
    {set_done, "update: stores done",
     [](const Model& m, State& s, int me, int) {
       Engine& self = own(m, s, me);
       self.done = static_cast<std::uint8_t>(self.published + 1);
       if (m.lacks(Without::drain_before_done)) return next();
       return jump(std::tolower(static_cast<unsigned char>(op_of(m, s, me))) == 'n' ? publish : see_done);
     }},
    {drain_late, "update: waits for its own fetches, and drops copies",
     [](const Model& m, State& s, int me, int) {
       Engine& self = own(m, s, me);
       if (self.fetching != 0) return wait(s);
       self.cached = 0;
       return next();
     }},
    {see_done, "update: looks what a rank is done with",
     [](const Model& m, State& s, int me, int) {
       if (m.lacks(Without::wait_for_readers)) return done_with(m, s, me);
       if (engines_of(m, s, me)[s.thread[me].peer].done <= own(m, s, me).published) {
         if (s.thread[me].expired == 0) return wait(s);
         s.failed = 1;
         own(m, s, me).torn = 1;  // its caller begins to write
         return end();
       }
       return s.thread[me].peer + 1 < m.ranks ? turn(m, s, me, see_done, see_done) : done_with(m, s, me);
     }},
    {end_write, "has written its shard",
     [](const Model& m, State& s, int me, int) {
       Engine& self = own(m, s, me);
       self.torn = 0;
       self.first = self.last = static_cast<std::uint8_t>(self.published + 1);
       return done_with(m, s, me);
     }},
    {publish, "stores published",
     [](const Model& m, State& s, int me, int) {
       Engine& self = own(m, s, me);
       const bool changed = std::tolower(static_cast<unsigned char>(op_of(m, s, me))) != 'n';
       self.published = self.last = static_cast<std::uint8_t>(self.published + 1);
       self.history = static_cast<std::uint8_t>(self.history << 1 | (changed ? 1 : 0));
       self.update = 0;
       if (op_of(m, s, me) != 'l') return done_with(m, s, me);
       s.thread[me].generation = self.published;
       return jump(m.lacks(Without::wait_before_pull) ? pull : see_all_published);
     }},
    {see_all_published, "publish: looks what a rank has published",
     [](const Model& m, State& s, int me, int) {
       const Thread& self = s.thread[me];
       if (engines_of(m, s, me)[self.peer].published < self.generation) return wait(s);
       return turn(m, s, me, see_all_published, see_change);
     }},
    {pull, "publish: pulls what a rank owns",
     [](const Model& m, State& s, int me, int) {
       const Thread& self = s.thread[me];
       if (const char* text = read(engines_of(m, s, me)[self.peer], self.generation); text != nullptr)
         return broken(text);
       own(m, s, me).replica[self.peer] = self.generation;
       return self.peer + 1 < m.ranks ? turn(m, s, me, pull, pull) : done_with(m, s, me);
     }},
    {look_ahead, "fetches ahead: may it?",
     [](const Model& m, State& s, int me, int) {
       Engine& self = own(m, s, me);
       if (self.pass == 0 || self.fetching != 0 || self.cached != 0) return blocked();
       for (int rank = 0; rank < m.ranks; ++rank)
         if (s.engine[0][rank].published < self.pinned) return blocked();
       return m.lacks(Without::check_with_plan) ? next() : begin_fetch(s, me, self, see_change);
     }},
    {fetch_ahead, "fetches ahead: begins",
     [](const Model& m, State& s, int me, int) { return begin_fetch(s, me, own(m, s, me), see_change); }},
};

inline constexpr Line<Model> kFate[] = {{0, "a deadline passes",
                                         [](const Model& m, State& s, int, int choice) {
                                           if (s.deadlines == m.deadlines || s.thread[choice].expired != 0)
                                             return blocked();
                                           ++s.deadlines;
                                           s.thread[choice].expired = 1;
                                           return jump(0);
                                         },
                                         Model::kMostRanks, true}};

}  // namespace publication

inline PublicationModel::State PublicationModel::start() const {
  State state;
  for (int rank = 0; rank < kMostRanks; ++rank) {
    if (rank >= ranks || *programs[rank] == '\0') state.at[rank] = kEnded;
    state.at[kMostRanks + rank] = rank < ranks && ahead > 0 ? std::uint8_t{publication::look_ahead} : kEnded;
  }
  return state;
}

inline std::string PublicationModel::note(const State& state, int thread, int choice) const {
  if (thread == kFate) return " (" + std::to_string(choice) + ")";
  if (state.at[thread] != publication::call) return " (" + std::to_string(state.thread[thread].peer) + ")";
  const char op = publication::op_of(*this, state, thread);
  static constexpr struct {
    char op;
    const char* name;
  } kNames[] = {{'b', "begin"},
                {'e', "end"},
                {'a', "acquire"},
                {'h', "acquire of a view"},
                {'r', "release"},
                {'u', "update_begin"},
                {'w', "write"},
                {'p', "publish"},
                {'n', "publish_unchanged"},
                {'l', "publish"},
                {'s', "the use of its replica"}};
  for (const auto& row : kNames)
    if (row.op == std::tolower(static_cast<unsigned char>(op))) return row.name;
  return "";
}

inline const char* PublicationModel::stuck(const State& state) const {
  for (int rank = 0; rank < ranks; ++rank)
    if (state.at[rank] != kEnded) return "a rank hangs";
  return nullptr;
}

inline std::span<const Line<PublicationModel>> PublicationModel::program(int thread) const {
  if (thread == kFate) return publication::kFate;
  return publication::kLines;
}

}  // namespace zerocomm::test
