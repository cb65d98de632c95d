// V0: is it a schedule at all?
#include "base/check.hpp"
#include "schedule/contract.hpp"
#include "schedule/schedule_text.hpp"
#include "schedule/verify.hpp"

namespace zerocomm::schedule {
namespace {

const char* wrong_key(const Schedule& schedule) {
  const Key& key = schedule.key;
  if (static_cast<std::size_t>(key.collective) >= kCollectives) return "the collective is unknown";
  if (key.ranks == 0 || key.root >= key.ranks) return "there is no rank, or no such root";
  if (key.lanes == 0 || key.lanes > kMaxLanes) return "there are no lanes, or more than 255";
  if (const std::uint64_t blocks = block_count(key.collective, key.ranks); key.chunks % blocks != 0)
    return blocks == key.ranks ? "chunks is no multiple of ranks" : "chunks is no multiple of ranks * ranks";
  if (key.chunks > UINT32_MAX - schedule.scratch_chunks) return "more than 2^32 chunks with scratch";
  if (schedule.ranks.size() != key.ranks) return "the key names another number of ranks";
  for (const RankSchedule& rank : schedule.ranks) {
    if (rank.lanes.size() != key.lanes) return "the key names another number of lanes";
    for (const Lane& lane : rank.lanes)
      if (lane.steps.size() > kMaxSteps) return "a lane has more than 2^24 steps";
  }
  return nullptr;
}

// What `rank` may use of a buffer.
ChunkRuns extent(const Schedule& schedule, std::uint32_t rank, Buf buf) {
  switch (buf) {
    case Buf::input:
      return {input_chunks(schedule.key, rank)};
    case Buf::output:
      return output_chunks(schedule.key, rank);
    case Buf::scratch:
      return {{0, schedule.scratch_chunks}};
    case Buf::none:
      break;
  }
  return {};
}

// A side that the op uses; `none` is a message without data.
const char* wrong_side(const Schedule& schedule, std::uint32_t rank, Buf buf, std::uint32_t chunk, const Step& step) {
  if (buf > Buf::scratch) return "an unknown buffer";
  const bool may_be_empty = step.op() == Op::send || step.op() == Op::recv;
  if ((buf == Buf::none) != (step.n_chunks == 0)) return "a buffer without chunks, or chunks without a buffer";
  if (buf == Buf::none) return !may_be_empty ? "no chunks" : chunk != 0 ? "a chunk without a buffer" : nullptr;
  if (!extent(schedule, rank, buf).contains(chunk, step.n_chunks)) return "chunks that this rank does not have";
  return nullptr;
}

const char* wrong_run(const Lane& lane, std::size_t index) {
  const Step& step = lane.steps[index];
  if (!step.hold()) return nullptr;
  if (step.op() == Op::send || step.n_chunks == 0) return "nothing to hold";
  if (index + 1 == lane.steps.size()) return "a held run that never ends";
  const Step& next = lane.steps[index + 1];
  const bool same = next.dst_buf == step.dst_buf && next.dst_chunk == step.dst_chunk && next.n_chunks == step.n_chunks;
  return next.reduces() && same ? nullptr : "a held run that the next step does not go on with";
}

const char* wrong_step(const Schedule& schedule, StepRef at) {
  const Step& step = step_at(schedule, at);
  const RankSchedule& rank = schedule.ranks[at.rank];
  if (step.op() > Op::reduce || (step.op_flags & ~(kOpMask | kHold)) != 0) return "an unknown op or flag";
  const bool local = step.op() == Op::copy || step.op() == Op::reduce;
  if (local ? step.peer != 0 : step.peer >= schedule.key.ranks) return "no such peer";
  if (!local && step.peer == at.rank) return "a message to itself";
  if (local && step.codec != 0) return "a codec without a message";
  if (step.dst_buf == Buf::input) return "a write to input";

  if (step.receives() ? step.src_buf != Buf::none || step.src_chunk != 0 : false) return "a source it does not use";
  if (step.op() == Op::send ? step.dst_buf != Buf::none || step.dst_chunk != 0 : false)
    return "a destination it does not use";
  if (!step.receives())
    if (const char* why = wrong_side(schedule, at.rank, step.src_buf, step.src_chunk, step)) return why;
  if (step.op() != Op::send)
    if (const char* why = wrong_side(schedule, at.rank, step.dst_buf, step.dst_chunk, step)) return why;

  if (step.wait != kNoWait) {
    const std::uint32_t lane = wait_lane(step.wait);
    if (lane == at.lane || lane >= rank.lanes.size()) return "a wait for no other lane";
    if (wait_step(step.wait) >= rank.lanes[lane].steps.size()) return "a wait for a step that does not exist";
  }
  return wrong_run(rank.lanes[at.lane], at.step);
}

}  // namespace

std::optional<Violation> check_shape(const Schedule& schedule) {
  if (const char* why = wrong_key(schedule)) return Violation{Property::shape, std::nullopt, why};
  for (StepRef at; at.rank < schedule.key.ranks; ++at.rank)
    for (at.lane = 0; at.lane < schedule.key.lanes; ++at.lane)
      for (at.step = 0; at.step < schedule.ranks[at.rank].lanes[at.lane].steps.size(); ++at.step)
        if (const char* why = wrong_step(schedule, at))
          return Violation{Property::shape, at, place_text(schedule, at) + ": " + why};
  return std::nullopt;
}

}  // namespace zerocomm::schedule
