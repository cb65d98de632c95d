#include "schedule/program.hpp"

#include "base/check.hpp"
#include "schedule/contract.hpp"
#include "schedule/footprint.hpp"
#include "schedule/machine.hpp"
#include "schedule/schedule_text.hpp"
#include "schedule/verify.hpp"

#include <algorithm>

namespace zerocomm::schedule {
namespace {

// Domain of the machine: how many contributions a chunk holds, and whether it is one as it was brought.
struct Content {
  std::uint32_t contributions = 0;
  bool raw = false;
  std::uint32_t chunk = 0;
};

class Contents {
 public:
  using Message = std::vector<Content>;

  Contents(const Schedule& schedule, std::uint32_t watched) : schedule_(schedule), watched_(watched) {
    const std::size_t p = schedule.key.ranks;
    input_.resize(p);
    for (std::uint32_t rank = 0; rank < p; ++rank) {
      input_[rank].resize(schedule.key.chunks);
      const ChunkRange brought = input_chunks(schedule.key, rank);
      for (std::uint32_t i = 0; i < brought.count; ++i) input_[rank][brought.first + i] = {1, true, brought.first + i};
    }
    output_.assign(p, Message(schedule.key.chunks));
    scratch_.assign(p, Message(schedule.scratch_chunks));
    accumulators_.resize(p);
    outcomes_.resize(p);
  }

  void after(StepRef /*at*/, StepRef /*earlier*/) {}
  void after_take(StepRef /*at*/, StepRef /*earlier*/) {}
  Message post(StepRef at, const Step& step) { return read(at.rank, step.src_buf, step.src_chunk, step.n_chunks); }
  void take(StepRef at, const Step& step, Message message, StepRef /*send*/) { arrive(at, step, std::move(message)); }
  void local(StepRef at, const Step& step) { arrive(at, step, post(at, step)); }

  // Of the watched rank, one per step: what it leaves in each chunk.
  std::vector<std::vector<Outcomes>> results;

 private:
  Message& buffer(std::uint32_t rank, Buf buf) {
    return buf == Buf::input ? input_[rank] : buf == Buf::output ? output_[rank] : scratch_[rank];
  }
  Message read(std::uint32_t rank, Buf buf, std::uint32_t chunk, std::uint32_t n) {
    if (buf == Buf::none) return {};
    const Message& from = buffer(rank, buf);
    return {from.begin() + chunk, from.begin() + chunk + n};
  }

  void arrive(StepRef at, const Step& step, Message cells) {
    std::vector<Outcomes> outcomes(cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) outcomes[i] = {false, cells[i].raw, cells[i].raw, cells[i].chunk};
    if (step.reduces()) {
      const bool goes_on = in_run(schedule_.ranks[at.rank].lanes[at.lane], at.step);
      const Message before =
          goes_on ? accumulators_[at.rank] : read(at.rank, step.dst_buf, step.dst_chunk, step.n_chunks);
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const Outcomes so_far =
            goes_on ? outcomes_[at.rank][i] : Outcomes{false, before[i].raw, before[i].raw, before[i].chunk};
        outcomes[i] = {false, outcomes[i].all_raw && so_far.all_raw, outcomes[i].any_raw || so_far.any_raw,
                       cells[i].chunk};
        cells[i] = {cells[i].contributions + before[i].contributions, false, cells[i].chunk};
      }
    }
    for (std::size_t i = 0; i < cells.size(); ++i)
      outcomes[i].completes = cells[i].contributions == schedule_.key.ranks;
    if (at.rank == watched_) {
      if (results.size() <= at.step) results.resize(at.step + 1);
      results[at.step] = outcomes;
    }
    if (step.hold()) {
      accumulators_[at.rank] = std::move(cells);
      outcomes_[at.rank] = std::move(outcomes);
      return;
    }
    for (std::uint32_t i = 0; i < cells.size(); ++i) buffer(at.rank, step.dst_buf)[step.dst_chunk + i] = cells[i];
  }

