// The words of an engine's window: what ranks tell each other. Pure arithmetic on indices and bits.
//
// Per rank: what it published and is done with, its present gradient pass, which uses it has reported, and per bucket
// the last pass that it has put into a slot. The entry of bucket b lives on rank b % ranks: one claim per slice, how
// many slices are stored, and how many passes are complete.
#pragma once

#include "shard/layout.hpp"

#include <cstddef>
#include <cstdint>

namespace zerocomm::engine {

class Words {
 public:
  explicit Words(const shard::Layout& layout)
      : ranks_(static_cast<std::size_t>(layout.ranks)),
        buckets_(layout.buckets.size()),
        report_words_((layout.uses.size() + 63) / 64) {}

  static constexpr std::size_t published() { return 0; }
  static constexpr std::size_t done() { return 1; }     // generation + 1 that this rank will never read again; 0: none
  static constexpr std::size_t pass() { return 2; }     // number of the present gradient pass + 1; 0: none yet
  static constexpr std::size_t failure() { return 3; }  // bucket + 1 whose arrivals disagree, or the below; 0: none
  static constexpr std::size_t called() {
    return 4;
  }  // when this rank last called the engine inside a pass, in ns; 0: no pass
  // Ranks published a generation in different ways.
  static constexpr std::uint64_t failure_of_generation(std::uint64_t generation) {
    return generation | std::uint64_t{1} << 63;
  }
  static constexpr bool is_of_generation(std::uint64_t failure) { return failure >> 63 != 0; }
  std::size_t arrived(std::size_t bucket) const { return kFixed + bucket; }
  std::size_t reported(std::size_t use) const { return kFixed + buckets_ + use / 64; }
  std::size_t report_words() const { return report_words_; }

  std::int32_t home(std::size_t bucket) const { return static_cast<std::int32_t>(bucket % ranks_); }
  std::size_t claim(std::size_t bucket, std::size_t slice) const { return entry(bucket) + slice; }
  std::size_t stored(std::size_t bucket) const { return entry(bucket) + ranks_; }
  std::size_t completed(std::size_t bucket) const { return entry(bucket) + ranks_ + 1; }

  std::size_t count() const {
    return kFixed + buckets_ + report_words_ + (buckets_ + ranks_ - 1) / ranks_ * (ranks_ + 2);
  }

 private:
  static constexpr std::size_t kFixed = 5;
  std::size_t entry(std::size_t bucket) const {
    return kFixed + buckets_ + report_words_ + bucket / ranks_ * (ranks_ + 2);
  }

  std::size_t ranks_;
  std::size_t buckets_;
  std::size_t report_words_;
};

// A rank's contribution to (bucket, pass). Trivial: arrays of it are not filled before they are read into.
struct Arrival {
  std::uint64_t passes;  // number of the pass + 1; 0: none yet
  std::uint32_t step;    // its number in the step (its lowest 9 bits), compared between ranks
  std::uint32_t phase;   // zc_phase, compared between ranks
  std::uint32_t slot;    // where it lies; 0xffff: zeros, nowhere
};
constexpr std::uint64_t pack_arrival(const Arrival& arrival) {
  return arrival.passes << 28 | std::uint64_t{arrival.step & 0x1ff} << 19 | std::uint64_t{arrival.phase & 7} << 16 |
         (arrival.slot & 0xffff);
}
constexpr Arrival unpack_arrival(std::uint64_t word) {
  return {word >> 28, static_cast<std::uint32_t>(word >> 19 & 0x1ff), static_cast<std::uint32_t>(word >> 16 & 7),
          static_cast<std::uint32_t>(word & 0xffff)};
}

// A claim on one slice of (bucket, pass) by a rank.
constexpr std::uint64_t pack_claim(std::uint64_t passes, std::int32_t rank) {
  return passes << 16 | static_cast<std::uint64_t>(rank + 1);
}
constexpr std::uint64_t claimed_passes(std::uint64_t word) { return word >> 16; }
constexpr std::int32_t claiming_rank(std::uint64_t word) { return static_cast<std::int32_t>(word & 0xffff) - 1; }

}  // namespace zerocomm::engine
