#include "cli/run_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace zerocomm::cli {
namespace {

bool failed(const Ending& ending) { return ending.signal != 0 || ending.status != 0; }

std::string signal_text(int signal) { return fmt::format("signal {} ({})", signal, strsignal(signal)); }

std::string ending_text(const Ending& ending, bool several) {
  if (ending.signal == 0) return fmt::format("exited with status {}", ending.status);
  return fmt::format("{} killed by {}", several ? "were" : "was", signal_text(ending.signal));
}

RunAction to_all(int signal) { return {RunAction::Kind::signal_all, signal, 0, {}}; }
RunAction line(std::string text) { return {RunAction::Kind::say, 0, 0, std::move(text)}; }

}  // namespace

RunPlan::RunPlan(int ranks, std::int64_t timeout_ns, std::int64_t now_ns)
    : endings_(static_cast<std::size_t>(ranks)), living_(endings_.size()), timeout_ns_(timeout_ns) {
  if (timeout_ns > 0) deadline_ns_ = now_ns + timeout_ns;
}

void RunPlan::enter(Phase phase, std::int64_t now_ns, std::int64_t longest_ns) {
  phase_ = phase;
  deadline_ns_ = now_ns + longest_ns;
}

// Finds the cause among endings that were noticed together.
void RunPlan::blame(std::span<const Ending> endings, std::int64_t now_ns) {
  auto cause = std::ranges::find_if(endings, [](const Ending& ending) { return ending.signal != 0; });
  if (cause == endings.end()) cause = std::ranges::find_if(endings, failed);
  if (cause == endings.end()) return;
  cause_rank_ = cause->rank;
  exit_status_ = cause->signal != 0 ? kStatusSignal + cause->signal : cause->status;
  enter(Phase::grace, now_ns, kGraceNs);
}

RunActions RunPlan::ended(std::span<const Ending> endings, std::int64_t now_ns) {
  for (const Ending& ending : endings) {
    endings_[static_cast<std::size_t>(ending.rank)] = ending;
    --living_;
  }
  if (phase_ == Phase::running) blame(endings, now_ns);
  RunActions actions;
  // What a rank leaves behind is its own business as long as all is well.
  if (phase_ != Phase::running)
    for (const Ending& ending : endings) actions.push_back({RunAction::Kind::end_group, 0, ending.rank, {}});
  return actions;
}

RunActions RunPlan::not_started(const std::string& text, int status, std::size_t missing, std::int64_t now_ns) {
  living_ -= missing;
  if (!exit_status_) {
    exit_status_ = status;
    start_failure_ = text;
  }
  return kill(now_ns);
}

RunActions RunPlan::terminate(std::int64_t now_ns) {
  enter(Phase::terminating, now_ns, kGraceNs);
  return {to_all(SIGTERM), to_all(SIGCONT)};  // a stopped rank is to see it too
}

RunActions RunPlan::kill(std::int64_t now_ns) {
  enter(Phase::killing, now_ns, kGiveUpNs);
  return {to_all(SIGKILL)};
}

RunActions RunPlan::ask_again(int signal, std::int64_t now_ns) {
  RunActions actions = kill(now_ns);
  actions.push_back(
      line(fmt::format("zc run: {} after an earlier request to end: all ranks are killed", signal_text(signal))));
  if (!exit_status_) exit_status_ = kStatusSignal + signal;
  return actions;
}

RunActions RunPlan::signaled(int signal, std::int64_t now_ns) {
  if (signal == SIGTSTP)  // SIGSTOP, because a rank that keeps running would wait for those that do not
    return {to_all(SIGSTOP), {RunAction::Kind::stop_self, 0, 0, {}}, to_all(SIGCONT)};
  if (signal == SIGINT || signal == SIGTERM) {
    if (!asked_ns_)
      asked_ns_ = now_ns;
    else if (now_ns - *asked_ns_ >= kRepeatNs && phase_ < Phase::killing)
      return ask_again(signal, now_ns);
  }
  return {to_all(signal)};
}

RunActions RunPlan::timer(std::int64_t now_ns) {
  if (!deadline_ns_ || now_ns < *deadline_ns_) return {};
  switch (phase_) {
    case Phase::running: {
      exit_status_ = kStatusTimeout;
      RunActions actions = terminate(now_ns);
      actions.push_back(line(fmt::format("zc run: not done after {:g} s", static_cast<double>(timeout_ns_) / 1e9)));
      return actions;
    }
    case Phase::grace:
      return terminate(now_ns);
    case Phase::terminating:
      return kill(now_ns);
    case Phase::killing:
    case Phase::given_up:
      phase_ = Phase::given_up;
      deadline_ns_.reset();
  }
  return {};
}

std::vector<std::string> RunPlan::report() const {
  if (!start_failure_.empty()) return {"zc run: " + start_failure_};
  if (!exit_status_) return {};
  std::vector<std::string> lines;
  if (cause_rank_) {
    const Ending& cause = *endings_[static_cast<std::size_t>(*cause_rank_)];
    lines.push_back(fmt::format("zc run: rank {} (pid {}) {}", cause.rank, cause.pid, ending_text(cause, false)));
  }
  struct Group {
    Ending ending;
    std::size_t ranks;
  };
  std::vector<Group> groups;
  std::size_t left = 0;
  for (std::size_t rank = 0; rank < endings_.size(); ++rank) {
    const std::optional<Ending>& ending = endings_[rank];
    if (cause_rank_ && rank == static_cast<std::size_t>(*cause_rank_)) continue;
    if (!ending) {
      ++left;
      continue;
    }
    const auto same = std::ranges::find_if(groups, [&](const Group& group) {
      return group.ending.signal == ending->signal && group.ending.status == ending->status;
    });
    if (same != groups.end())
      ++same->ranks;
    else
      groups.push_back({*ending, 1});
  }
  std::string text;
  for (const Group& group : groups)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", group.ranks, ending_text(group.ending, group.ranks > 1));
  if (left > 0) text += fmt::format("{}{} did not end, not even by SIGKILL", text.empty() ? "" : ", ", left);
  if (!text.empty()) lines.push_back(fmt::format("zc run: {}: {}", cause_rank_ ? "the others" : "the ranks", text));
  return lines;
}

}  // namespace zerocomm::cli
