// Write-after-read waits, derived from the ranges of chunks.
//
// A send only posts; the receiver may read the sender's memory later. So a step that writes a range first waits until
// the earlier sends of that range were taken. Builders never write this down; every executor obeys it.
#pragma once

#include "schedule/step.hpp"

#include <span>

namespace zerocomm::schedule {

// A send of the same rank.
struct SendRef {
  std::uint32_t lane = 0;
  std::uint32_t step = 0;
  friend bool operator==(const SendRef&, const SendRef&) = default;
};

// The waits of one rank.
class AntiDeps {
 public:
  // "Earlier" means: before in the same lane, or known to it through waits. A send that is not ordered before the
  // write at all is a race, and the verifier's business.
  AntiDeps(const Key& key, const RankSchedule& rank);

  // The sends that must have been taken before this step may write. A send that an earlier step of the lane already
  // waited for is left out.
  std::span<const SendRef> before(std::uint32_t lane, std::uint32_t step) const;

 private:
  struct LaneWaits {
    std::vector<std::size_t> first;  // of each step in sends, with the end
    std::vector<SendRef> sends;
  };
  std::vector<LaneWaits> lanes_;
};

}  // namespace zerocomm::schedule
