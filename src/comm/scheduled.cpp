#include "comm/scheduled.hpp"

#include "base/check.hpp"
#include "base/float_env.hpp"
#include "comm/fault.hpp"
#include "device/reduce.hpp"
#include "schedule/contract.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace zerocomm::comm {
namespace {

using schedule::Action;
using schedule::Buf;
using schedule::Outcomes;
using schedule::Reached;
using schedule::Source;

std::uint32_t number(std::int32_t rank) { return static_cast<std::uint32_t>(rank); }

// In place, the blocks of two ranks change places: what is sent must be copied aside first.
bool swaps(const Operation& operation) {
  return operation.in_place() && operation.collective() == Collective::all_to_all;
}

bool all_reachable(const Comm& comm, const Posts& posts) {
  for (std::size_t i = 0; i < posts.count(); ++i) {
    const transport::Post& post = posts.of(posts.rank(i));
    if (!comm.group().is_shared(post.send) || !comm.group().is_shared(post.recv)) return false;
  }
  return true;
}

}  // namespace

Scheduled::Scheduled(const Comm& comm, const Operation& operation, const Posts& posts)
    : comm_(&comm),
      operation_(&operation),
      posts_(posts),
      staged_(comm.ranks() > 1 && (swaps(operation) || !all_reachable(comm, posts))) {
  const schedule::Key& key = program().key();
  std::size_t longest = 0;
  for (std::uint32_t chunk = 0; chunk < key.chunks; ++chunk)
    longest = std::max(longest, partition().range(chunk).count);
  std::size_t slots = program().scratch_chunks();
  if (staged_) {
    for (std::uint32_t rank = 0; rank < key.ranks; ++rank) {
      inputs_ = std::max<std::size_t>(inputs_, schedule::input_chunks(key, rank).count);
      outputs_ = std::max<std::size_t>(outputs_, schedule::output_chunks(key, rank).count());
    }
    outputs_ += inputs_;
    slots += outputs_;
  }
  most_ = longest;
  if (slots != 0 && longest != 0) {
    const std::size_t element = std::max(element_bytes(true), element_bytes(false));
    std::size_t bytes = posts_.half_bytes() / slots;
    if (bytes >= kLineBytes) bytes = bytes / kLineBytes * kLineBytes;
    most_ = std::min(longest, bytes / element);
    slot_bytes_ = most_ * element;
  }
  rounds_ = longest == 0 || most_ == 0 ? 1 : ceil_div(longest, most_);
  stage_ = staged_ ? Stage::copy_in : Stage::act;
}

zc_status Scheduled::check_fit() const noexcept {
  if (most_ != 0 || partition().count() == 0) return ZC_OK;
  return fail(ZC_UNSUPPORTED, "rank %d: %s: the schedule %s over %d ranks does not fit into %zu bytes of staging",
              comm_->rank(), collective_name(operation_->call.collective), program().key().algorithm.c_str(),
              comm_->ranks(), posts_.half_bytes());
}

std::size_t Scheduled::element_bytes(bool raw) const {
  const zc_dtype output = operation_->output_dtype();
  return zc_dtype_bytes(raw || output == ZC_DTYPE_NONE ? operation_->dtype() : output);
}

Part Scheduled::range(std::uint32_t chunk) const {
  const Part whole = partition().range(chunk);
  const std::size_t first = std::min(round_ * most_, whole.count);
  return {whole.offset + first, std::min(most_, whole.count - first)};
}

// Elements before this round's part of a chunk, in the buffer of a rank that holds it.
std::size_t Scheduled::own_offset(Buf buf, std::int32_t rank, std::uint32_t chunk) const {
  const schedule::Key& key = program().key();
  const std::size_t at_chunk = range(chunk).offset;
  if (buf == Buf::input) return at_chunk - partition().range(schedule::input_chunks(key, number(rank)).first).offset;
  const schedule::ChunkRuns runs = schedule::output_chunks(key, number(rank));
  const std::uint32_t run = runs.stride == 0 ? 0 : (chunk - runs.first.first) / runs.stride;
  const schedule::ChunkRange in_run = runs.run(run);
  return run * partition().range(in_run.first, in_run.count).count + at_chunk - partition().range(in_run.first).offset;
}

// The place of a chunk in staging.
std::size_t Scheduled::slot(Buf buf, std::int32_t rank, std::uint32_t chunk) const {
  const schedule::Key& key = program().key();
  if (buf == Buf::scratch) return outputs_ + chunk;
  if (buf == Buf::input) return chunk - schedule::input_chunks(key, number(rank)).first;
  const schedule::ChunkRuns runs = schedule::output_chunks(key, number(rank));
  const std::uint32_t run = runs.stride == 0 ? 0 : (chunk - runs.first.first) / runs.stride;
  return inputs_ + std::size_t{run} * runs.first.count + (chunk - runs.run(run).first);
}

std::byte* Scheduled::place(std::int32_t rank, Buf buf, std::uint32_t chunk, bool raw) const {
  if (staged_ || buf == Buf::scratch) return posts_.half(rank, 0) + slot(buf, rank, chunk) * slot_bytes_;
  const transport::Post& post = posts_.of(rank);
  auto* const base = static_cast<std::byte*>(comm_->group().reach(rank, buf == Buf::input ? post.send : post.recv));
  return base + own_offset(buf, rank, chunk) * element_bytes(buf == Buf::input || raw);
}

std::span<const Reached> Scheduled::waits() const {
  if (stage_ == Stage::act && next_ < program().actions().size()) return program().waits(program().actions()[next_]);
  return stage_ == Stage::drain ? program().at_end() : std::span<const Reached>{};
}

