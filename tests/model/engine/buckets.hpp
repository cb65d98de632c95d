// Model of the gradients of an engine (src/engine/engine_reduce.cpp, src/zero/reducer.cpp): slots, arrivals, claims,
// slices, completion, and the end of a pass.
//
// Rank r is thread r; a second thread of it (thread 3 + r) only helps. What a rank sees of others it may have seen any
// time ago: looking at a count, handing over a bucket, taking a slice and leaving the library are choices of one line.
// A slice is looked for in one step: if its claim is free at the last look, nothing that was seen before has changed.
#pragma once

#include "model/explorer.hpp"

#include <string>

namespace zerocomm::test {

struct BucketsModel {
  static constexpr int kMostRanks = 3, kMostBuckets = 4, kMostSlots = 2, kThreads = 2 * kMostRanks;

  enum class Without : std::uint8_t {
    nothing,
    reserved_slot,
    slot_until_reduced,
    copy_before_arrival,
    pass_in_arrival,
    arrivals_of_all,
    exchange_of_claims,
    pass_in_claim,
    slice_in_hand_finished,
    one_addition,
    all_stored_before_completed,
    count_of_completed,
    end_until_reduced,
  };

  int ranks = 2;
  int buckets = 2;
  int slots = 1;
  int slices = 1;  // of each bucket; slice s is owned by rank s
  int passes = 1;
  const char* orders[kMostRanks] = {};  // in which each rank reports, such as "201"; none: every order
  int helpers = 0;                      // ranks that have a second thread
  Without without = Without::nothing;

  struct Rank {
    std::uint8_t pass = 0;      // passes that have ended here
    std::uint8_t reported = 0;  // one bit per bucket, as in the next two
    std::uint8_t granted = 0;
    std::uint8_t seen = 0;                 // known to be reduced
    std::uint8_t ending = 0;               // inside `end`
    std::uint8_t holder[kMostSlots] = {};  // bucket + 1 that a slot was granted to
    std::uint8_t data[kMostSlots] = {};    // pass and bucket whose gradients lie in it
  };
  struct Hand {  // of a thread
    std::uint8_t passes = 0;
    std::uint8_t bucket = 0;
    std::uint8_t place = 0;   // a slice, or the slot that it fills
    std::uint8_t stored = 0;  // as read, without `one_addition`
  };
  struct State {
    std::uint8_t at[kThreads] = {};
    Rank rank[kMostRanks];
    Hand hand[kThreads];
    std::uint8_t arrived[kMostRanks][kMostBuckets] = {};  // pass + 1, and the slot
    std::uint8_t claimed[kMostBuckets][kMostRanks] = {};  // pass + 1
    std::uint8_t stored[kMostBuckets] = {};
    std::uint8_t completed[kMostBuckets] = {};
    std::uint8_t sums[kMostBuckets][kMostRanks] = {};  // passes that are in the accumulator
  };

