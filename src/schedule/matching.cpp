// V1: pairs sends with receives, channel by channel.
#include "base/check.hpp"
#include "schedule/schedule_text.hpp"
#include "schedule/verify.hpp"

#include <algorithm>
#include <map>

namespace zerocomm::schedule {

std::optional<Violation> check_matching(const Schedule& schedule) {
  struct Ends {
    std::vector<StepRef> sends, receives;
  };
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Ends> channels;  // from, to, lane
  for (StepRef at; at.rank < schedule.key.ranks; ++at.rank)
    for (at.lane = 0; at.lane < schedule.key.lanes; ++at.lane)
      for (at.step = 0; at.step < schedule.ranks[at.rank].lanes[at.lane].steps.size(); ++at.step) {
        const Step& step = step_at(schedule, at);
        if (step.op() == Op::send) channels[{at.rank, step.peer, at.lane}].sends.push_back(at);
        if (step.receives()) channels[{step.peer, at.rank, at.lane}].receives.push_back(at);
      }
  for (const auto& [channel, ends] : channels) {
    const std::size_t pairs = std::min(ends.sends.size(), ends.receives.size());
    for (std::size_t k = 0; k < pairs; ++k) {
      const Step& sent = step_at(schedule, ends.sends[k]);
      const Step& received = step_at(schedule, ends.receives[k]);
      if (sent.n_chunks != received.n_chunks || sent.codec != received.codec)
        return Violation{
            Property::matching, ends.receives[k],
            place_text(schedule, ends.receives[k]) + " meets " + place_text(schedule, ends.sends[k]) +
                (sent.codec != received.codec ? ", which has another codec" : ", which has another number of chunks")};
    }
    if (ends.sends.size() > pairs)
      return Violation{Property::matching, ends.sends[pairs],
                       place_text(schedule, ends.sends[pairs]) + " is received by nobody"};
    if (ends.receives.size() > pairs)
      return Violation{Property::matching, ends.receives[pairs],
                       place_text(schedule, ends.receives[pairs]) + " is sent by nobody"};
  }
  return std::nullopt;
}

void require_reach(const Schedule& schedule) {
  const std::uint64_t each = std::uint64_t{schedule.key.chunks} + schedule.scratch_chunks;
  ZC_REQUIRE(each <= kMaxPlaces / schedule.key.ranks, ZC_UNSUPPORTED,
             "%u ranks with %llu chunks and slots of scratch each; at most %llu in all can be looked at",
             schedule.key.ranks, static_cast<unsigned long long>(each), static_cast<unsigned long long>(kMaxPlaces));
}

void require_runnable(const Schedule& schedule) {
  std::optional<Violation> wrong = check_shape(schedule);
  if (!wrong) require_reach(schedule);
  if (!wrong) wrong = check_matching(schedule);
  ZC_REQUIRE(!wrong, ZC_ARGUMENT, "%s", wrong->text.c_str());
}

}  // namespace zerocomm::schedule
