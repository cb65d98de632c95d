// Domain "contributions" of the machine: memory holds expressions. Finds stale reads (V6) and, through RaceCheck,
// races (V5) on the way.
#pragma once

#include "schedule/expression.hpp"
#include "schedule/race_check.hpp"

namespace zerocomm::schedule {

class Contributions {
 public:
  explicit Contributions(const Schedule& schedule);

  using Message = std::vector<ExprId>;
  void after(StepRef at, StepRef earlier) { races_.order(earlier, at); }
  void after_take(StepRef at, StepRef send) { races_.order_after_take(send, at); }
  Message post(StepRef at, const Step& step);
  void take(StepRef at, const Step& step, Message message, StepRef send);
  void local(StepRef at, const Step& step);

  ExprId output(std::uint32_t rank, std::uint32_t chunk) const { return ranks_[rank].output[chunk]; }
  Expressions& expressions() { return expressions_; }
  const RaceCheck& races() const { return races_; }

  // The first read of something that is not there, or, in place, no longer there.
  struct StaleRead {
    StepRef at;
    std::string what;
  };
  const std::optional<StaleRead>& stale_read() const { return stale_; }

 private:
  struct Memory {
    std::vector<ExprId> input, output, scratch;
    std::vector<std::optional<StepRef>> stored;     // of each output chunk: the step that stored it first
    std::vector<std::vector<ExprId>> accumulators;  // of each lane
  };
  std::vector<ExprId>& cells(Memory& memory, Buf buf);
  std::vector<ExprId> read(StepRef at, Buf buf, std::uint32_t first, std::uint32_t n_chunks);
  void arrive(StepRef at, const Step& step, std::vector<ExprId> values);

  const Schedule& schedule_;
  Expressions expressions_;
  RaceCheck races_;
  std::vector<Memory> ranks_;
  std::optional<StaleRead> stale_;
};

}  // namespace zerocomm::schedule
