// V5: finds accesses of one rank's lanes to the same chunk that nothing orders. Vector clocks, one entry per lane.
#pragma once

#include "schedule/footprint.hpp"

#include <optional>
#include <vector>

namespace zerocomm::schedule {

class RaceCheck {
 public:
  explicit RaceCheck(const Schedule& schedule);

  // `later` knows everything that `earlier` knew when it was done.
  void order(StepRef earlier, StepRef later) { join(later, known_[index(earlier)][earlier.step]); }
  // `receive` takes the message of `send`: the memory of the send is free again.
  void take(StepRef send, StepRef receive);
  // `later` waited until the message of `send` was taken.
  void order_after_take(StepRef send, StepRef later) { order(*taker_[index(send)][send.step], later); }
  // `at` was done: checks its reads and writes against those before, and remembers them.
  void done(StepRef at);

  // The first pair of accesses without order: earlier and later in this run.
  struct Race {
    StepRef first;
    StepRef second;
    std::uint32_t place;
  };
  const std::optional<Race>& race() const { return race_; }

  // Does anything that rank `from` did come before something that `to` did?
  bool heard(std::uint32_t to, std::uint32_t from) const;

 private:
  using Clock = std::vector<std::uint32_t>;  // per lane of any rank: how many of its steps are known to be done
  struct Access {
    StepRef at;
    bool writes;
  };

  std::size_t index(StepRef at) const { return std::size_t{at.rank} * schedule_.key.lanes + at.lane; }
  void join(StepRef at, const Clock& from);
  bool is_before(StepRef earlier, StepRef now) const { return now_[index(now)][index(earlier)] > earlier.step; }
  void access(StepRef at, Places places, bool writes);

  const Schedule& schedule_;
  std::vector<Clock> now_;                                  // of each lane
  std::vector<std::vector<Clock>> known_;                   // after each step of each lane
  std::vector<std::vector<std::optional<StepRef>>> taker_;  // of each send
  std::vector<std::vector<std::vector<Access>>> accesses_;  // of each place of each rank
  std::optional<Race> race_;
};

}  // namespace zerocomm::schedule
