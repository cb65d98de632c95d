// Vector clocks over lanes, and the accesses to each place.
#include "schedule/race_check.hpp"

#include <algorithm>

namespace zerocomm::schedule {

RaceCheck::RaceCheck(const Schedule& schedule) : schedule_(schedule) {
  const std::size_t lanes = std::size_t{schedule.key.ranks} * schedule.key.lanes;
  now_.assign(lanes, Clock(lanes, 0));
  known_.resize(lanes);
  taker_.resize(lanes);
  for (std::uint32_t rank = 0; rank < schedule.key.ranks; ++rank)
    for (std::uint32_t lane = 0; lane < schedule.key.lanes; ++lane)
      taker_[index({rank, lane, 0})].resize(schedule.ranks[rank].lanes[lane].steps.size());
  accesses_.assign(schedule.key.ranks,
                   std::vector<std::vector<Access>>(std::size_t{schedule.key.chunks} + schedule.scratch_chunks));
}

void RaceCheck::join(StepRef at, const Clock& from) {
  Clock& now = now_[index(at)];
  for (std::size_t lane = 0; lane < now.size(); ++lane) now[lane] = std::max(now[lane], from[lane]);
}

void RaceCheck::take(StepRef send, StepRef receive) {
  order(send, receive);
  taker_[index(send)][send.step] = receive;
}

void RaceCheck::done(StepRef at) {
  const Lane& lane = schedule_.ranks[at.rank].lanes[at.lane];
  const Step& step = lane.steps[at.step];
  access(at, source_places(schedule_.key, step), false);
  access(at, read_destination(schedule_.key, lane, at.step), false);
  access(at, written_places(schedule_.key, step), true);
  now_[index(at)][index(at)] = at.step + 1;
  known_[index(at)].push_back(now_[index(at)]);
}

void RaceCheck::access(StepRef at, Places places, bool writes) {
  for (std::uint32_t place = places.first; place < places.first + places.count; ++place) {
    std::vector<Access>& before = accesses_[at.rank][place];
    for (const Access& other : before) {
      if (other.at == at || !(writes || other.writes)) continue;
      // A send reads until its message was taken, so a write must come after that, not only after the post.
      StepRef end = other.at;
      bool ended = true;
      if (step_at(schedule_, other.at).op() == Op::send) {
        const std::optional<StepRef>& taker = taker_[index(other.at)][other.at.step];
        ended = taker.has_value();
        end = taker.value_or(end);
      }
      if (!race_ && !(ended && is_before(end, at))) race_ = {other.at, at, place};
    }
    before.push_back({at, writes});
  }
}

bool RaceCheck::heard(std::uint32_t to, std::uint32_t from) const {
  for (std::uint32_t mine = 0; mine < schedule_.key.lanes; ++mine)
    for (std::uint32_t theirs = 0; theirs < schedule_.key.lanes; ++theirs)
      if (now_[index({to, mine, 0})][index({from, theirs, 0})] > 0) return true;
  return false;
}

}  // namespace zerocomm::schedule
