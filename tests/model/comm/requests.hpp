// Model of the table of requests (src/comm/requests.cpp, request_steps.cpp): post, find, take, move, cancel, count
// oneself out, use the slot again.
//
// One rank is one thread, and its requests go on in any order: a line with many choices, each of which is one access to
// a slot. All keys have one hash, so that what is found has to be compared.
#pragma once

#include "model/explorer.hpp"

#include <string>

namespace zerocomm::test {

struct RequestTable {
  static constexpr int kMostRanks = 3, kMostKeys = 2, kMostSlots = 2;

  enum class Without : std::uint8_t {
    nothing,
    post_before_hash,
    post_before_key,
    comparison_of_keys,
    take,
    take_of_all,
    exchange_of_cancel,
    seen,
    seen_of_all,
    canceled_stays,
    wait_for_finished,
  };

  int ranks = 2;
  int keys = 1;
  int slots = 1;
  std::uint8_t reversed = 0;              // ranks (bits) that make their requests in the other order
  std::uint8_t cancels[kMostRanks] = {};  // keys (bits) that a rank may take back
  Without without = Without::nothing;

  enum Phase : std::uint8_t { none, writing, written, gathering, taking, moving, finished, over, freed };
  struct Slot {
    std::uint8_t hash = 0;  // 1: in use
    std::uint8_t key = 0;   // plus 1
    std::uint8_t post = 0;  // key + 1 whose post it holds, or torn
    std::uint8_t state = 0;
    std::uint8_t seen = 0;
    std::uint8_t finished = 0;
  };
  struct Request {
    std::uint8_t phase = none;
    std::uint8_t slot = 0;
    std::uint8_t place[kMostRanks] = {};  // plus 1
    std::uint8_t candidate = 0;           // rank * 4 + slot + 1, of the same hash
    std::uint8_t next = 0;                // ranks that it has taken, moved, seen finished
    std::uint8_t told = 0;
    std::uint8_t wasted = 0;  // it has looked at the slot of another key, once
  };
  struct State {
    std::uint8_t at[kMostRanks] = {};
    Slot slot[kMostRanks][kMostSlots];
    Request request[kMostRanks][kMostKeys];
    std::uint8_t made[kMostRanks] = {};
    std::uint8_t verdict[kMostKeys] = {};  // 1 agreed, 2 canceled
  };

