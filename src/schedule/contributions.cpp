// Steps over memory that holds expressions.
#include "schedule/contributions.hpp"

#include "base/check.hpp"
#include "schedule/schedule_text.hpp"

namespace zerocomm::schedule {

Contributions::Contributions(const Schedule& schedule) : schedule_(schedule), races_(schedule) {
  const Key& key = schedule.key;
  ranks_.resize(key.ranks);
  for (std::uint32_t rank = 0; rank < key.ranks; ++rank) {
    Memory& memory = ranks_[rank];
    memory.input.assign(key.chunks, kUndefined);
    const ChunkRange own = input_chunks(key, rank);
    for (std::uint32_t c = own.first; c < own.first + own.count; ++c) memory.input[c] = expressions_.leaf(rank, c);
    memory.output.assign(key.chunks, kUndefined);
    memory.scratch.assign(schedule.scratch_chunks, kUndefined);
    memory.stored.resize(key.chunks);
    memory.accumulators.resize(key.lanes);
  }
}

std::vector<ExprId>& Contributions::cells(Memory& memory, Buf buf) {
  return buf == Buf::input ? memory.input : buf == Buf::output ? memory.output : memory.scratch;
}

std::vector<ExprId> Contributions::read(StepRef at, Buf buf, std::uint32_t first, std::uint32_t n_chunks) {
  Memory& memory = ranks_[at.rank];
  std::vector<ExprId> values;
  if (buf == Buf::none) return values;
  for (std::uint32_t c = first; c < first + n_chunks; ++c) {
    values.push_back(cells(memory, buf)[c]);
    if (stale_) continue;
    if (values.back() == kUndefined) {
      stale_ = {at, format("reads %s[%u], which nothing defined has been written to",
                           buf == Buf::output ? "output" : "scratch", c)};
    } else if (buf == Buf::input && memory.stored[c]) {
      stale_ = {at, format("reads input[%u]; in place that was overwritten by ", c) +
                        place_text(schedule_, *memory.stored[c])};
    }
  }
  return values;
}

Contributions::Message Contributions::post(StepRef at, const Step& step) {
  Message message = read(at, step.src_buf, step.src_chunk, step.n_chunks);
  if (step.codec != 0)
    for (ExprId& value : message) value = expressions_.coded(value, step.codec);
  races_.done(at);
  return message;
}

void Contributions::take(StepRef at, const Step& step, Message message, StepRef send) {
  races_.take(send, at);
  arrive(at, step, std::move(message));
}

void Contributions::local(StepRef at, const Step& step) {
  arrive(at, step, read(at, step.src_buf, step.src_chunk, step.n_chunks));
}

void Contributions::arrive(StepRef at, const Step& step, std::vector<ExprId> values) {
  Memory& memory = ranks_[at.rank];
  std::vector<ExprId>& accumulator = memory.accumulators[at.lane];
  if (step.reduces()) {
    const bool goes_on = in_run(schedule_.ranks[at.rank].lanes[at.lane], at.step);
    const std::vector<ExprId> before =
        goes_on ? std::move(accumulator) : read(at, step.dst_buf, step.dst_chunk, step.n_chunks);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = expressions_.sum(before[i], values[i]);
  }
  if (step.hold()) {
    accumulator = std::move(values);
  } else if (step.dst_buf != Buf::none) {
    // Sums, and whatever enters the output of a reduction, have the output's element type: rounded.
    const bool rounds = step.reduces() || (is_reduction(schedule_.key.collective) && step.dst_buf == Buf::output);
    for (std::uint32_t i = 0; i < step.n_chunks; ++i) {
      const std::uint32_t chunk = step.dst_chunk + i;
      cells(memory, step.dst_buf)[chunk] = rounds ? expressions_.rounded(values[i]) : values[i];
      if (step.dst_buf == Buf::output && !memory.stored[chunk]) memory.stored[chunk] = at;
    }
  }
  races_.done(at);
}

}  // namespace zerocomm::schedule
