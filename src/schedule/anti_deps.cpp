// Derivation of write-after-read waits: one walk over the lanes of a rank in an order that its waits allow.
#include "schedule/anti_deps.hpp"

#include "schedule/footprint.hpp"

namespace zerocomm::schedule {
namespace {

// How many steps of each lane are known to have been done.
using Known = std::vector<std::uint32_t>;

void join(Known& into, const Known& from) {
  for (std::size_t lane = 0; lane < into.size(); ++lane) into[lane] = std::max(into[lane], from[lane]);
}

}  // namespace

AntiDeps::AntiDeps(const Key& key, const RankSchedule& rank) : lanes_(rank.lanes.size()) {
  const auto n_lanes = static_cast<std::uint32_t>(rank.lanes.size());
  std::vector<std::vector<Known>> known(n_lanes);         // after each step
  std::vector<std::vector<SendRef>> open(n_lanes);        // sends a lane knows of and has not waited for
  std::vector<Known> listed(n_lanes, Known(n_lanes, 0));  // steps of each lane already looked through for `open`

  const auto advance = [&](std::uint32_t l) {
    const std::vector<Step>& steps = rank.lanes[l].steps;
    const auto s = static_cast<std::uint32_t>(known[l].size());
    if (s == steps.size()) return false;
    const Step& step = steps[s];
    Known now = s == 0 ? Known(n_lanes, 0) : known[l].back();
    if (step.wait != kNoWait) {
      const std::uint32_t other = wait_lane(step.wait), target = wait_step(step.wait);
      if (known[other].size() <= target) return false;
      join(now, known[other][target]);
    }
    for (std::uint32_t other = 0; other < n_lanes; ++other)
      for (std::uint32_t& i = listed[l][other]; i < now[other]; ++i)
        if (rank.lanes[other].steps[i].op() == Op::send) open[l].push_back({other, i});

    LaneWaits& waits = lanes_[l];
    waits.first.push_back(waits.sends.size());
    const Places written = written_places(key, step);
    std::erase_if(open[l], [&](SendRef send) {
      const bool hit = overlap(written, source_places(key, rank.lanes[send.lane].steps[send.step]));
      if (hit) waits.sends.push_back(send);
      return hit;
    });
    now[l] = s + 1;
    known[l].push_back(std::move(now));
    return true;
  };

  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t l = 0; l < n_lanes; ++l)
      while (advance(l)) moved = true;
  }
  // Steps behind a circle of waits can never run; they get no waits of this kind.
  for (std::uint32_t l = 0; l < n_lanes; ++l)
    lanes_[l].first.resize(rank.lanes[l].steps.size() + 1, lanes_[l].sends.size());
}

std::span<const SendRef> AntiDeps::before(std::uint32_t lane, std::uint32_t step) const {
  const LaneWaits& waits = lanes_[lane];
  return std::span(waits.sends).subspan(waits.first[step], waits.first[step + 1] - waits.first[step]);
}

}  // namespace zerocomm::schedule