  State start() const;
  int threads() const { return kThreads; }
  std::string who(int thread) const {
    return (thread < kMostRanks ? "rank " : "helper of rank ") + std::to_string(thread % kMostRanks);
  }
  const char* wrong(const State& state) const {
    for (int bucket = 0; bucket < buckets; ++bucket)
      for (int slice = 0; slice < slices; ++slice)
        if (state.completed[bucket] > state.sums[bucket][slice]) return "a bucket is called reduced and is not";
    return nullptr;
  }
  const char* stuck(const State& state) const {
    for (int rank = 0; rank < ranks; ++rank)
      if (state.at[rank] != kEnded) return "a pass does not end";
    return nullptr;
  }
  std::span<const Line<BucketsModel>> program(int thread) const;
  bool lacks(Without what) const { return without == what; }
  unsigned all() const { return (1U << buckets) - 1; }
};

namespace buckets {

using Model = BucketsModel;
using State = Model::State;
using Rank = Model::Rank;
using Hand = Model::Hand;
using Without = Model::Without;

constexpr std::uint8_t kTorn = 0xff;

enum At : std::uint8_t { report, inside, arrive, copy_late, claim, reduce, count_stored, add_late, complete, end_pass };

inline bool has(unsigned set, int bucket) { return (set >> bucket & 1) != 0; }
inline void put(std::uint8_t& set, int bucket) { set = static_cast<std::uint8_t>(set | 1U << bucket); }
inline std::uint8_t content(int passes, int bucket) { return static_cast<std::uint8_t>(passes * 16 + bucket); }
inline int passes_of(std::uint8_t arrived) { return arrived >> 2; }
inline int slot_of(std::uint8_t arrived) { return arrived & 3; }

inline Rank& own(State& s, int me) { return s.rank[me % Model::kMostRanks]; }

inline bool all_arrived(const Model& m, const State& s, int me, int passes, int bucket) {
  for (int rank = 0; rank < m.ranks; ++rank) {
    const int seen = passes_of(s.arrived[rank][bucket]);
    if (m.lacks(Without::arrivals_of_all) && rank != me % Model::kMostRanks) continue;
    if (m.lacks(Without::pass_in_arrival) ? seen == 0 : seen != passes) return false;
  }
  return true;
}

inline bool is_reduced(const Model& m, const State& s, int me, int passes, int bucket) {
  if (m.lacks(Without::slot_until_reduced) && all_arrived(m, s, me, passes, bucket)) return true;
  return s.completed[bucket] >= (m.lacks(Without::count_of_completed) ? 1 : passes);
}

inline bool is_claimed(const Model& m, const State& s, int passes, int bucket, int slice) {
  const std::uint8_t word = s.claimed[bucket][slice];
  return m.lacks(Without::pass_in_claim) ? word != 0 : word >= passes;
}

// zero::Reducer::free_slot: all slots but the last, and the last for the lowest bucket not known to be reduced.
inline int free_slot(const Model& m, const Rank& self, int bucket) {
  int lowest = 0;
  while (has(self.seen, lowest)) ++lowest;
  for (int slot = 0; slot < m.slots; ++slot) {
    const bool open = slot < m.slots - 1 || bucket == lowest || m.lacks(Without::reserved_slot);
    if (self.holder[slot] == 0 && open) return slot;
  }
  return -1;
}

inline Flow take(State& s, int me, int bucket, int place, std::uint8_t line) {
  s.hand[me] = {static_cast<std::uint8_t>(own(s, me).pass + 1), static_cast<std::uint8_t>(bucket),
                static_cast<std::uint8_t>(place), 0};
  return jump(line);
}

inline Flow back(State& s, int me) {
  s.hand[me] = {};
  return jump(inside);
}

// zero::Reducer::next: the lowest bucket that is reported and not granted, if there is a slot for it.
inline Flow grant(const Model& m, State& s, int me) {
  Rank& self = own(s, me);
  for (int bucket = 0; bucket < m.buckets; ++bucket) {
    if (!has(self.reported, bucket) || has(self.granted, bucket)) continue;
    const int slot = free_slot(m, self, bucket);
    if (slot < 0) continue;
    put(self.granted, bucket);
    self.holder[slot] = static_cast<std::uint8_t>(bucket + 1);
    self.data[slot] = kTorn;
    return take(s, me, bucket, slot, arrive);
  }
  return blocked();
}

inline Flow observe(const Model& m, State& s, int me, int bucket) {
  Rank& self = own(s, me);
  if (bucket >= m.buckets || self.reported == 0 || has(self.seen, bucket)) return blocked();
  if (!is_reduced(m, s, me, self.pass + 1, bucket)) return blocked();
  put(self.seen, bucket);
  for (int slot = 0; slot < m.slots; ++slot)
    if (self.holder[slot] == bucket + 1) self.holder[slot] = self.data[slot] = 0;
  return jump(inside);
}

inline Flow look_for_slice(const Model& m, State& s, int me, int bucket, int slice) {
  const int passes = own(s, me).pass + 1;
  if (bucket >= m.buckets || slice >= m.slices || s.completed[bucket] >= passes) return blocked();
  if (!all_arrived(m, s, me, passes, bucket) || is_claimed(m, s, passes, bucket, slice)) return blocked();
  return take(s, me, bucket, slice, claim);
}

inline Flow leave(const Model& m, State& s, int me) {
  if (me >= Model::kMostRanks) return blocked();
  Rank& self = s.rank[me];
  if (self.reported != m.all()) return jump(report);
  if (self.ending == 0) {
    self.ending = 1;
    return jump(inside);
  }
  if (self.granted != m.all()) return blocked();
  return self.seen == m.all() || m.lacks(Without::end_until_reduced) ? jump(end_pass) : blocked();
}

constexpr int kObserve = 2, kSlices = kObserve + Model::kMostBuckets;
constexpr int kChoices = kSlices + Model::kMostBuckets * Model::kMostRanks;

inline constexpr Line<Model> kRank[] = {
    {report, "reports a bucket",
     [](const Model& m, State& s, int me, int choice) {
       Rank& self = s.rank[me];
       int bucket = choice;
       if (const char* order = m.orders[me]; order != nullptr) {
         if (choice != 0) return blocked();
         while (has(self.reported, *order - '0')) ++order;
         bucket = *order - '0';
       }
       if (bucket >= m.buckets || has(self.reported, bucket)) return blocked();
       if (self.reported == 0 && m.lacks(Without::count_of_completed))
         for (std::uint8_t& completed : s.completed) completed = 0;
       put(self.reported, bucket);
       return next();
     },
     Model::kMostBuckets},
    {inside, "is inside: leaves (0), hands a bucket over (1), looks at a count (2 to 5), looks for a slice (6 to 17)",
     [](const Model& m, State& s, int me, int choice) {
       if (choice == 0) return leave(m, s, me);
       if (choice == 1) return grant(m, s, me);
       if (choice < kSlices) return observe(m, s, me, choice - kObserve);
       return look_for_slice(m, s, me, (choice - kSlices) / Model::kMostRanks, (choice - kSlices) % Model::kMostRanks);
     },
     kChoices},
    {arrive, "has filled its slot, and stores its arrival",
     [](const Model& m, State& s, int me, int) {
       const Hand& hand = s.hand[me];
       s.arrived[me % Model::kMostRanks][hand.bucket] = static_cast<std::uint8_t>(hand.passes << 2 | hand.place);
       if (m.lacks(Without::copy_before_arrival)) return next();
       own(s, me).data[hand.place] = content(hand.passes, hand.bucket);
       return back(s, me);
     }},
    {copy_late, "has filled its slot",
     [](const Model&, State& s, int me, int) {
       const Hand& hand = s.hand[me];
       own(s, me).data[hand.place] = content(hand.passes, hand.bucket);
       return back(s, me);
     }},
    {claim, "claims a slice",
     [](const Model& m, State& s, int me, int) {
       const Hand& hand = s.hand[me];
       const bool taken = is_claimed(m, s, hand.passes, hand.bucket, hand.place);
       if (taken && !m.lacks(Without::exchange_of_claims)) return back(s, me);
       s.claimed[hand.bucket][hand.place] = hand.passes;
       bool all = m.lacks(Without::all_stored_before_completed);
       for (int slice = 0; slice < m.slices; ++slice) all = all && is_claimed(m, s, hand.passes, hand.bucket, slice);
       if (all) s.completed[hand.bucket] = hand.passes;
       const bool drops = m.lacks(Without::slice_in_hand_finished) && own(s, me).ending == 0;
       return drops ? back(s, me) : next();
     }},
    {reduce, "reduces its slice over all ranks",
     [](const Model& m, State& s, int me, int) {
       const Hand& hand = s.hand[me];
       for (int rank = 0; rank < m.ranks; ++rank) {
         const std::uint8_t data = s.rank[rank].data[slot_of(s.arrived[rank][hand.bucket])];
         if (data == kTorn) return broken("reads a slot while its owner fills it");
         if (data != content(hand.passes, hand.bucket)) return broken("reads a slot that holds something else");
       }
       if (s.rank[hand.place].pass + 1 != hand.passes) return broken("writes sums that their owner has not read");
       std::uint8_t& sum = s.sums[hand.bucket][hand.place];
       if (sum == hand.passes) return broken("a slice is reduced twice");
       if (sum + 1 != hand.passes) return broken("a pass is missing from the sums");
       sum = hand.passes;
       return next();
     }},
    {count_stored, "counts the slice as stored",
     [](const Model& m, State& s, int me, int) {
       Hand& hand = s.hand[me];
       std::uint8_t& stored = s.stored[hand.bucket];
       hand.stored = stored;
       if (m.lacks(Without::one_addition)) return next();
       ++stored;
       return stored == hand.passes * m.slices ? jump(complete) : back(s, me);
     }},
    {add_late, "counts the slice as stored",
     [](const Model& m, State& s, int me, int) {
       const Hand& hand = s.hand[me];
       std::uint8_t& stored = s.stored[hand.bucket];
       stored = static_cast<std::uint8_t>(hand.stored + 1);
       return stored == hand.passes * m.slices ? next() : back(s, me);
     }},
    {complete, "stores that the bucket is reduced",
     [](const Model&, State& s, int me, int) {
       s.completed[s.hand[me].bucket] = s.hand[me].passes;
       return back(s, me);
     }},
    {end_pass, "returns from end, and reads its sums",
     [](const Model& m, State& s, int me, int) {
       Rank& self = s.rank[me];
       for (int bucket = 0; bucket < m.buckets; ++bucket)
         if (me < m.slices && s.sums[bucket][me] != self.pass + 1) return broken("reads sums that are not complete");
       ++self.pass;
       self.reported = self.granted = self.seen = self.ending = 0;
       return self.pass == m.passes ? end() : jump(report);
     }},
};

}  // namespace buckets

inline BucketsModel::State BucketsModel::start() const {
  State state;
  for (int rank = 0; rank < kMostRanks; ++rank) {
    if (rank >= ranks) state.at[rank] = kEnded;
    state.at[kMostRanks + rank] = rank < helpers ? std::uint8_t{buckets::inside} : kEnded;
  }
  return state;
}

inline std::span<const Line<BucketsModel>> BucketsModel::program(int) const { return buckets::kRank; }

}  // namespace zerocomm::test
