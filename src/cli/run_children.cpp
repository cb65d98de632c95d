#include "cli/run_children.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>

#include <array>
#include <cstdint>

namespace zerocomm::cli {
namespace {

// 128 random bits, so that no two jobs ever meet.
std::string job_name() {
  std::array<std::uint64_t, 2> bits{};
  ssize_t got = 0;
  do got = getrandom(bits.data(), sizeof bits, 0);
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof bits)) refuse("getrandom");
  return fmt::format("zc-{:016x}{:016x}", bits[0], bits[1]);
}

constexpr std::string_view kOurs[] = {"ZC_RANK", "ZC_RANKS", "ZC_LOCAL_RANK", "ZC_LOCAL_RANKS", "ZC_JOB"};
constexpr std::string_view kRendezvous = "ZC_RENDEZVOUS";

// How the ranks are to meet, as zc run finds it; null: not said.
const char* asked_rendezvous() {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with(kRendezvous) && text.substr(kRendezvous.size()).starts_with('='))
      return *variable + kRendezvous.size() + 1;
  }
  return nullptr;
}

// `rendezvous`: whether that is given anew.
bool is_ours(std::string_view variable, bool rendezvous) {
  const std::string_view name = variable.substr(0, variable.find('='));
  if (rendezvous && name == kRendezvous) return true;
  for (const std::string_view ours : kOurs)
    if (name == ours) return true;
  return false;
}

std::vector<std::string> variables_of(int rank, int ranks, const std::string& job) {
  return {fmt::format("ZC_RANK={}", rank), fmt::format("ZC_RANKS={}", ranks), fmt::format("ZC_LOCAL_RANK={}", rank),
          fmt::format("ZC_LOCAL_RANKS={}", ranks), "ZC_JOB=" + job};
}

std::string start_text(const std::string& program, int error) {
  if (error == ENOENT && program.find('/') == std::string::npos)
    return fmt::format("{}: there is no such program in PATH", program);
  // A script is there and its first line names what is not.
  if (error == ENOENT && access(program.c_str(), F_OK) == 0)
    return fmt::format("{}: its interpreter is not there: {}", program, std::strerror(error));
  return fmt::format("{}: cannot be executed: {}", program, std::strerror(error));
}

}  // namespace

struct RunChildren::Failed {
  int error;
  bool at_exec;
};

RunChildren::RunChildren(const RunOptions& options, const RunSignals& signals, const rlimit& files)
    : program_(options.program),
      signals_(signals),
      files_(files),
      port_(asked_rendezvous()),
      pids_(static_cast<std::size_t>(options.ranks), 0) {
  for (std::string& word : program_) arguments_.push_back(word.data());
  arguments_.push_back(nullptr);
}

std::optional<StartFailure> RunChildren::start(const std::function<RankStreams(int rank)>& streams) {
  const int ranks = static_cast<int>(pids_.size());
  const std::string job = job_name();
  std::vector<char*> inherited;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!is_ours(*variable, port_.rendezvous().has_value())) inherited.push_back(*variable);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) refuse("pipe");
  failures_ = RunDescriptor(ends[0]);
  const RunDescriptor write_end(ends[1]);
  const pid_t parent = getpid();
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::string> own = variables_of(rank, ranks, job);
    if (port_.rendezvous()) own.push_back(fmt::format("{}={}", kRendezvous, *port_.rendezvous()));
    std::vector<char*> environment = inherited;
    for (std::string& variable : own) environment.push_back(variable.data());
    environment.push_back(nullptr);
    const RankStreams rank_streams = streams(rank);
    const pid_t pid = fork();
    if (pid == 0) become(environment, rank_streams, write_end.get(), parent);
    if (pid < 0)
      return StartFailure{fmt::format("rank {} cannot be started: {}", rank, std::strerror(errno)),
                          kStatusNotExecutable, static_cast<std::size_t>(ranks - rank)};
    setpgid(pid, pid);  // the child does it too; whoever comes first
    pids_[static_cast<std::size_t>(rank)] = pid;
  }
  return std::nullopt;
}

void RunChildren::become(const std::vector<char*>& environment, const RankStreams& streams, int failures,
                         pid_t parent) {
  Failed failed{0, false};
  const auto is = [](int target, int fd) { return fd < 0 || dup2(fd, target) == target; };
  if (setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && is(STDIN_FILENO, streams.in) &&
      is(STDOUT_FILENO, streams.out) && is(STDERR_FILENO, streams.err) && setrlimit(RLIMIT_NOFILE, &files_) == 0) {
    if (getppid() != parent) _exit(kStatusNotExecutable);  // zc run has died before it could take us along
    signals_.restore();
    execvpe(arguments_[0], arguments_.data(), environment.data());
    failed.at_exec = true;
  }
  failed.error = errno;
  // Shorter than PIPE_BUF, so whole; the parent has nothing else to go by if it fails.
  const bool told = write(failures, &failed, sizeof failed) == static_cast<ssize_t>(sizeof failed);
  _exit(told ? kStatusNotFound : kStatusNotExecutable);
}

std::optional<StartFailure> RunChildren::next_failure() {
  if (!failures_) return std::nullopt;
  Failed failed{};
  ssize_t got = 0;
  do got = read(failures_.get(), &failed, sizeof failed);
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof failed)) {
    if (got >= 0 || errno != EAGAIN) failures_.close();
    return std::nullopt;
  }
  if (!failed.at_exec)
    return StartFailure{fmt::format("a rank cannot be set up: {}", std::strerror(failed.error)), kStatusNotExecutable,
                        0};
  const bool absent = failed.error == ENOENT || failed.error == ENOTDIR;
  return StartFailure{start_text(program_[0], failed.error), absent ? kStatusNotFound : kStatusNotExecutable, 0};
}

std::vector<Ending> RunChildren::ended() const {
  std::vector<Ending> endings;
  for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
    if (pids_[rank] == 0) continue;
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pids_[rank]), &info, WEXITED | WNOWAIT | WNOHANG) != 0 || info.si_pid == 0)
      continue;
    Ending ending{static_cast<int>(rank), pids_[rank], 0, 0};
    (info.si_code == CLD_EXITED ? ending.status : ending.signal) = info.si_status;
    endings.push_back(ending);
  }
  return endings;
}

void RunChildren::reap(std::span<const Ending> endings) {
  for (const Ending& ending : endings) {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(ending.pid), &info, WEXITED | WNOHANG);
    pids_[static_cast<std::size_t>(ending.rank)] = 0;
  }
}

void RunChildren::signal_all(int signal) const {
  for (const pid_t pid : pids_)
    if (pid != 0) kill(-pid, signal);
}

void RunChildren::end_group(int rank) const {
  const pid_t pid = pids_[static_cast<std::size_t>(rank)];
  if (pid != 0) kill(-pid, SIGKILL);
}

}  // namespace zerocomm::cli