  const Schedule& schedule_;
  std::uint32_t watched_;
  std::vector<Message> input_, output_, scratch_, accumulators_;
  std::vector<std::vector<Outcomes>> outcomes_;  // of the run that is open on a rank
};

// What a rank waits for and when it moves on, as make_program cuts its lane: for the trial of all ranks together.
struct Stage {
  std::vector<Reached> waits;
  std::uint32_t done = 0;
};

void add_waits(const BoundLane& lane, std::size_t index, std::vector<Reached>& waits) {
  const auto before = lane.before(index);
  waits.insert(waits.end(), before.begin(), before.end());
  const BoundStep& bound = lane.steps()[index];
  if (bound.step.receives()) waits.push_back({bound.step.peer, bound.peer_step});
}

std::vector<Stage> stages(const BoundLane& lane) {
  std::vector<Stage> result;
  Stage open;
  for (std::uint32_t i = 0; i < lane.steps().size(); ++i) {
    add_waits(lane, i, open.waits);
    if (lane.steps()[i].step.hold()) continue;
    open.done = i + 1;
    result.push_back(std::move(open));
    open = {};
  }
  return result;
}

// Do all ranks come to their end, when every held run is one action?
void try_together(const Schedule& schedule) {
  std::vector<std::vector<Stage>> all;
  for (std::uint32_t rank = 0; rank < schedule.key.ranks; ++rank) all.push_back(stages(bind_lane(schedule, rank)));
  std::vector<std::size_t> next(all.size(), 0);
  std::vector<std::uint32_t> done(all.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      while (next[rank] < all[rank].size()) {
        const Stage& stage = all[rank][next[rank]];
        if (!std::all_of(stage.waits.begin(), stage.waits.end(),
                         [&](const Reached& wait) { return done[wait.rank] > wait.step; }))
          break;
        done[rank] = stage.done;
        ++next[rank];
        moved = true;
      }
    }
  }
  for (std::uint32_t rank = 0; rank < all.size(); ++rank)
    ZC_REQUIRE(next[rank] == all[rank].size(), ZC_UNSUPPORTED,
               "%s: the run needs a message that its sender can only send once the run has read another one; a run is "
               "read at its end",
               place_text(schedule, {rank, 0, done[rank]}).c_str());
}

}  // namespace

Program make_program(const Schedule& schedule, std::uint32_t rank) {
  require_runnable(schedule);
  const BoundLane lane = bind_lane(schedule, rank);
  try_together(schedule);
  Contents contents(schedule, rank);
  ZC_REQUIRE(run_schedule(schedule, contents, kUnbounded).finished(), ZC_ARGUMENT, "the schedule never ends");
  contents.results.resize(lane.steps().size());

  Program program;
  program.key_ = schedule.key;
  program.scratch_chunks_ = schedule.scratch_chunks;
  for (const RankSchedule& one : schedule.ranks)
    program.steps_.push_back(static_cast<std::uint32_t>(one.lanes[0].steps.size()));
  Action action;
  const auto begin_action = [&] {
    action = {};
    action.first_wait = static_cast<std::uint32_t>(program.waits_.size());
    action.first_source = static_cast<std::uint32_t>(program.sources_.size());
  };
  begin_action();
  bool in_held_run = false;
  for (std::uint32_t i = 0; i < lane.steps().size(); ++i) {
    const BoundStep& bound = lane.steps()[i];
    const Step& step = bound.step;
    add_waits(lane, i, program.waits_);
    if (step.op() != Op::send && step.n_chunks != 0) {
      if (step.reduces() && !in_held_run) program.sources_.push_back({rank, step.dst_buf, step.dst_chunk});
      program.sources_.push_back(step.receives() ? Source{step.peer, bound.peer_buf, bound.peer_chunk}
                                                 : Source{rank, step.src_buf, step.src_chunk});
      action.reduces = action.reduces || step.reduces();
    }
    in_held_run = step.hold();
    if (step.hold()) continue;
    action.step = step;
    action.done = i + 1;
    action.waits = static_cast<std::uint32_t>(program.waits_.size()) - action.first_wait;
    action.sources = static_cast<std::uint32_t>(program.sources_.size()) - action.first_source;
    action.first_outcome = static_cast<std::uint32_t>(program.outcomes_.size());
    if (action.sources != 0)
      program.outcomes_.insert(program.outcomes_.end(), contents.results[i].begin(), contents.results[i].end());
    program.actions_.push_back(action);
    begin_action();
  }
  program.at_end_.assign(lane.at_end().begin(), lane.at_end().end());
  return program;
}

}  // namespace zerocomm::schedule
