// One rank's view of its buckets in a gradient pass: what is ready, which slot it gets, when it is over. Pure.
//
// Rules (zero.h, and "Slots" in docs/protocol.md): grad_ready never waits. With k slots, k - 1 are granted in any
// order; the last is reserved for the lowest-numbered bucket that is not yet reduced, so that two ranks that complete
// buckets in opposite orders cannot block each other. A slot is freed when its bucket's count of completed passes has
// advanced. Membership of buckets is the layout's; arrival order decides nothing.
#pragma once

#include "shard/layout.hpp"

#include <zerocomm/zero.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zerocomm::zero {

inline constexpr std::uint32_t kNoSlot = 0xffff;  // an arrival that brings zeros needs no slot

struct ReducerConfig {
  std::uint32_t slots = 2;  // >= 1; equal to the number of buckets: every bucket has its own, slot b is bucket b's
  bool own_slots = false;   // that case
  bool launch_at_end = false;
  bool absent_is_zero = false;
};

// Copy the members of `bucket` into `slot` (zeros where absent; kNoSlot: all absent) and announce its arrival.
struct Grant {
  std::size_t bucket = 0;
  std::uint32_t slot = 0;
};

class Reducer {
 public:
  Reducer(const shard::Layout& layout, const ReducerConfig& config);

  // Opens pass number `pass` (counted from 0 over all gradient passes that reduce). A pass that only collects is closed
  // without a grant; the next one opens under the same number.
  void begin(std::uint64_t pass);

  // One use's gradient (or a tied part's) is there / will not come. ARGUMENT for a frozen use; an empty one is accepted
  // and ignored. Twice in a pass, or outside one: STATE with the tensor's name. After an error nothing has changed.
  zc_status ready(std::size_t use, std::string* text);
  zc_status absent(std::size_t use, std::string* text);

  // The caller has entered `end`: missing uses become zeros, or are an error naming tensor (all of them, up to a few);
  // then nothing changed and the pass stays open.
  zc_status close(std::string* text);

  // The shared entry of `bucket` says that `completed` passes are reduced. Frees the own slot when that covers this
  // pass.
  void observe(std::size_t bucket, std::uint64_t completed);

  // The next bucket to copy in and announce, if one is complete and a slot is free under the rule. It counts as
  // granted.
  std::optional<Grant> next();

  // Every bucket of this pass is reduced and no slot is in use: `end` may return.
  bool finished() const;

  bool is_absent(std::size_t use) const;  // part reported absent (or never reported, after close) in this pass
  std::vector<std::size_t> missing(std::size_t bucket) const;  // uses (parts) not yet reported
  std::size_t lowest_unreduced() const;                        // number of buckets if none
  std::uint64_t pass() const { return pass_; }
  std::size_t bucket_count() const { return buckets_.size(); }
  bool granted(std::size_t bucket) const;
  bool reduced(std::size_t bucket) const;
  std::size_t reduced_count() const;

 private:
  enum class Part : std::uint8_t { waiting, ready, absent };
  struct BucketState {
    std::size_t waiting = 0;  // parts not yet reported
    std::size_t part_count = 0;
    std::size_t absent = 0;
    std::uint64_t completed = 0;  // passes
    std::uint32_t slot = kNoSlot;
    bool granted = false;
    bool in_slot = false;
  };
  zc_status report(std::size_t use, Part part, std::string* text);
  std::uint32_t free_slot(std::size_t bucket, std::size_t lowest) const;

  const shard::Layout* layout_;
  ReducerConfig config_;
  std::vector<BucketState> buckets_;
  std::vector<Part> parts_;             // by use
  std::vector<std::size_t> bucket_of_;  // by use, ties included; kNoIndex if none
  std::vector<std::uint8_t> slot_used_;
  std::uint64_t pass_ = 0;
  bool open_ = false;
  bool closing_ = false;
};

}  // namespace zerocomm::zero
