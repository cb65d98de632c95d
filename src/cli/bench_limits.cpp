#include "cli/bench_limits.hpp"

#include "cli/bench_clock.hpp"
#include "cli/bench_kernels.hpp"
#include "cli/bench_stats.hpp"
#include "cli/bench_team.hpp"
#include "cli/run_descriptor.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

namespace zerocomm::cli {
namespace {

constexpr int kTimes = 7;
constexpr std::size_t kPageBytes = 4096;

// Pages of the system, private or of a memfd.
class Block {
 public:
  Block(std::size_t bytes, bool shared) : bytes_(bytes) {
    if (shared) {
      file_ = RunDescriptor(memfd_create("zc bench", MFD_CLOEXEC));
      if (!file_ || ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) refuse("memfd");
    }
    void* memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file_.get(), 0);
    if (memory == MAP_FAILED) refuse(std::to_string(bytes) + " bytes of memory");
    memory_ = static_cast<std::byte*>(memory);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { munmap(memory_, bytes_); }

  std::byte* get() const { return memory_; }
  void touch() const {
    for (std::size_t at = 0; at < bytes_; at += kPageBytes) memory_[at] = std::byte{1};
  }

 private:
  RunDescriptor file_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_;
};

// From times to a rate or to a time of one of `parts`.
Limit rate(std::string what, int threads, std::size_t bytes, double moved_bytes, const std::vector<double>& times_ns) {
  return {
      std::move(what), threads, bytes, moved_bytes / percentile(times_ns, 0.5), moved_bytes / percentile(times_ns, 0),
      "GB/s"};
}
Limit time_of(std::string what, std::size_t bytes, double parts, const std::vector<double>& times_ns) {
  return {std::move(what), 1, bytes, percentile(times_ns, 0.5) / parts, percentile(times_ns, 0) / parts, "ns"};
}

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, nullptr, nullptr, 0);
}

void busy_until(std::int64_t end_ns) {
  while (bench_now_ns() < end_ns) {
  }
}

}  // namespace

std::vector<Limit> measure_streams(int threads, std::size_t bytes) {
  struct Form {
    const char* name;
    std::size_t reads, writes;
  };
  constexpr Form kForms[] = {{"read", 1, 0}, {"fill", 0, 1}, {"copy", 1, 1}, {"triad", 2, 1}};
  const std::size_t part = bytes / static_cast<std::size_t>(threads) / kPageBytes * kPageBytes;
  const Block first(bytes, false), second(bytes, false), third(bytes, false);
  for (const Block* block : {&first, &second, &third}) block->touch();
  std::atomic<int> sink{0};
  std::vector<Limit> limits;
  for (const Form& form : kForms)
    for (const bool bypass : {false, true}) {
      if (bypass && (form.writes == 0 || !has_bypass())) continue;
      const std::vector<double> times = time_team(threads, kTimes, [&](int index) {
        const std::size_t at = static_cast<std::size_t>(index) * part;
        const std::byte* const from[] = {first.get() + at, second.get() + at};
        std::byte* const to[] = {third.get() + at};
        sink ^= run_stream({std::span(from, form.reads), std::span(to, form.writes), part, bypass});
      });
      limits.push_back(rate(std::string("stream ") + form.name + (bypass ? ", bypassing stores" : ""), threads, bytes,
                            static_cast<double>((form.reads + form.writes) * part) * threads, times));
    }
  return limits;
}

std::vector<Limit> measure_copies(std::size_t bytes) {
  constexpr std::size_t kLeast = 4096, kBatch = 4U << 20;
  const Block from(bytes, false), to(bytes, false);
  from.touch();
  to.touch();
  std::vector<Limit> limits;
  for (std::size_t size = kLeast; size <= bytes; size *= 8) {
    const std::size_t batch = std::max(kBatch / size, std::size_t{1});
    const std::vector<double> times = time_team(1, kTimes, [&](int) {
      for (std::size_t i = 0; i < batch; ++i) std::memcpy(to.get(), from.get(), size);
    });
    limits.push_back(rate("memcpy", 1, size, static_cast<double>(batch * size), times));
  }
  return limits;
}

std::vector<Limit> measure_line() {
  if (core_count() < 2) return {};
  constexpr std::uint32_t kTurns = 500;
  struct alignas(128) Line {
    std::atomic<std::uint32_t> turn{0};
  };
  Line lines[2];
  std::uint32_t done[2] = {0, 0};
  // Each answers the other: a turn is two lines, one after the other.
  const std::vector<double> times = time_team(2, 10, [&](int index) {
    const auto self = static_cast<std::size_t>(index);
    Line &own = lines[self], &other = lines[1 - self];
    for (const std::uint32_t end = done[self] + kTurns; done[self] != end;) {
      const std::uint32_t next = ++done[self];
      if (self == 0) own.turn.store(next);
      while (other.turn.load(std::memory_order_acquire) != next) {
      }
      if (self == 1) own.turn.store(next);
    }
  });
  return {time_of("cache line, one way between two cores", 0, 2.0 * kTurns, times)};
}

std::vector<Limit> measure_wakes() {
  constexpr int kWakes = 20;
  std::vector<Limit> limits;
  for (const int sleep_us : {20, 200, 2000}) {
    std::atomic<std::uint32_t> word{0};
    std::atomic<int> asleep{0};
    std::atomic<std::int64_t> woken_ns{0};
    std::vector<double> times;
    std::thread sleeper([&] {
      pin_to_core(1);
      for (std::uint32_t round = 1; round <= kWakes; ++round) {
        asleep = static_cast<int>(round);
        while (word.load() < round) futex(word, FUTEX_WAIT_PRIVATE, round - 1);
        woken_ns = bench_now_ns();
        while (word.load() < round + (1U << 16U)) std::this_thread::yield();  // until it has been looked at
        word = round;
      }
    });
    pin_to_core(0);
    for (std::uint32_t round = 1; round <= kWakes; ++round) {
      while (asleep != static_cast<int>(round) || word.load() != round - 1) std::this_thread::yield();
      busy_until(bench_now_ns() + std::int64_t{sleep_us} * 1000);
      woken_ns = 0;
      const std::int64_t begin = bench_now_ns();
      word = round;
      futex(word, FUTEX_WAKE_PRIVATE, 1);
      while (woken_ns == 0) std::this_thread::yield();
      times.push_back(static_cast<double>(woken_ns - begin));
      word = round + (1U << 16U);
    }
    sleeper.join();
    limits.push_back(time_of("futex wake to running, after " + std::to_string(sleep_us) + " us of sleep", 0, 1, times));
  }
  return limits;
}

std::vector<Limit> measure_faults(std::size_t bytes) {
  std::vector<Limit> limits;
  for (const bool shared : {false, true}) {
    std::vector<double> times;
    for (int i = 0; i < kTimes; ++i) {
      const Block block(bytes, shared);
      const std::int64_t begin = bench_now_ns();
      block.touch();
      times.push_back(static_cast<double>(bench_now_ns() - begin));
    }
    limits.push_back(time_of(shared ? "first touch of a page, memfd" : "first touch of a page, private", bytes,
                             static_cast<double>(bytes) / static_cast<double>(kPageBytes), times));
  }
  return limits;
}

}  // namespace zerocomm::cli
