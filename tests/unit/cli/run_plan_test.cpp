// What zc run decides: whom it signals when, and what it ends with.
#include "cli/run_plan.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace {

using namespace zerocomm::cli;
using Kind = RunAction::Kind;

// Actions as text: "all 15", "group 2", "stop", "say".
std::string text_of(const RunActions& actions) {
  std::string text;
  for (const RunAction& action : actions) {
    if (!text.empty()) text += ", ";
    if (action.kind == Kind::signal_all) text += "all " + std::to_string(action.signal);
    if (action.kind == Kind::end_group) text += "group " + std::to_string(action.rank);
    if (action.kind == Kind::stop_self) text += "stop";
    if (action.kind == Kind::say) text += "say";
  }
  return text;
}

Ending exited(int rank, int status = 0) { return {rank, 100 + rank, 0, status}; }
Ending killed(int rank, int signal) { return {rank, 100 + rank, signal, 0}; }

std::string end(RunPlan& plan, std::vector<Ending> endings, std::int64_t now_ns = 0) {
  return text_of(plan.ended(endings, now_ns));
}

using Lines = std::vector<std::string>;
constexpr std::int64_t kMs = kSecondNs / 1000;

TEST(RunPlan, all_is_well_if_every_rank_exits_with_0) {
  RunPlan plan(3, 0, 0);
  EXPECT_FALSE(plan.deadline_ns().has_value());
  EXPECT_EQ(end(plan, {exited(1)}), "");
  EXPECT_EQ(end(plan, {exited(0)}), "");
  EXPECT_FALSE(plan.done());
  EXPECT_EQ(end(plan, {exited(2)}), "");
  EXPECT_TRUE(plan.done());
  EXPECT_EQ(plan.exit_status(), 0);
  EXPECT_EQ(plan.report(), Lines{});
}

TEST(RunPlan, the_first_failure_decides_and_the_others_have_2_s_and_2_s_more) {
  RunPlan plan(4, 0, 0);
  EXPECT_EQ(end(plan, {exited(3)}, 1 * kMs), "");
  EXPECT_EQ(end(plan, {exited(1, 3)}, 5 * kMs), "group 1");
  EXPECT_EQ(plan.deadline_ns(), 2005 * kMs);
  EXPECT_EQ(text_of(plan.timer(2005 * kMs - 1)), "");
  EXPECT_EQ(text_of(plan.timer(2005 * kMs)), "all 15, all 18");
  EXPECT_EQ(plan.deadline_ns(), 4005 * kMs);
  EXPECT_EQ(end(plan, {killed(0, SIGTERM)}, 2006 * kMs), "group 0");
  EXPECT_EQ(text_of(plan.timer(4005 * kMs - 1)), "");
  EXPECT_EQ(text_of(plan.timer(4005 * kMs)), "all 9");
  EXPECT_FALSE(plan.done());
  EXPECT_EQ(end(plan, {killed(2, SIGKILL)}, 4006 * kMs), "group 2");
  EXPECT_TRUE(plan.done());
  EXPECT_EQ(plan.exit_status(), 3);
  EXPECT_EQ(plan.report(), (Lines{"zc run: rank 1 (pid 101) exited with status 3",
                                  "zc run: the others: 1 was killed by signal 15 (Terminated), 1 was killed by signal "
                                  "9 (Killed), 1 exited with status 0"}));
}

TEST(RunPlan, the_time_of_a_failure_is_not_extended_by_the_next) {
  RunPlan plan(3, 0, 0);
  end(plan, {killed(2, SIGSEGV)}, 0);
  end(plan, {exited(0, 1)}, 1500 * kMs);
  EXPECT_EQ(plan.deadline_ns(), 2000 * kMs);
  end(plan, {exited(1, 1)}, 1600 * kMs);
  EXPECT_EQ(plan.exit_status(), 128 + SIGSEGV);
  EXPECT_EQ(plan.report(), (Lines{"zc run: rank 2 (pid 102) was killed by signal 11 (Segmentation fault)",
                                  "zc run: the others: 2 exited with status 1"}));
}

