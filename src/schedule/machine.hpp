// The one abstract machine that runs schedules. A Domain gives the steps a meaning: expressions (verify), values
// (oracle) or clocks (cost).
//
// Lanes run in order and block on channels, waits and derived write-after-read waits: a Kahn network, whose result and
// end do not depend on the interleaving as long as lanes do not race. So one run decides.
#pragma once

#include "schedule/anti_deps.hpp"

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace zerocomm::schedule {

// A Domain has a type Message and these members; `at` is the step that is being done:
//   void after(StepRef at, StepRef earlier)             an explicit wait is over
//   void after_take(StepRef at, StepRef send)           a write-after-read wait is over
//   Message post(StepRef at, const Step&)               send
//   void take(StepRef at, const Step&, Message, StepRef send)   recv, recv_reduce
//   void local(StepRef at, const Step&)                 copy, reduce

inline constexpr std::size_t kUnbounded = SIZE_MAX;

// Why a lane cannot go on.
enum class Blocked : std::uint8_t { channel_full, channel_empty, wait, write_after_read };

struct Stuck {
  StepRef at;
  Blocked why;
};

// Where a run ended: no stuck lane means that every step was done.
struct Outcome {
  std::vector<Stuck> stuck;
  bool finished() const { return stuck.empty(); }
};

template <class Domain>
class Machine {
 public:
  // `capacity`: messages a channel holds before a send blocks. The schedule must be well formed (check_shape).
  Machine(const Schedule& schedule, Domain& domain, std::size_t capacity)
      : schedule_(schedule), domain_(domain), capacity_(capacity) {
    const std::size_t p = schedule.key.ranks, l = schedule.key.lanes;
    lanes_.resize(p * l);
    deps_.reserve(p);
    for (std::uint32_t rank = 0; rank < p; ++rank) {
      deps_.emplace_back(schedule.key, schedule.ranks[rank]);
      for (std::uint32_t lane = 0; lane < l; ++lane)
        state({rank, lane, 0}).taken.resize(schedule.ranks[rank].lanes[lane].steps.size());
    }
  }

  Outcome run() {
    for (bool moved = true; moved;) {
      moved = false;
      for_each_lane([&](StepRef at) {
        for (; !done(at) && !blocked(at); at.step = ++state(at).next) execute(at), moved = true;
      });
    }
    Outcome outcome;
    for_each_lane([&](StepRef at) {
      if (!done(at)) outcome.stuck.push_back({at, *blocked(at)});
    });
    return outcome;
  }

 private:
  struct LaneState {
    std::uint32_t next = 0;
    std::vector<bool> taken;  // of each step: it is a send and its message was taken
  };
  struct Channel {
    std::vector<std::pair<StepRef, typename Domain::Message>> messages;
    std::size_t head = 0;
    std::size_t waiting() const { return messages.size() - head; }
  };

  template <class Action>
  void for_each_lane(Action action) {
    for (std::uint32_t rank = 0; rank < schedule_.key.ranks; ++rank)
      for (std::uint32_t lane = 0; lane < schedule_.key.lanes; ++lane)
        action(StepRef{rank, lane, state({rank, lane, 0}).next});
  }

  LaneState& state(StepRef at) { return lanes_[std::size_t{at.rank} * schedule_.key.lanes + at.lane]; }
  Channel& channel(std::uint32_t from, std::uint32_t to, std::uint32_t lane) {
    return channels_[(std::uint64_t{from} * schedule_.key.ranks + to) * schedule_.key.lanes + lane];
  }
  bool done(StepRef at) { return at.step == schedule_.ranks[at.rank].lanes[at.lane].steps.size(); }

  std::optional<Blocked> blocked(StepRef at) {
    const Step& step = step_at(schedule_, at);
    if (step.wait != kNoWait && state({at.rank, wait_lane(step.wait), 0}).next <= wait_step(step.wait))
      return Blocked::wait;
    for (const SendRef send : deps_[at.rank].before(at.lane, at.step))
      if (!state({at.rank, send.lane, 0}).taken[send.step]) return Blocked::write_after_read;
    if (step.op() == Op::send && channel(at.rank, step.peer, at.lane).waiting() >= capacity_)
      return Blocked::channel_full;
    if (step.receives() && channel(step.peer, at.rank, at.lane).waiting() == 0) return Blocked::channel_empty;
    return std::nullopt;
  }

  void execute(StepRef at) {
    const Step& step = step_at(schedule_, at);
    if (step.wait != kNoWait) domain_.after(at, {at.rank, wait_lane(step.wait), wait_step(step.wait)});
    for (const SendRef send : deps_[at.rank].before(at.lane, at.step))
      domain_.after_take(at, {at.rank, send.lane, send.step});
    if (step.op() == Op::send) {
      channel(at.rank, step.peer, at.lane).messages.emplace_back(at, domain_.post(at, step));
    } else if (step.receives()) {
      Channel& from = channel(step.peer, at.rank, at.lane);
      auto& [send, message] = from.messages[from.head++];
      domain_.take(at, step, std::move(message), send);
      state(send).taken[send.step] = true;
    } else {
      domain_.local(at, step);
    }
  }

  const Schedule& schedule_;
  Domain& domain_;
  std::size_t capacity_;
  std::vector<AntiDeps> deps_;
  std::vector<LaneState> lanes_;
  std::unordered_map<std::uint64_t, Channel> channels_;  // made when first used: most pairs never talk
};

template <class Domain>
Outcome run_schedule(const Schedule& schedule, Domain& domain, std::size_t capacity) {
  return Machine<Domain>(schedule, domain, capacity).run();
}

}  // namespace zerocomm::schedule
