// Random changes of every row of the catalogue: the verifier must agree with a replay over integers on every one of
// them.
#include "replay.hpp"

#include "schedule/catalogue.hpp"
#include "schedule/contract.hpp"
#include "schedule/schedule_text.hpp"
#include "schedule/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace zerocomm::schedule {
namespace {

constexpr std::size_t kMutations = 1000;     // well-formed ones, for each row
constexpr std::uint64_t kInterleavings = 2;  // of each

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  Schedule sound(const Algorithm& row) {
    const std::uint32_t ranks = 2 + below(5), lanes = row.one_lane ? 1 : 1 + below(2);
    Key key = make_key(row.collective, row.name, ranks, has_root(row.collective) ? below(ranks) : 0, lanes);
    if (below(2) == 0) key.chunks *= 2;
    Schedule schedule = build(key);
    schedule.scratch_chunks = std::max(schedule.scratch_chunks, 2u);
    return schedule;
  }

  void mutate(Schedule& schedule) {
    const Key& key = schedule.key;
    std::vector<Step>& steps = schedule.ranks[below(key.ranks)].lanes[below(key.lanes)].steps;
    if (steps.empty()) return;
    const std::uint32_t i = below(static_cast<std::uint32_t>(steps.size()));
    const std::uint32_t j = below(static_cast<std::uint32_t>(steps.size()));
    Step& step = steps[i];
    switch (below(12)) {
      case 0:
        steps.erase(steps.begin() + i);
        break;
      case 1:
        steps.insert(steps.begin() + j, Step(steps[i]));
        break;
      case 2:
        std::swap(steps[i], steps[j]);
        break;
      case 3:
        if (step.op() == Op::send || step.receives()) step.peer = below(key.ranks);
        break;
      case 4:
        if (step.src_buf != Buf::none) step.src_chunk = below(std::max(key.chunks, 1u));
        break;
      case 5:
        if (step.dst_buf != Buf::none) step.dst_chunk = below(std::max(key.chunks, 1u));
        break;
      case 6:
        flip(step, below(2) == 0);
        break;
      case 7:
        if (step.src_buf != Buf::none) step.src_buf = static_cast<Buf>(1 + below(3));
        break;
      case 8:
        step.n_chunks = 1 + below(2);
        break;
      case 9: {
        const Step moved = step;
        steps.erase(steps.begin() + i);
        steps.insert(steps.begin() + std::min<std::ptrdiff_t>(j, std::ssize(steps)), moved);
        break;
      }
      case 10:
        std::shuffle(steps.begin(), steps.end(), random_);
        break;
      case 11:  // some ranks receive before they send
        for (RankSchedule& rank : schedule.ranks)
          for (Lane& lane : rank.lanes)
            if (below(2) == 0)
              std::stable_partition(lane.steps.begin(), lane.steps.end(), [](const Step& s) { return s.receives(); });
        break;
    }
  }

  // Another hold, or a sum instead of a move and the other way round.
  static void flip(Step& step, bool hold) {
    const auto op = [&] {
      switch (step.op()) {
        case Op::recv:
          return Op::recv_reduce;
        case Op::recv_reduce:
          return Op::recv;
        case Op::copy:
          return Op::reduce;
        case Op::reduce:
          return Op::copy;
        case Op::send:
          break;
      }
      return Op::send;
    };
    const auto flags = static_cast<std::uint8_t>(step.op_flags & kHold);
    step.op_flags = hold ? static_cast<std::uint8_t>(step.op_flags ^ kHold)
                         : static_cast<std::uint8_t>(flags | static_cast<std::uint8_t>(op()));
  }

  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

 private:
  std::mt19937 random_;
};

class Mutations : public testing::TestWithParam<Algorithm> {};

TEST_P(Mutations, verifier_and_replay_agree) {
  Mutator mutator(20240517);
  std::size_t tried = 0, unmatched = 0, accepted = 0;
  std::array<std::size_t, kProperties> broken{};
  while (tried < kMutations) {
    Schedule schedule = mutator.sound(GetParam());
    const Schedule original = schedule;
    for (std::uint32_t n = 1 + mutator.below(3); n > 0; --n) mutator.mutate(schedule);
    if (schedule == original) continue;
    const Verdict verdict = verify(schedule);
    for (const Violation& violation : verdict.violations) ++broken[static_cast<std::size_t>(violation.property)];
    if (verdict.of(Property::shape) == Finding::broken) continue;  // no schedule at all: nothing can replay it
    if (verdict.of(Property::matching) == Finding::broken && ++unmatched > kMutations / 4) continue;
    ++tried;
    const bool races = verdict.of(Property::races) == Finding::broken;
    // Whether ranks agree in rounding, and what it costs, is nothing that integers can see.
    const bool sound = std::none_of(verdict.violations.begin(), verdict.violations.end(), [](const Violation& v) {
      return v.property != Property::agreement && v.property != Property::cost;
    });
    if (sound) ++accepted;
    for (std::uint64_t seed = 0; seed < kInterleavings; ++seed) {
      const ReplayResult replay = Replay(schedule, seed, false).run();
      ASSERT_EQ(verdict.of(Property::matching) == Finding::holds, replay.matched)
          << verdict.text() << to_text(schedule);
      if (!replay.matched) continue;
      ASSERT_EQ(verdict.of(Property::termination) == Finding::holds, replay.terminated)
          << verdict.text() << to_text(schedule);
      if (!replay.terminated || races) continue;  // a race has no one result
      ASSERT_EQ(verdict.of(Property::result) == Finding::holds, replay.correct) << verdict.text() << to_text(schedule);
      if (sound) {
        ASSERT_TRUE(Replay(schedule, seed, true).run().correct) << "in place:\n" << to_text(schedule);
      }
    }
  }
  // The sample says something only if it holds good ones and each kind of bad ones.
  const Algorithm& row = GetParam();
  const auto found = [&](Property property) { return broken[static_cast<std::size_t>(property)]; };
  EXPECT_GT(accepted, 10u);
  EXPECT_GT(unmatched, 20u);
  EXPECT_GT(found(Property::cost), 0u);
  // In a tree or a star nothing goes round, and barriers have nothing to race about.
  const bool moves = row.collective != Collective::barrier;
  if (!has_root(row.collective) && row.collective != Collective::reduce_scatter) {
    EXPECT_GT(found(Property::termination), 5u);
  }
  if (moves) {
    EXPECT_GT(found(Property::result), 20u);
    EXPECT_GT(found(Property::stale_reads), 20u);
  }
  if (moves && !row.one_lane) {
    EXPECT_GT(found(Property::races), 5u);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Mutations, testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const auto& row) {
                           return std::string(collective_name(row.param.collective)) + "_" +
                                  std::string(row.param.name);
                         });

}  // namespace
}  // namespace zerocomm::schedule
