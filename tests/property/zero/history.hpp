// Programs of several ranks that are legal together and yet differ in all that may differ.
#pragma once

#include "zero/fetcher.hpp"
#include "zero/reducer.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace zerocomm::test {

// Random numbers of a seed, or a list of choices that a property test made and may shrink; then numbers of a fixed
// seed.
class Random {
 public:
  using result_type = std::uint64_t;
  explicit Random(std::uint64_t seed) : numbers_(seed) {}
  explicit Random(std::vector<std::uint64_t> choices) : choices_(std::move(choices)), numbers_(1) {}
  static constexpr result_type min() { return std::mt19937_64::min(); }
  static constexpr result_type max() { return std::mt19937_64::max(); }
  result_type operator()() { return next_ < choices_.size() ? choices_[next_++] : numbers_(); }

 private:
  std::vector<std::uint64_t> choices_;
  std::size_t next_ = 0;
  std::mt19937_64 numbers_;
};

inline std::size_t below(Random& random, std::size_t limit) { return static_cast<std::size_t>(random() % limit); }
inline bool chance(Random& random, std::size_t percent) { return below(random, 100) < percent; }

enum class OpKind : std::uint8_t {
  begin,    // index: number of the pass's name
  acquire,  // index: unit; key: the same for its release
  release,
  hint,    // index: unit
  ready,   // index: use
  absent,  // index: use
  end,
  update_begin,
  write,
  publish,
  publish_unchanged,
};

struct Op {
  OpKind kind{};
  std::size_t index = 0;
  std::size_t key = 0;
  zc_phase phase = ZC_PHASE_NONE;
};
using Program = std::vector<Op>;

struct History {
  shard::Layout layout;
  zc_stage stage = ZC_STAGE_3;
  zero::ReducerConfig reducer;
  zero::FetcherConfig fetcher;
  std::int32_t most_micro_steps = 1;
  std::vector<Program> programs;        // by rank
  std::vector<std::size_t> speeds;      // by rank: how often it moves, relative to the others
  std::size_t copy_speed = 1;           // the same for copies under way
  std::size_t ahead_at_once = 0;        // fetches that a rank starts ahead after each release
  bool gradients_wait_for_end = false;  // a rank grants slots inside `end` only
};

History random_history(Random& random);

// One gradient pass per rank that visits these units and reports every use in this order; then a publication; and
// again.
History history_of(const shard::Layout& layout, const std::vector<std::vector<std::size_t>>& visits,
                   const std::vector<std::vector<std::size_t>>& reports);

}  // namespace zerocomm::test
