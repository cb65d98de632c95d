// The words that algorithms are written with. Each makes one step; lanes are plain vectors to push onto.
#pragma once

#include "schedule/contract.hpp"

namespace zerocomm::schedule {

// A place in a buffer: `n_chunks` chunks from `chunk` on.
struct At {
  Buf buf = Buf::none;
  std::uint32_t chunk = 0;
  std::uint32_t n_chunks = 0;
};
constexpr At input(ChunkRange range) { return {Buf::input, range.first, range.count}; }
constexpr At output(ChunkRange range) { return {Buf::output, range.first, range.count}; }
constexpr At scratch(ChunkRange range) { return {Buf::scratch, range.first, range.count}; }

constexpr Step make_step(Op op, std::uint32_t peer, At src, At dst) {
  Step step;
  step.op_flags = static_cast<std::uint8_t>(op);
  step.peer = peer;
  step.src_buf = src.buf;
  step.src_chunk = src.chunk;
  step.dst_buf = dst.buf;
  step.dst_chunk = dst.chunk;
  step.n_chunks = src.buf == Buf::none ? dst.n_chunks : src.n_chunks;
  return step;
}
// A default place makes a message without data.
constexpr Step send(std::uint32_t peer, At src = {}) { return make_step(Op::send, peer, src, {}); }
constexpr Step recv(std::uint32_t peer, At dst = {}) { return make_step(Op::recv, peer, {}, dst); }
constexpr Step recv_reduce(std::uint32_t peer, At dst) { return make_step(Op::recv_reduce, peer, {}, dst); }
// Source and destination have equally many chunks.
constexpr Step copy(At src, At dst) { return make_step(Op::copy, 0, src, dst); }
constexpr Step reduce(At src, At dst) { return make_step(Op::reduce, 0, src, dst); }

// The same step, with its result kept in the accumulator.
constexpr Step held(Step step) {
  step.op_flags |= kHold;
  return step;
}

// The same step, after a step of another lane of this rank.
constexpr Step after(Step step, std::uint32_t lane, std::uint32_t earlier) {
  step.wait = wait_for(lane, earlier);
  return step;
}

// Part `lane` of a range that is shared out evenly over lanes.
constexpr ChunkRange lane_part(ChunkRange range, std::uint32_t lane, std::uint32_t lanes) {
  const std::uint32_t base = range.count / lanes, extra = range.count % lanes;
  const std::uint32_t before = base * lane + (lane < extra ? lane : extra);
  return {range.first + before, base + (lane < extra ? 1u : 0u)};
}

// One lane of one rank, while its steps are written.
struct Place {
  const Key& key;
  std::uint32_t rank;
  std::uint32_t lane;
  ChunkRange part(ChunkRange range) const { return lane_part(range, lane, key.lanes); }
  ChunkRange block(std::uint32_t of_rank) const { return part(block_of(key, of_rank)); }
  std::uint32_t after_me(std::uint32_t distance) const {
    return static_cast<std::uint32_t>((std::uint64_t{rank} + distance) % key.ranks);
  }
  std::uint32_t before_me(std::uint32_t distance) const { return after_me(key.ranks - distance); }
};

// A rank's schedule from a function that writes the steps of one lane.
template <class WriteLane>
RankSchedule each_lane(const Key& key, std::uint32_t rank, WriteLane write_lane) {
  RankSchedule result;
  result.lanes.resize(key.lanes);
  for (std::uint32_t lane = 0; lane < key.lanes; ++lane) write_lane(Place{key, rank, lane}, result.lanes[lane].steps);
  return result;
}

// Blocks [start, start + n) modulo ranks, as the one or two ranges of blocks that lie side by side in memory. `offset`
// is how far into the n blocks a range begins.
struct BlockRun {
  std::uint32_t offset;
  ChunkRange blocks;
};
inline std::vector<BlockRun> wrapped_blocks(std::uint32_t start, std::uint32_t n, std::uint32_t ranks) {
  const std::uint32_t head = ranks - start;
  if (n <= head) return {{0, {start, n}}};
  return {{0, {start, head}}, {head, {0, n - head}}};
}

}  // namespace zerocomm::schedule