TEST(RunPlan, of_failures_noticed_together_the_killed_rank_is_the_cause) {
  RunPlan plan(4, 0, 0);
  EXPECT_EQ(end(plan, {exited(0, 1), exited(1), killed(2, SIGKILL), exited(3, 1)}),
            "group 0, group 1, group 2, group 3");
  EXPECT_TRUE(plan.done());
  EXPECT_EQ(plan.exit_status(), 137);
  EXPECT_EQ(plan.report().front(), "zc run: rank 2 (pid 102) was killed by signal 9 (Killed)");
  RunPlan exits(2, 0, 0);
  end(exits, {exited(0, 5), exited(1, 6)});
  EXPECT_EQ(exits.exit_status(), 5);
}

TEST(RunPlan, one_rank_alone_has_no_others) {
  RunPlan plan(1, 0, 0);
  end(plan, {exited(0, 255)});
  EXPECT_EQ(plan.report(), Lines{"zc run: rank 0 (pid 100) exited with status 255"});
}

TEST(RunPlan, a_timeout_ends_all_and_exits_with_124) {
  RunPlan plan(2, 1500 * kMs, 10 * kMs);
  EXPECT_EQ(plan.deadline_ns(), 1510 * kMs);
  EXPECT_EQ(text_of(plan.timer(1510 * kMs - 1)), "");
  const RunActions actions = plan.timer(1510 * kMs);
  EXPECT_EQ(text_of(actions), "all 15, all 18, say");
  EXPECT_EQ(actions.back().text, "zc run: not done after 1.5 s");
  EXPECT_EQ(end(plan, {killed(0, SIGTERM)}, 1511 * kMs), "group 0");
  EXPECT_EQ(text_of(plan.timer(3510 * kMs)), "all 9");
  end(plan, {killed(1, SIGTERM)}, 3511 * kMs);
  EXPECT_EQ(plan.exit_status(), 124);
  EXPECT_EQ(plan.report(), Lines{"zc run: the ranks: 2 were killed by signal 15 (Terminated)"});
}

TEST(RunPlan, a_timeout_after_a_failure_is_no_news) {
  RunPlan plan(2, 100 * kMs, 0);
  end(plan, {exited(1, 7)}, 50 * kMs);
  EXPECT_EQ(text_of(plan.timer(100 * kMs)), "");
  end(plan, {exited(0)}, 200 * kMs);
  EXPECT_EQ(plan.exit_status(), 7);
}

TEST(RunPlan, a_timeout_does_not_come_after_the_end) {
  RunPlan plan(1, 100 * kMs, 0);
  end(plan, {exited(0)}, 50 * kMs);
  EXPECT_TRUE(plan.done());
  EXPECT_EQ(plan.exit_status(), 0);
}

TEST(RunPlan, signals_are_passed_on) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT}) {
    RunPlan plan(2, 0, 0);
    EXPECT_EQ(text_of(plan.signaled(signal, 0)), "all " + std::to_string(signal));
    EXPECT_FALSE(plan.deadline_ns().has_value());
    end(plan, {exited(0), exited(1)});
    EXPECT_EQ(plan.exit_status(), 0) << "ranks that end well after a signal have ended well";
  }
}

TEST(RunPlan, a_second_request_to_end_kills) {
  for (const int second : {SIGINT, SIGTERM}) {
    RunPlan plan(2, 0, 0);
    EXPECT_EQ(text_of(plan.signaled(SIGINT, 5 * kMs)), "all 2");
    EXPECT_EQ(text_of(plan.signaled(second, 5 * kMs + kRepeatNs)), "all 9, say");
    end(plan, {killed(0, SIGKILL), killed(1, SIGKILL)});
    EXPECT_EQ(plan.exit_status(), 128 + second);
    EXPECT_EQ(plan.report(), Lines{"zc run: the ranks: 2 were killed by signal 9 (Killed)"});
  }
}

