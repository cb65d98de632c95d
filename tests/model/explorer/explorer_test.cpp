// The explorer itself: it sees every state once, finds what is wrong by a shortest way, and never says more than it
// saw.
#include "model/explorer.hpp"

#include <gtest/gtest.h>

#include <array>

namespace zerocomm::test {
namespace {

// Two threads add up to `most` each, one at a time: (most + 1)^2 states.
struct Counting {
  struct State {
    std::uint8_t at[2] = {};
    std::uint8_t count[2] = {};
  };
  int most = 0;
  std::uint8_t forbidden[2] = {0xff, 0xff};  // counts that are called wrong
  std::uint8_t stops_at = 0xff;              // thread 0 stops there, as if it waited for ever
  bool fate = false;                         // thread 1 may move or not
  bool wraps = false;                        // thread 1 begins again and again
  bool by_choice = false;                    // one, two or three at a time

  State start() const { return {}; }
  int threads() const { return 2; }
  std::string who(int thread) const { return "thread " + std::to_string(thread); }
  const char* wrong(const State& state) const {
    return std::memcmp(state.count, forbidden, 2) == 0 ? "a forbidden state" : nullptr;
  }
  const char* stuck(const State& state) const { return state.count[0] < most ? "thread 0 hangs" : nullptr; }
  std::span<const Line<Counting>> program(int thread) const;
};

Flow count(const Counting& model, Counting::State& state, int thread, int) {
  std::uint8_t& count = state.count[thread];
  if (count == model.most && model.wraps && thread == 1) count = 0xff;
  if (count == model.most || (thread == 0 && count == model.stops_at)) return blocked();
  ++count;
  return jump(0);
}
Flow break_at_two(const Counting& model, Counting::State& state, int thread, int choice) {
  const Flow flow = count(model, state, thread, choice);
  return state.count[1] == 2 ? broken("counted to two") : flow;
}
Flow count_by_choice(const Counting& model, Counting::State& state, int thread, int choice) {
  if (state.count[thread] + choice >= model.most) return blocked();
  state.count[thread] = static_cast<std::uint8_t>(state.count[thread] + choice + 1);
  return jump(0);
}
constexpr std::array kCountByChoice = {Line<Counting>{0, "adds one or more", &count_by_choice, 3}};
constexpr std::array kCount = {Line<Counting>{0, "adds one", &count}};
constexpr std::array kCountAsFate = {Line<Counting>{0, "adds one", &count, 1, true}};
constexpr std::array kBreakAtTwo = {Line<Counting>{0, "adds one", &break_at_two, 2}};
std::span<const Line<Counting>> Counting::program(int thread) const {
  if (fate && thread == 1) return kCountAsFate;
  if (by_choice) return kCountByChoice;
  return forbidden[1] == 0xfe && thread == 1 ? std::span<const Line<Counting>>(kBreakAtTwo) : kCount;
}

TEST(Explorer, visits_every_state_once_and_every_move) {
  const Finding finding = explore(Counting{9}, {1000, true});
  EXPECT_EQ(finding.verdict, Verdict::holds) << finding.text;
  EXPECT_EQ(finding.states, 100u);
  EXPECT_EQ(finding.moves, 180u);
}

TEST(Explorer, knows_old_states_again_after_its_table_has_grown) {
  Counting model{250};
  model.wraps = true;
  const Finding finding = explore(model, {100'000});
  EXPECT_EQ(finding.verdict, Verdict::holds) << finding.text;
  EXPECT_EQ(finding.states, 251u * 251u);
}

TEST(Explorer, takes_no_two_states_for_one_whatever_their_hash) {
  struct SameForAll {
    std::uint64_t operator()(const void*, std::size_t) const { return 0; }
  };
  const Counting model{30};
  const Finding finding = Explorer<Counting, SameForAll>(model).run();
  EXPECT_EQ(finding.verdict, Verdict::holds) << finding.text;
  EXPECT_EQ(finding.states, 31u * 31u);
}

TEST(Explorer, runs_a_line_with_each_of_its_choices) {
  Counting model{3};
  model.by_choice = true;
  const Finding finding = explore(model);
  EXPECT_EQ(finding.states, 16u);
  EXPECT_EQ(finding.moves, 2u * 4u * (3u + 2u + 1u));
  model.forbidden[0] = 3;
  model.forbidden[1] = 0;
  EXPECT_EQ(explore(model).trace, std::vector<std::string>{"thread 0: adds one or more (2)"});
}

TEST(Explorer, tells_a_shortest_way_to_a_forbidden_state) {
  Counting model{9};
  model.forbidden[0] = 1;
  model.forbidden[1] = 2;
  const Finding finding = explore(model);
  EXPECT_EQ(finding.verdict, Verdict::broken);
  EXPECT_EQ(finding.text, "a forbidden state");
  EXPECT_EQ(finding.trace,
            (std::vector<std::string>{"thread 0: adds one", "thread 1: adds one", "thread 1: adds one"}));
}

TEST(Explorer, tells_the_line_that_breaks_a_promise) {
  Counting model{9};
  model.forbidden[1] = 0xfe;
  const Finding finding = explore(model);
  EXPECT_EQ(finding.verdict, Verdict::broken);
  EXPECT_EQ(finding.text, "counted to two");
  EXPECT_EQ(finding.trace, (std::vector<std::string>{"thread 1: adds one (0)", "thread 1: adds one (0)"}));
}

TEST(Explorer, finds_a_deadlock_when_all_have_stopped) {
  Counting model{3};
  model.stops_at = 2;
  const Finding finding = explore(model);
  EXPECT_EQ(finding.verdict, Verdict::deadlock);
  EXPECT_EQ(finding.text, "thread 0 hangs");
  EXPECT_EQ(finding.trace.size(), 2u + 3u);
}

TEST(Explorer, does_not_count_on_what_may_never_happen) {
  Counting model{3};
  model.stops_at = 2;
  model.fate = true;
  const Finding finding = explore(model);
  EXPECT_EQ(finding.verdict, Verdict::deadlock);
  EXPECT_EQ(finding.trace.size(), 2u) << "thread 1 need not move before thread 0 hangs";
}

TEST(Explorer, finds_a_cycle_when_told_to) {
  Counting model{3};
  model.wraps = true;
  EXPECT_EQ(explore(model, {1000, false}).verdict, Verdict::holds);
  EXPECT_EQ(explore(model, {1000, true}).verdict, Verdict::cycle);
}

TEST(Explorer, does_not_say_holds_when_it_ran_out_of_states) {
  EXPECT_EQ(explore(Counting{9}, {99}).verdict, Verdict::too_many_states);
  EXPECT_EQ(explore(Counting{9}, {100}).verdict, Verdict::holds);
}

}  // namespace
}  // namespace zerocomm::test
