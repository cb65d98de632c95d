#include "comm/helper.hpp"

#include "base/check.hpp"
#include "base/fork.hpp"
#include "comm/requests.hpp"

#include <pthread.h>
#include <signal.h>

#include <system_error>

namespace zerocomm::comm {
namespace {
constexpr std::int64_t kLongestSleepNs = 250'000'000;
}

Helper::Helper(Requests& requests, Bell& bell) : requests_(&requests), bell_(&bell), generation_(fork_generation()) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // it handles no signal of the program
  int refused = 0;
  try {
    thread_ = std::make_unique<std::thread>([this] { run(); });
  } catch (const std::system_error& error) {
    refused = error.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ZC_REQUIRE(refused == 0, ZC_SYSTEM, "starting a helper thread: %s", std::generic_category().message(refused).c_str());
  pthread_setname_np(thread_->native_handle(), "zc_helper");
}

Helper::~Helper() {
  if (generation_ != fork_generation()) {
    static_cast<void>(thread_.release());  // a child made by fork: the thread is the parent's
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  ring(*bell_);
  thread_->join();
}

void Helper::wake() noexcept {
  { const std::lock_guard lock(mutex_); }  // it looks under the lock before it sleeps
  changed_.notify_all();
}

void Helper::run() noexcept {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || requests_->listed() != 0; });
      if (stopping_) return;
    }
    if (requests_->work()) continue;
    // Nothing to do but to wait for others. As in Comm::wait: count as a sleeper, look once more, sleep.
    bell_->sleepers.fetch_add(1);
    const std::uint32_t seen = bell_->count.load();
    bool stopping = false;
    {
      const std::lock_guard lock(mutex_);
      stopping = stopping_;
    }
    if (!requests_->work() && !stopping) sleep_on(*bell_, seen, kLongestSleepNs);
    bell_->sleepers.fetch_sub(1);
  }
}

}  // namespace zerocomm::comm
