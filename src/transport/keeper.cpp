#include "transport/keeper.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/fork.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <list>
#include <mutex>
#include <vector>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

namespace zerocomm::transport {
namespace {

constexpr std::int64_t kBeatNs = 200'000'000;  // how often a keeper looks without being woken
constexpr std::int64_t kPollNs = 10'000'000;   // where the kernel cannot wait for several words
constexpr std::size_t kStackBytes = 256 * 1024;
constexpr std::size_t kMostWaits = 128;  // of one futex_waitv

// One word to sleep on. The kernel's struct futex_waitv.
struct WaitWord {
  std::uint64_t value = 0;
  std::uint64_t address = 0;
  std::uint32_t flags = FUTEX_32;
  std::uint32_t reserved = 0;
};

struct Entry {
  std::uint64_t id = 0;
  Control control;
  std::int32_t rank = 0;
  Keeper::Lost lost;
  bool held = false;
  bool leaving = false;
  std::vector<bool> reported;
};

void wake(std::atomic<std::uint32_t>& word, int waiters) {
  syscall(SYS_futex, &word, FUTEX_WAKE, waiters, nullptr, nullptr, 0);
}

std::uint64_t address_of(const std::atomic<std::uint32_t>& word) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&word));
}

}  // namespace

struct Keeper::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::list<Entry> entries;  // nodes stay where they are
  std::uint64_t next_id = 1;
  bool stopping = false;
  int refused = 0;                         // what the system said to robust futexes; the thread has ended then
  std::atomic<std::uint32_t> commands{0};  // counts changes of the above; the keeper sleeps on it too
  std::uint32_t generation = fork_generation();
  pthread_t thread{};
  robust_list_head robust{};
  bool can_wait_for_many = true;

  static_assert(offsetof(Liveness, word) - offsetof(Liveness, robust_next) == sizeof(void*));

  void command() {
    commands.fetch_add(1);
    wake(commands, 1);
  }

  // The list is correct after every store: the kernel may read it at any moment.
  static std::atomic_ref<void*> next_of(void* node) { return std::atomic_ref<void*>(*static_cast<void**>(node)); }

  void hold(Entry& entry) {
    Liveness& own = entry.control.rank(entry.rank).liveness;
    own.beat_ns.store(now_ns());
    own.word.store(static_cast<std::uint32_t>(syscall(SYS_gettid)) | FUTEX_WAITERS);
    next_of(&own.robust_next).store(next_of(&robust.list).load());
    next_of(&robust.list).store(&own.robust_next);
    entry.held = true;
  }

  void let_go(Entry& entry) {
    Liveness& own = entry.control.rank(entry.rank).liveness;
    own.left.store(1);
    void* node = &robust.list;
    while (next_of(node).load() != &own.robust_next) node = next_of(node).load();
    next_of(node).store(next_of(&own.robust_next).load());
    own.word.store(0);
    wake(own.word, 0x7fffffff);  // who watched this rank watches another one now
  }

  // The word of the next rank that has not left, after reporting those that have died: all of them, for the process
  // that would be woken by one may be stopped.
  bool watch(Entry& entry, WaitWord* wait) {
    const Control& control = entry.control;
    bool watches = false;
    for (std::int32_t step = 1; step < control.ranks(); ++step) {
      const std::int32_t rank = (entry.rank + step) % control.ranks();
      Liveness& other = control.rank(rank).liveness;
      const std::uint32_t seen = other.word.load();
      if (other.left.load() != 0) continue;
      if ((seen & FUTEX_OWNER_DIED) == 0) {
        if (!watches) *wait = {seen, address_of(other.word)};
        watches = true;
        continue;
      }
      if (entry.reported[static_cast<std::size_t>(rank)]) continue;
      entry.reported[static_cast<std::size_t>(rank)] = true;
      entry.lost(rank);
    }
    return watches;
  }

  void sleep(std::vector<WaitWord>& words) {
    const bool all = can_wait_for_many && words.size() <= kMostWaits;
    const std::int64_t limit_ns = all ? kBeatNs : kPollNs;
    timespec limit{};
    if (all) {
      const std::int64_t end_ns = now_ns() + limit_ns;
      limit.tv_sec = static_cast<std::time_t>(end_ns / 1'000'000'000);
      limit.tv_nsec = static_cast<long>(end_ns % 1'000'000'000);
      if (syscall(SYS_futex_waitv, words.data(), words.size(), 0, &limit, CLOCK_MONOTONIC) >= 0) return;
      if (errno != ENOSYS && errno != EPERM && errno != EACCES) return;  // woken, changed, interrupted, time is up
      can_wait_for_many = false;
      return;
    }
    limit.tv_nsec = static_cast<long>(limit_ns);
    syscall(SYS_futex, &commands, FUTEX_WAIT, static_cast<std::uint32_t>(words[0].value), &limit, nullptr, 0);
  }

  void run() {
    robust.list.next = &robust.list;
    robust.futex_offset = sizeof(void*);
    robust.list_op_pending = nullptr;
    if (syscall(SYS_set_robust_list, &robust, sizeof robust) != 0) {
      const std::lock_guard lock(mutex);
      refused = errno;
      changed.notify_all();
      return;
    }
    std::vector<WaitWord> words;
    for (;;) {
      words.clear();
      words.push_back({commands.load(), address_of(commands)});
      std::unique_lock lock(mutex);
      for (Entry& entry : entries)
        if (!entry.held) hold(entry);
      std::erase_if(entries, [this](Entry& entry) {
        if (entry.leaving) let_go(entry);
        return entry.leaving;
      });
      changed.notify_all();
      if (stopping && entries.empty()) return;
      // New entries go to the end and nobody else removes any, so the walk needs no lock; `lost` must not hold it.
      const auto end = entries.end();
      for (auto entry = entries.begin(); entry != end; ++entry) {
        entry->control.rank(entry->rank).liveness.beat_ns.store(now_ns());
        if (!entry->held) continue;
        lock.unlock();
        WaitWord wait;
        if (watch(*entry, &wait)) words.push_back(wait);
        lock.lock();
      }
      lock.unlock();
      sleep(words);
    }
  }
};

std::shared_ptr<Keeper> Keeper::of_process() {
  static std::mutex mutex;
  static std::weak_ptr<Keeper> current;
  static std::uint32_t generation = 0;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Keeper> keeper = current.lock();
  if (keeper && generation == fork_generation()) return keeper;
  keeper.reset(new Keeper());
  current = keeper;
  generation = fork_generation();
  return keeper;
}

Keeper::Keeper() : state_(std::make_unique<State>()) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the keeper handles no signal of the program
  const int result = pthread_create(
      &state_->thread, &attributes,
      [](void* state) -> void* {
        static_cast<State*>(state)->run();
        return nullptr;
      },
      state_.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  ZC_REQUIRE(result == 0, ZC_SYSTEM, "starting the keeper thread: %s", std::strerror(result));
  pthread_setname_np(state_->thread, "zc_keeper");
}

Keeper::~Keeper() {
  if (state_->generation != fork_generation()) {
    static_cast<void>(state_.release());  // a child made by fork: the thread is the parent's
    return;
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->command();
  pthread_join(state_->thread, nullptr);
}

std::uint64_t Keeper::stand_for(const Control& control, std::int32_t rank, Lost lost) {
  std::unique_lock lock(state_->mutex);
  Entry& entry = state_->entries.emplace_back();
  entry.id = state_->next_id++;
  entry.control = control;
  entry.rank = rank;
  entry.lost = std::move(lost);
  entry.reported.assign(static_cast<std::size_t>(control.ranks()), false);
  state_->command();
  state_->changed.wait(lock, [&] { return entry.held || state_->refused != 0; });
  if (state_->refused != 0) {
    const std::uint64_t id = entry.id;
    std::erase_if(state_->entries, [id](const Entry& one) { return one.id == id; });
    throw Error(ZC_SYSTEM, format("rank %d: robust futexes are refused: %s", rank, std::strerror(state_->refused)));
  }
  return entry.id;
}

void Keeper::leave(std::uint64_t id) {
  std::unique_lock lock(state_->mutex);
  for (Entry& entry : state_->entries)
    if (entry.id == id) entry.leaving = true;
  state_->command();
  state_->changed.wait(lock, [&] {
    return std::none_of(state_->entries.begin(), state_->entries.end(),
                        [&](const Entry& entry) { return entry.id == id; });
  });
}

}  // namespace zerocomm::transport