bool Scheduled::ready() noexcept {
  const std::span<const Reached> all = waits();
  for (; next_wait_ < all.size(); ++next_wait_) {
    const Reached& wait = all[next_wait_];
    const std::uint64_t wanted = round_ * program().steps_of(wait.rank) + wait.step;
    if (posts_.of(static_cast<std::int32_t>(wait.rank)).position.load() <= wanted) return false;
  }
  return true;
}

Reached Scheduled::waits_for() const noexcept {
  const std::span<const Reached> all = waits();
  return next_wait_ < all.size() ? all[next_wait_] : Reached{number(comm_->rank()), 0};
}

void Scheduled::work(std::size_t slice_bytes) noexcept {
  std::size_t moved_bytes = 0;
  while (stage_ != Stage::over && moved_bytes < slice_bytes && ready()) {
    switch (stage_) {
      case Stage::copy_in:
        copy_in();
        stage_ = Stage::act;
        break;
      case Stage::act:
        if (next_ < program().actions().size()) {
          const Action& action = program().actions()[next_];
          moved_bytes += act(action);
          advance_position(action.done);
          ++next_;
        } else {
          stage_ = Stage::drain;
        }
        next_wait_ = 0;
        break;
      case Stage::drain:
        begin_round();
        break;
      case Stage::over:
        break;
    }
  }
}

void Scheduled::begin_round() noexcept {
  if (staged_) copy_out();
  next_ = next_wait_ = 0;
  ++round_;
  stage_ = round_ == rounds_ ? Stage::over : staged_ ? Stage::copy_in : Stage::act;
}

void Scheduled::advance_position(std::uint32_t steps) noexcept {
  posts_.own().position.store(round_ * program().steps_of(number(comm_->rank())) + steps);
  step("position");
  comm_->control().ring_all();
}

void Scheduled::copy_in() noexcept {
  const schedule::ChunkRange chunks = schedule::input_chunks(program().key(), number(comm_->rank()));
  for (std::uint32_t i = 0; i < chunks.count; ++i) {
    const std::uint32_t chunk = chunks.first + i;
    const std::size_t count = range(chunk).count;
    if (count != 0)
      std::memcpy(place(comm_->rank(), Buf::input, chunk, true),
                  at(operation_->send, own_offset(Buf::input, comm_->rank(), chunk), operation_->dtype()),
                  count * element_bytes(true));
  }
}

void Scheduled::copy_out() noexcept {
  const schedule::ChunkRuns runs = schedule::output_chunks(program().key(), number(comm_->rank()));
  for (std::uint32_t run = 0; run < runs.runs; ++run)
    for (std::uint32_t i = 0; i < runs.run(run).count; ++i) {
      const std::uint32_t chunk = runs.run(run).first + i;
      const std::size_t count = range(chunk).count;
      if (count != 0)
        std::memcpy(static_cast<std::byte*>(operation_->recv) +
                        own_offset(Buf::output, comm_->rank(), chunk) * element_bytes(false),
                    place(comm_->rank(), Buf::output, chunk, false), count * element_bytes(false));
    }
}

std::size_t Scheduled::act(const Action& action) noexcept {
  std::size_t moved_bytes = 0;
  if (action.sources == 0) return moved_bytes;
  for (std::uint32_t i = 0; i < action.step.n_chunks; ++i) moved_bytes += act_on(action, i);
  return moved_bytes;
}

// One chunk of an action. Returns the bytes that it read.
std::size_t Scheduled::act_on(const Action& action, std::uint32_t index) noexcept {
  const Outcomes& outcome = program().outcome(action, index);
  const std::size_t count = range(outcome.chunk).count;
  if (count == 0) return 0;
  const std::span<const Source> sources = program().sources(action);
  std::array<const void*, kMostRanks> inputs;
  for (std::size_t i = 0; i < sources.size(); ++i)
    inputs[i] =
        place(static_cast<std::int32_t>(sources[i].rank), sources[i].buf, sources[i].chunk + index, outcome.any_raw);
  // A rank alone gets what it brought by a copy, and that is a reduction too.
  const bool reduces =
      action.reduces || (outcome.completes && schedule::is_reduction(program().key().collective) && outcome.all_raw);
  std::byte* const output =
      place(comm_->rank(), action.step.dst_buf, action.step.dst_chunk + index, outcome.any_raw && !reduces);
  if (!reduces) {
    const std::size_t bytes = count * element_bytes(outcome.any_raw);
    if (inputs[0] != output)
      comm_->copy(output, inputs[0], bytes, static_cast<std::int32_t>(sources[0].rank), operation_->traffic);
    return bytes;
  }
  device::ReduceArgs args;
  zc_op op = operation_->op();
  const bool whole = outcome.completes && outcome.all_raw;
  if (op == ZC_OP_PREMUL_SUM) args.premul = std::bit_cast<double>(operation_->call.premul_bits);
  if (op == ZC_OP_AVG && !whole) {
    op = ZC_OP_SUM;
    if (outcome.completes) args.divisor = static_cast<double>(comm_->ranks());
  }
  const zc_dtype output_dtype = operation_->output_dtype();
  {
    const DefaultFloatEnv environment;
    device::find_reduce(whole ? operation_->dtype() : output_dtype, output_dtype, op)(inputs.data(), sources.size(),
                                                                                      output, count, args);
  }
  for (const Source& source : sources)
    comm_->count_moved(static_cast<std::int32_t>(source.rank), count * element_bytes(outcome.any_raw),
                       operation_->traffic);
  return sources.size() * count * element_bytes(outcome.any_raw);
}

}  // namespace zerocomm::comm
