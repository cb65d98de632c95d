// Pairs the messages of one rank with its peers' steps, and turns write-after-read waits into conditions on peers.
#include "schedule/bound.hpp"

#include "base/check.hpp"
#include "schedule/anti_deps.hpp"
#include "schedule/schedule_text.hpp"

#include <map>

namespace zerocomm::schedule {
namespace {

// The steps of a peer that face this rank, in the order of messages.
struct Facing {
  std::vector<std::uint32_t> sends, receives;
  std::size_t next_send = 0, next_receive = 0;
};

Facing facing(const Lane& peer, std::uint32_t rank) {
  Facing result;
  for (std::uint32_t i = 0; i < peer.steps.size(); ++i) {
    const Step& step = peer.steps[i];
    if (step.peer != rank) continue;
    if (step.op() == Op::send) result.sends.push_back(i);
    if (step.receives()) result.receives.push_back(i);
  }
  return result;
}

// The step of the peer that is the other end of every message of `rank`; unused for local steps.
std::vector<std::uint32_t> other_ends(const Schedule& schedule, std::uint32_t rank) {
  std::vector<std::uint32_t> ends;
  std::map<std::uint32_t, Facing> peers;
  for (StepRef at{rank, 0, 0}; at.step < schedule.ranks[rank].lanes[0].steps.size(); ++at.step) {
    const Step& step = step_at(schedule, at);
    ends.push_back(0);
    if (step.op() != Op::send && !step.receives()) continue;
    ZC_REQUIRE(step.peer < schedule.ranks.size() && step.peer != rank, ZC_ARGUMENT, "%s: no such peer",
               place_text(schedule, at).c_str());
    const auto [entry, is_new] = peers.try_emplace(step.peer);
    Facing& peer = entry->second;
    if (is_new) peer = facing(schedule.ranks[step.peer].lanes[0], rank);
    const bool sends = step.op() == Op::send;
    const std::vector<std::uint32_t>& theirs = sends ? peer.receives : peer.sends;
    std::size_t& next = sends ? peer.next_receive : peer.next_send;
    ZC_REQUIRE(next < theirs.size(), ZC_ARGUMENT, "%s has no other end", place_text(schedule, at).c_str());
    ends.back() = theirs[next++];
    const Step& other = step_at(schedule, {step.peer, 0, ends.back()});
    ZC_REQUIRE(other.n_chunks == step.n_chunks && other.codec == step.codec, ZC_ARGUMENT, "%s meets %s",
               place_text(schedule, at).c_str(), place_text(schedule, {step.peer, 0, ends.back()}).c_str());
  }
  return ends;
}

}  // namespace

BoundLane bind_lane(const Schedule& schedule, std::uint32_t rank) {
  ZC_REQUIRE(rank < schedule.ranks.size(), ZC_ARGUMENT, "rank %u of %zu", rank, schedule.ranks.size());
  for (const RankSchedule& one : schedule.ranks)
    ZC_REQUIRE(one.lanes.size() == 1, ZC_UNSUPPORTED, "a rank with %zu lanes; one can be bound", one.lanes.size());
  const std::vector<Step>& steps = schedule.ranks[rank].lanes[0].steps;
  const std::vector<std::uint32_t> ends = other_ends(schedule, rank);
  const AntiDeps deps(schedule.key, schedule.ranks[rank]);

  BoundLane lane;
  std::map<std::uint32_t, std::uint32_t> known;  // of each peer: how many of its steps are known to be done
  std::map<std::uint32_t, std::uint32_t> read;   // ... and must be done when all sends so far were read
  const auto require = [&](const std::map<std::uint32_t, std::uint32_t>& wanted) {
    for (const auto& [peer, done] : wanted)
      if (done > known[peer]) lane.waits_.push_back({peer, done - 1}), known[peer] = done;
  };
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    lane.steps_.push_back({step});
    lane.first_wait_.push_back(lane.waits_.size());
    std::map<std::uint32_t, std::uint32_t> wanted;  // the latest of each peer says it all
    for (const SendRef send : deps.before(0, i)) {
      std::uint32_t& done = wanted[steps[send.step].peer];
      done = std::max(done, ends[send.step] + 1);
    }
    require(wanted);
    if (step.receives()) {
      const Step& sent = step_at(schedule, {step.peer, 0, ends[i]});
      lane.steps_.back() = {step, ends[i], sent.src_buf, sent.src_chunk};
      known[step.peer] = std::max(known[step.peer], ends[i] + 1);
    } else if (step.op() == Op::send) {
      read[step.peer] = std::max(read[step.peer], ends[i] + 1);
    }
  }
  lane.first_wait_.push_back(lane.waits_.size());
  require(read);
  lane.first_wait_.push_back(lane.waits_.size());
  return lane;
}

}  // namespace zerocomm::schedule