  State start() const {
    State state;
    for (int rank = ranks; rank < kMostRanks; ++rank) state.at[rank] = kEnded;
    return state;
  }
  int threads() const { return kMostRanks; }
  std::string who(int thread) const { return "rank " + std::to_string(thread); }
  std::string note(const State&, int thread, int choice) const;
  const char* wrong(const State&) const { return nullptr; }
  const char* stuck(const State& state) const {
    for (int rank = 0; rank < ranks; ++rank)
      if (state.at[rank] != kEnded) return "a rank hangs";
    return nullptr;
  }
  std::span<const Line<RequestTable>> program(int thread) const;
  bool lacks(Without what) const { return without == what; }
};

namespace request_table {

using Model = RequestTable;
using State = Model::State;
using Slot = Model::Slot;
using Request = Model::Request;
using Without = Model::Without;

constexpr std::uint8_t kTorn = 0xff, kOpen = 0, kTaken = 1, kCanceled = 2;

// What a rank does with a request. Those with three choices are about a rank, find about a rank and a slot.
enum Action : int {
  write,
  end_write,
  reset,
  announce,
  find,
  compare = find + 6,
  see_canceled,
  take = see_canceled + 3,
  move,
  finish,
  see_finished,
  tell,
  free_slot = tell + 3,
  cancel,
  kActions
};

inline Slot& slot_of(State& s, int rank, const Request& of, int peer) {
  return s.slot[peer][peer == rank ? of.slot : of.place[peer] - 1];
}
inline bool has_all(const Model& m, const Request& of, int me) {
  for (int peer = 0; peer < m.ranks; ++peer)
    if (peer != me && of.place[peer] == 0) return false;
  return true;
}

inline Flow settle(State& s, int key, std::uint8_t verdict) {
  if (s.verdict[key] != 0 && s.verdict[key] != verdict) return broken("two ranks find different verdicts");
  s.verdict[key] = verdict;
  return jump(0);
}
inline Flow end_canceled(State& s, Request& request, int key) {
  request.phase = Model::over;
  return settle(s, key, 2);
}

inline Flow post(const Model& m, State& s, int me, int key, int action) {
  Request& request = s.request[me][key];
  if (action == write) {
    const int turn = (m.reversed >> me & 1) != 0 ? m.keys - 1 - s.made[me] : s.made[me];
    if (request.phase != Model::none || turn != key) return blocked();
    int slot = 0;
    while (slot < m.slots && s.slot[me][slot].hash != 0) ++slot;
    if (slot == m.slots) return blocked();  // AGAIN
    ++s.made[me];
    request.slot = static_cast<std::uint8_t>(slot);
    request.phase = Model::writing;
    Slot& own = s.slot[me][slot];
    own.post = kTorn;
    if (m.lacks(Without::post_before_key)) own.key = static_cast<std::uint8_t>(key + 1);
    own.hash = m.lacks(Without::post_before_hash) ? 1 : 2;  // 2: taken by its owner, not to be found yet
    if (own.hash == 1) own.key = static_cast<std::uint8_t>(key + 1);
    return jump(0);
  }
  Slot& own = s.slot[me][request.slot];
  const auto mine = static_cast<std::uint8_t>(key + 1);
  if (action == end_write && request.phase == Model::writing && own.post == kTorn) {
    own.post = mine;
    return jump(0);
  }
  if (action == reset && request.phase == Model::writing && own.post == mine) {
    own.state = kOpen;
    own.seen = own.finished = 0;
    request.phase = Model::written;
    return jump(0);
  }
  if (action == announce && request.phase == Model::written) {
    if (own.key != mine) {
      own.key = mine;
      return jump(0);
    }
    own.hash = 1;
    request.phase = Model::gathering;
    return jump(0);
  }
  return blocked();
}

inline Flow look_for(const Model& m, State& s, int me, int key, int action) {
  Request& request = s.request[me][key];
  const bool looks = request.phase == Model::gathering || request.phase == Model::over;
  if (action == compare) {
    if (request.candidate == 0) return blocked();
    const int peer = (request.candidate - 1) / 4, slot = (request.candidate - 1) % 4;
    if (s.slot[peer][slot].key == key + 1 || m.lacks(Without::comparison_of_keys))
      request.place[peer] = static_cast<std::uint8_t>(slot + 1);
    request.candidate = 0;
    return jump(0);
  }
  const int peer = (action - find) / Model::kMostSlots, slot = (action - find) % Model::kMostSlots;
  if (!looks || peer == me || peer >= m.ranks || slot >= m.slots || request.place[peer] != 0 ||
      request.candidate != 0 || s.slot[peer][slot].hash != 1)
    return blocked();
  const bool other = s.slot[peer][slot].key != key + 1;
  if (other && request.wasted != 0) return blocked();  // the library looks again only when that rank has posted more
  if (other) request.wasted = 1;
  request.candidate = static_cast<std::uint8_t>(4 * peer + slot + 1);
  return jump(0);
}

inline Flow meet(const Model& m, State& s, int me, int key, int action) {
  Request& request = s.request[me][key];
  const auto mine = static_cast<std::uint8_t>(key + 1);
  if (action >= see_canceled && action < take) {
    const int peer = action - see_canceled;
    if (request.phase != Model::gathering || peer >= m.ranks || peer == me || request.place[peer] == 0 ||
        request.candidate != 0 || slot_of(s, me, request, peer).state != kCanceled)
      return blocked();
    return end_canceled(s, request, key);
  }
  if (action == take) {
    if (request.candidate != 0 || !has_all(m, request, me)) return blocked();
    if (request.phase == Model::gathering) request.phase = Model::taking;
    if (request.phase != Model::taking) return blocked();
    Slot& which = slot_of(s, me, request, request.next);
    const bool takes = !m.lacks(Without::take) && (!m.lacks(Without::take_of_all) || request.next == me);
    if (takes && which.state == kCanceled) return end_canceled(s, request, key);
    if (takes) which.state = kTaken;
    if (++request.next < m.ranks) return jump(0);
    request.next = 0;
    request.phase = Model::moving;
    return settle(s, key, 1);
  }
  if (action == move && request.phase == Model::moving && request.next < m.ranks) {
    const Slot& which = slot_of(s, me, request, request.next);
    if (which.post == kTorn) return broken("reads a post while its owner writes it");
    if (which.post != mine) return broken("reads the post of another request");
    if (s.request[request.next][key].phase >= Model::over)
      return broken("uses a buffer after its owner's request was over");
    ++request.next;
    return jump(0);
  }
  if (action == finish && request.phase == Model::moving && request.next == m.ranks) {
    s.slot[me][request.slot].finished = mine;
    request.next = 0;
    request.phase = m.lacks(Without::wait_for_finished) ? Model::over : Model::finished;
    return jump(0);
  }
  if (action == see_finished && request.phase == Model::finished &&
      slot_of(s, me, request, request.next).finished == mine) {
    if (++request.next == m.ranks) request.phase = Model::over;
    return jump(0);
  }
  return blocked();
}

inline Flow leave(const Model& m, State& s, int me, int key, int action) {
  Request& request = s.request[me][key];
  if (action == cancel) {
    Slot& own = s.slot[me][request.slot];
    if ((m.cancels[me] >> key & 1) == 0 || request.phase != Model::gathering || request.candidate != 0)
      return blocked();
    if (own.state != kOpen && !m.lacks(Without::exchange_of_cancel)) return blocked();  // STATE
    own.state = kCanceled;
    if (m.lacks(Without::canceled_stays)) {
      own.hash = 0;
      request.phase = Model::freed;
      return settle(s, key, 2);
    }
    return end_canceled(s, request, key);
  }
  if (request.phase != Model::over || request.candidate != 0) return blocked();
  if (action == free_slot) {
    Slot& own = s.slot[me][request.slot];
    const int wanted = m.lacks(Without::seen) ? 0 : m.lacks(Without::seen_of_all) ? 1 : m.ranks - 1;
    int told = 0;
    for (int peer = 0; peer < m.ranks; ++peer) told += request.told >> peer & 1;
    if (told != m.ranks - 1 || own.seen < wanted) return blocked();
    own.hash = 0;
    request.phase = Model::freed;
    return jump(0);
  }
  const int peer = action - tell;
  if (peer >= m.ranks || peer == me || request.place[peer] == 0 || (request.told >> peer & 1) != 0) return blocked();
  ++slot_of(s, me, request, peer).seen;
  request.told = static_cast<std::uint8_t>(request.told | 1 << peer);
  return jump(0);
}

inline Flow go_on(const Model& m, State& s, int me, int choice) {
  const int key = choice / kActions, action = choice % kActions;
  if (key >= m.keys) {
    // Nothing is left to do: the last choice.
    for (int k = 0; k < m.keys; ++k)
      if (s.request[me][k].phase != Model::freed) return blocked();
    return end();
  }
  if (action <= announce) return post(m, s, me, key, action);
  if (action <= compare) return look_for(m, s, me, key, action);
  if (action <= see_finished) return meet(m, s, me, key, action);
  return leave(m, s, me, key, action);
}

constexpr std::uint8_t kChoices = Model::kMostKeys * kActions + 1;
inline constexpr Line<Model> kOne[] = {{0, "goes on",
                                        [](const Model& m, State& s, int me, int choice) {
                                          // A case of fewer keys has its last choice earlier.
                                          return go_on(m, s, me, choice == kChoices - 1 ? m.keys * kActions : choice);
                                        },
                                        kChoices}};

}  // namespace request_table

inline std::string RequestTable::note(const State&, int, int choice) const {
  constexpr const char* kNames[] = {"begins to write its post",
                                    "has written its post",
                                    "sets its slot back",
                                    "announces its post",
                                    "finds a hash at rank 0, slot 0",
                                    "finds a hash at rank 0, slot 1",
                                    "finds a hash at rank 1, slot 0",
                                    "finds a hash at rank 1, slot 1",
                                    "finds a hash at rank 2, slot 0",
                                    "finds a hash at rank 2, slot 1",
                                    "compares the key",
                                    "sees that rank 0 has canceled",
                                    "sees that rank 1 has canceled",
                                    "sees that rank 2 has canceled",
                                    "takes the next slot",
                                    "uses the next buffer",
                                    "stores finished",
                                    "sees the next rank finished",
                                    "counts itself at rank 0",
                                    "counts itself at rank 1",
                                    "counts itself at rank 2",
                                    "frees its slot",
                                    "cancels"};
  static_assert(std::size(kNames) == request_table::kActions);
  if (choice == request_table::kChoices - 1) return ": has nothing left to do";
  return ": key " + std::to_string(choice / request_table::kActions) + ", " + kNames[choice % request_table::kActions];
}

inline std::span<const Line<RequestTable>> RequestTable::program(int) const { return request_table::kOne; }

}  // namespace zerocomm::test
