// A world of ranks without threads: each has its machines, all share a table of words, shards and slots. One move is
// the smallest thing that can be seen from outside (start or end of a copy, of a write, of a reduction; one wait
// passed). The world chooses moves at random and checks, at every move, what docs/protocol.md promises.
#pragma once

#include "property/zero/history.hpp"
#include "zero/publication.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace zerocomm::test {

// Waits left out on purpose: the driver's, never the machines'.
struct Faults {
  bool no_done_wait = false;
  bool no_published_wait = false;
  bool no_drain = false;
  bool done_before_drain = false;
  bool keep_cache = false;
  bool no_reserved_slot = false;
  bool free_at_arrival = false;  // a slot is freed when its bucket is complete everywhere, not when it is reduced
  bool end_when_granted = false;
};

// How often a run came to corners that matter; sums tell whether the histories are worth their time.
struct Reached {
  std::size_t retries = 0, busy = 0, made_room = 0, refused = 0, evictions = 0, ahead = 0, wasted = 0;
  std::size_t reserved_slots = 0, empty_arrivals = 0, late_readers = 0;
};

class World {
 public:
  World(const History& history, const Faults& faults, std::uint64_t seed);

  // Runs to the end. What went wrong, with the last moves; empty if nothing did.
  std::string run();
  const Reached& reached() const { return reached_; }

 private:
  struct Validity {  // generations for which the content holds; none while it is being written
    std::uint64_t first = 0, last = 0;
  };
  struct Fetch {
    std::size_t unit = 0;
    std::uint64_t generation = 0;
    std::size_t owner = 0;  // copied next
    bool started = false;
  };
  enum class State : std::uint8_t { between, acquiring, reading, ending, acting, writing };
  enum class Wait : std::uint8_t { none, resident, landing, quiet };  // quiet: nothing is being fetched
  struct Rank {
    Rank(const History& history, const zero::ReducerConfig& config)
        : publication(history.stage), reducer(history.layout, config), fetcher(history.layout, history.fetcher) {}
    zero::Publication publication;
    zero::Reducer reducer;
    zero::Fetcher fetcher;
    std::size_t next_op = 0;
    State state = State::between;
    // acquiring
    Wait wait = Wait::none;
    std::size_t need = 0;      // position in the unit's needs
    bool all_pinned = false;   // all needs are pinned, some not yet resident
    std::size_t landings = 0;  // fetches that have ended, and how many had when the wait began
    std::size_t landings_seen = 0;
    std::set<std::size_t> refused;  // keys of acquires that met BUDGET
    // own memory
    std::vector<std::size_t> holds;             // by unit
    std::map<std::size_t, std::size_t> places;  // unit in the arena or persistent memory: offset
    std::vector<std::uint64_t> generation_of;   // by unit
    std::vector<Fetch> fetches;                 // under way
    // acting
    std::vector<zero::Action> actions;
    std::size_t action = 0;
    std::size_t substep = 0;
    // gradients
    bool stirred = false;  // something happened since the last look at the buckets
    std::vector<zc_phase> phases;
  };
  struct Arrival {
    bool present = false;
    std::uint64_t pass = 0;
    std::uint32_t slot = 0;
  };
  struct Slot {
    std::size_t bucket = 0;
    std::uint64_t pass = 0;
    std::uint64_t sum = 0;
  };
  struct Bucket {
    std::vector<Arrival> arrivals;  // by rank
    std::uint64_t completed = 0;
    bool reducing = false;
    std::uint64_t incoming = 0;         // sum that the present reduction read
    std::vector<std::uint64_t> passes;  // in the accumulator
    std::uint64_t sum = 0;              // of the accumulator
  };
  enum class Kind : std::uint8_t { program, copy, look, reduce };
  struct Move {
    Kind kind{};
    std::size_t rank = 0;  // of reduce: the bucket
    std::size_t index = 0;
    std::size_t weight = 1;
  };

  void collect();
  void apply(const Move& move);
  bool can_step(std::size_t r) const;
  void step(std::size_t r);
  void start_op(std::size_t r, const Op& op);
  void finish_op(Rank& rank);
  void fail(const std::string& what);
  std::string history_text() const;

  // world_fetch.cpp
  void begin_acquire(std::size_t r);
  void continue_acquire(std::size_t r);
  bool pin(std::size_t r, std::size_t unit);
  void pin_all(std::size_t r);
  void check_held(const Rank& rank);
  void check_unit(std::size_t r, std::size_t unit);
  void release(std::size_t r, const Op& op);
  void unpin(std::size_t r, std::size_t unit);
  void fetch_ahead(std::size_t r);
  void obey(std::size_t r, const zero::Plan& plan);
  void take_out(std::size_t r, const zero::Plan& plan);
  bool can_copy(const Fetch& fetch) const;
  void copy(std::size_t r, std::size_t index);
  void read_replica(std::size_t r);

  // world_update.cpp
  void act(std::size_t r);
  bool may_act(const Rank& rank, const zero::Action& action) const;
  void write(std::size_t r);
  void pull(std::size_t r);
  void start_actions(std::size_t r, const zero::Verdict& verdict);
  void mark_unchanged(std::size_t r);

  // world_reduce.cpp
  void report(std::size_t r, const Op& op);
  void look(std::size_t r);
  void grant(std::size_t r);
  bool may_end(const Rank& rank) const;
  void finish_end(std::size_t r);
  bool complete(const Bucket& bucket) const;
  void reduce(std::size_t b);
  std::uint64_t value(std::size_t r, std::size_t use, std::uint64_t pass) const;
  void check_slots(std::size_t b);

  const History history_;
  const Faults faults_;
  Random random_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::uint64_t> published_;         // words, by rank
  std::vector<std::uint64_t> done_;              // generation + 1, by rank
  std::vector<std::optional<Validity>> shards_;  // by owner
  std::vector<std::vector<Validity>> replicas_;  // stages 1, 2: [rank][owner]
  std::vector<Bucket> buckets_;
  std::vector<std::vector<Slot>> slots_;          // [rank][slot]
  std::set<std::vector<std::uint64_t>> present_;  // (rank, use, pass) reported ready
  std::vector<Move> moves_;
  std::vector<Move> past_;
  std::string failure_;
  Reached reached_;
};

// Runs random histories, one for each seed: the first failure that contains `what`, with its seed; empty if there is
// none.
std::string first_failure(const Faults& faults, std::uint64_t first_seed, std::uint64_t count,
                          const std::string& what = {});

}  // namespace zerocomm::test
