// Writing schedules. Reading them is in schedule_parse.cpp.
#include "schedule/schedule_text.hpp"

#include "base/check.hpp"

namespace zerocomm::schedule {
namespace {

std::string range_text(Buf buf, std::uint32_t chunk, std::uint32_t n_chunks) {
  const char* name = buf == Buf::input ? "input" : buf == Buf::output ? "output" : "scratch";
  if (buf == Buf::none || n_chunks == 0) return "none";
  if (n_chunks == 1) return format("%s[%u]", name, chunk);
  return format("%s[%u..%llu]", name, chunk, static_cast<unsigned long long>(std::uint64_t{chunk} + n_chunks - 1));
}

}  // namespace

const char* collective_name(Collective collective) {
  static constexpr const char* kNames[kCollectives] = {"all_reduce", "reduce_scatter", "all_gather",
                                                       "broadcast",  "barrier",        "reduce",
                                                       "all_to_all", "gather_to_root", "scatter_from_root"};
  const auto index = static_cast<std::size_t>(collective);
  return index < kCollectives ? kNames[index] : "unknown";
}

const char* op_name(Op op) {
  switch (op) {
    case Op::send:
      return "send";
    case Op::recv:
      return "recv";
    case Op::recv_reduce:
      return "recv_reduce";
    case Op::copy:
      return "copy";
    case Op::reduce:
      return "reduce";
  }
  return "unknown";
}

std::string step_text(const Step& step) {
  std::string text = op_name(step.op());
  const std::string source = range_text(step.src_buf, step.src_chunk, step.n_chunks);
  const std::string destination = range_text(step.dst_buf, step.dst_chunk, step.n_chunks);
  if (step.op() == Op::send) {
    text += format(" to=%u ", step.peer) + source;
  } else if (step.receives()) {
    text += format(" from=%u ", step.peer) + destination;
  } else {
    text += " " + source + " -> " + destination;
  }
  if (step.hold()) text += " hold";
  if (step.codec != 0) text += format(" codec=%u", step.codec);
  if (step.wait != kNoWait) text += format(" wait=%u:%u", wait_lane(step.wait), wait_step(step.wait));
  return text;
}

std::string place_text(const Schedule& schedule, StepRef at) {
  return format("rank %u lane %u step %u `%s`", at.rank, at.lane, at.step, step_text(step_at(schedule, at)).c_str());
}

std::string to_text(const Schedule& schedule) {
  const Key& key = schedule.key;
  std::string text =
      format("schedule %s %s ranks=%u root=%u chunks=%u lanes=%u scratch=%u", collective_name(key.collective),
             key.algorithm.c_str(), key.ranks, key.root, key.chunks, key.lanes, schedule.scratch_chunks);
  text += schedule.loss == 0 ? "\n" : format(" loss=%u\n", schedule.loss);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    text += format("rank %zu\n", rank);
    for (std::size_t lane = 0; lane < schedule.ranks[rank].lanes.size(); ++lane) {
      text += format("lane %zu\n", lane);
      for (const Step& step : schedule.ranks[rank].lanes[lane].steps) text += "  " + step_text(step) + "\n";
    }
  }
  return text;
}

}  // namespace zerocomm::schedule