TEST(RunPlan, one_request_that_arrives_twice_is_one) {
  RunPlan plan(2, 0, 0);
  plan.signaled(SIGTERM, 0);
  EXPECT_EQ(text_of(plan.signaled(SIGTERM, kRepeatNs - 1)), "all 15");
  EXPECT_EQ(text_of(plan.signaled(SIGTERM, kRepeatNs)), "all 9, say");
}

TEST(RunPlan, other_signals_may_come_as_often_as_they_like) {
  RunPlan plan(2, 0, 0);
  for (int i = 0; i < 3; ++i)
    for (const int signal : {SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
      EXPECT_EQ(text_of(plan.signaled(signal, i * kSecondNs)), "all " + std::to_string(signal));
}

TEST(RunPlan, a_second_request_after_a_failure_keeps_its_status) {
  RunPlan plan(2, 0, 0);
  end(plan, {exited(0, 9)});
  plan.signaled(SIGINT, 100 * kMs);
  EXPECT_EQ(text_of(plan.signaled(SIGINT, 900 * kMs)), "all 9, say");
  EXPECT_EQ(text_of(plan.signaled(SIGINT, 1900 * kMs)), "all 2") << "it can be killed only once";
  end(plan, {killed(1, SIGKILL)});
  EXPECT_EQ(plan.exit_status(), 9);
}

TEST(RunPlan, stopping_stops_the_ranks_first_and_continues_them_after) {
  RunPlan plan(2, 0, 0);
  EXPECT_EQ(text_of(plan.signaled(SIGTSTP, 0)), "all 19, stop, all 18");
}

TEST(RunPlan, a_program_that_cannot_be_started_ends_all_at_once) {
  RunPlan plan(3, 0, 0);
  EXPECT_EQ(text_of(plan.not_started("x: cannot be executed", 127, 0, 0)), "all 9");
  EXPECT_EQ(text_of(plan.not_started("y", 126, 0, 0)), "all 9");
  end(plan, {exited(0, 127), exited(1, 127), killed(2, SIGKILL)});
  EXPECT_TRUE(plan.done());
  EXPECT_EQ(plan.exit_status(), 127);
  EXPECT_EQ(plan.report(), Lines{"zc run: x: cannot be executed"});
}

TEST(RunPlan, ranks_that_have_no_process_are_not_waited_for) {
  RunPlan plan(5, 0, 0);
  EXPECT_EQ(text_of(plan.not_started("rank 2 cannot be started", 126, 3, 0)), "all 9");
  EXPECT_FALSE(plan.done());
  end(plan, {killed(0, SIGKILL), killed(1, SIGKILL)});
  EXPECT_TRUE(plan.done());
  EXPECT_EQ(plan.exit_status(), 126);
  RunPlan none(2, 0, 0);
  none.not_started("rank 0 cannot be started", 126, 2, 0);
  EXPECT_TRUE(none.done());
}

TEST(RunPlan, a_rank_that_survives_SIGKILL_is_given_up) {
  RunPlan plan(2, 0, 0);
  end(plan, {exited(0, 1)}, 0);
  std::int64_t now_ns = 0;
  for (const char* expected : {"all 15, all 18", "all 9", ""}) {
    ASSERT_TRUE(plan.deadline_ns().has_value());
    EXPECT_FALSE(plan.done());
    now_ns = *plan.deadline_ns();
    EXPECT_EQ(text_of(plan.timer(now_ns)), expected);
  }
  EXPECT_EQ(now_ns, 2 * kGraceNs + kGiveUpNs);
  EXPECT_TRUE(plan.done());
  EXPECT_FALSE(plan.deadline_ns().has_value());
  EXPECT_EQ(plan.exit_status(), 1);
  EXPECT_EQ(plan.report().back(), "zc run: the others: 1 did not end, not even by SIGKILL");
}

}  // namespace
