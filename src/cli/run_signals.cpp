#include "cli/run_signals.hpp"

#include <sys/signalfd.h>

namespace zerocomm::cli {

RunSignals::RunSignals() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT}) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) != 0) refuse("sigaction");
    if (now.sa_handler != SIG_IGN) sigaddset(&wanted, signal);
  }
  // Whoever started zc run may have ignored SIGCHLD, and then nobody could be waited for.
  struct sigaction child {};
  child.sa_handler = SIG_DFL;
  child.sa_flags = SA_NOCLDSTOP;
  struct sigaction pipe {};
  pipe.sa_handler = SIG_IGN;
  if (sigaction(SIGCHLD, &child, nullptr) != 0 || sigaction(SIGPIPE, &pipe, &pipe_before_) != 0) refuse("sigaction");
  sigaddset(&wanted, SIGCHLD);
  if (sigprocmask(SIG_BLOCK, &wanted, &before_) != 0) refuse("sigprocmask");
  fd_ = RunDescriptor(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) refuse("signalfd");
}

RunSignals::~RunSignals() { restore(); }

std::optional<int> RunSignals::next() const {
  signalfd_siginfo info{};
  ssize_t got = 0;
  do got = read(fd_.get(), &info, sizeof info);
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

// The signal itself, not SIGSTOP: the kernel lets it pass where nobody could continue the process.
void RunSignals::stop_self() const {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  sigprocmask(SIG_BLOCK, &stop, nullptr);
}

void RunSignals::restore() const {
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace zerocomm::cli
