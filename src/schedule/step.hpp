// Collective schedules as plain data. Read this file first; docs/schedules.md explains the rules.
//
// A schedule says, for every rank, which steps move and add which chunks. It holds no pointer, byte count, element
// type, operation or time, so one schedule serves every call with the same (collective, algorithm, ranks, root,
// chunks, lanes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace zerocomm::schedule {

// The collectives that have schedules.
enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  barrier,
  reduce,
  all_to_all,
  gather_to_root,
  scatter_from_root,
};
inline constexpr std::size_t kCollectives = 9;

// The five things a rank can do.
enum class Op : std::uint8_t {
  send,         // post chunks [src] to `peer`; goes on at once, the peer may read the memory later
  recv,         // wait for the next message of `peer`; it becomes [dst]
  recv_reduce,  // wait for the next message of `peer`; [dst] becomes [dst] + message
  copy,         // [dst] becomes [src]
  reduce,       // [dst] becomes [dst] + [src]
};

// A chunk number means the same elements in `input` and `output` of every rank, whether or not a rank holds that
// chunk. In place therefore means: chunk c of input and chunk c of output are the same memory. `scratch` has its own
// numbers; each of its slots has room for any one chunk. contract.hpp says which chunks a rank has.
enum class Buf : std::uint8_t { none, input, output, scratch };

// hold: this step leaves its result in an accumulator of the lane, unrounded, and writes no memory. The next step of
// the lane must reduce into the same chunks; the first step without hold rounds once and stores. Such a run is what one
// pass over all contributions can do.
inline constexpr std::uint8_t kOpMask = 0x07;
inline constexpr std::uint8_t kHold = 0x80;

// No wait. A wait names one step of another lane of the same rank: lane in the top 8 bits, step below.
inline constexpr std::uint32_t kNoWait = 0xffffffffu;
inline constexpr std::uint32_t kMaxLanes = 255;
inline constexpr std::uint32_t kMaxSteps = 1u << 24;  // in one lane
constexpr std::uint32_t wait_for(std::uint32_t lane, std::uint32_t step) { return lane << 24 | step; }
constexpr std::uint32_t wait_lane(std::uint32_t wait) { return wait >> 24; }
constexpr std::uint32_t wait_step(std::uint32_t wait) { return wait & 0xffffffu; }

// One step. Fields that an op does not use keep the values given here.
struct Step {
  std::uint8_t op_flags = 0;
  Buf src_buf = Buf::none;
  Buf dst_buf = Buf::none;
  std::uint8_t codec = 0;       // 0: elements travel as they are, else lossy; both ends of a message name the same one
  std::uint32_t peer = 0;       // send, recv, recv_reduce
  std::uint32_t src_chunk = 0;  // first of n_chunks
  std::uint32_t dst_chunk = 0;  // first of n_chunks
  std::uint32_t n_chunks = 0;   // travel as one message; 0 is a message without data, which only orders
  std::uint32_t wait = kNoWait;

  constexpr Op op() const { return static_cast<Op>(op_flags & kOpMask); }
  constexpr bool hold() const { return (op_flags & kHold) != 0; }
  constexpr bool receives() const { return op() == Op::recv || op() == Op::recv_reduce; }
  constexpr bool reduces() const { return op() == Op::reduce || op() == Op::recv_reduce; }
  friend bool operator==(const Step&, const Step&) = default;
};
static_assert(sizeof(Step) == 24 && std::is_trivially_copyable_v<Step>);

// Steps in order. Messages from rank a to rank b in lane l arrive in the order of sending. Lanes, messages and waits
// order steps; nothing else does.
struct Lane {
  std::vector<Step> steps;
  friend bool operator==(const Lane&, const Lane&) = default;
};

// What one rank does.
struct RankSchedule {
  std::vector<Lane> lanes;
  friend bool operator==(const RankSchedule&, const RankSchedule&) = default;
};

// What a schedule depends on: the key of a cache.
struct Key {
  Collective collective = Collective::barrier;
  std::string algorithm;
  std::uint32_t ranks = 1;
  std::uint32_t root = 0;    // of rooted collectives, else 0
  std::uint32_t chunks = 0;  // of the whole vector
  std::uint32_t lanes = 1;
  friend bool operator==(const Key&, const Key&) = default;
};

// What all ranks do.
struct Schedule {
  Key key;
  std::uint32_t scratch_chunks = 0;  // slots of scratch on each rank
  std::vector<RankSchedule> ranks;
  std::uint32_t loss = 0;  // most lossy encodings that a contribution meets on its way to any output
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// Where a step stands.
struct StepRef {
  std::uint32_t rank = 0;
  std::uint32_t lane = 0;
  std::uint32_t step = 0;
  friend bool operator==(const StepRef&, const StepRef&) = default;
};

inline const Step& step_at(const Schedule& schedule, StepRef at) {
  return schedule.ranks[at.rank].lanes[at.lane].steps[at.step];
}

}  // namespace zerocomm::schedule
