// Two ranks on real memory: what one stores before it announces something, the other must find after it has seen the
// announcement. Posts and words of windows are announced and waited for as the library does it.
#pragma once

#include "base/clock.hpp"
#include "base/wait.hpp"
#include "transport/control.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <thread>

namespace zerocomm::test {

// What both ranks see: a control segment, and per rank payloads of plain words and two words of a window.
class Stage {
 public:
  static constexpr std::size_t kWords = 32, kPayloads = 16;
  struct Part {
    alignas(128) std::uint64_t payload[kPayloads][kWords] = {};
    alignas(128) std::atomic<std::uint64_t> published{0};
    std::atomic<std::uint64_t> done{0};
    std::atomic<std::uint32_t> over{0};
  };

  Stage() {
    memory_ = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    transport::Control::build(address(), 2, 1);
    new (&parts()) std::array<Part, 2>;
  }
  ~Stage() { munmap(memory_, bytes()); }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  transport::Control control() const { return transport::Control(address()); }
  Part& part(std::size_t rank) const { return parts()[rank]; }

  // A rank that has found something wrong says so, or the other would wait for it.
  std::string stop(const std::string& what) const {
    part(0).over.store(1);
    control().ring_all();
    return what;
  }
  bool is_over() const { return part(0).over.load() != 0; }

 private:
  static std::size_t parts_at() { return (transport::Control::bytes(2, 1) + 127) / 128 * 128; }
  static std::size_t bytes() { return parts_at() + sizeof(std::array<Part, 2>); }
  std::byte* address() const { return static_cast<std::byte*>(memory_); }
  std::array<Part, 2>& parts() const { return *reinterpret_cast<std::array<Part, 2>*>(address() + parts_at()); }

  void* memory_;
};

// Waits as Comm::wait does: a short spin, then asleep on the bell. False if nothing happens for a minute.
template <class Ready>
bool wait_on(Bell& bell, Ready&& ready) {
  static const int kLooks = usable_cores() > 1 ? 200 : 0;
  constexpr std::int64_t kMinuteNs = 60'000'000'000;
  int looks = 0;
  bool asleep = false, good = true;
  for (;;) {
    const std::uint32_t seen = bell.count.load();
    if (ready()) break;
    if (++looks < kLooks) {
      pause();
      continue;
    }
    if (!asleep) {
      asleep = true;
      bell.sleepers.fetch_add(1);
      continue;
    }
    const std::int64_t begin_ns = now_ns();
    sleep_on(bell, seen, kMinuteNs);
    if (now_ns() - begin_ns >= kMinuteNs) {
      good = ready();
      break;
    }
  }
  if (asleep) bell.sleepers.fetch_sub(1);
  return good;
}

// Rank `me` posts `rounds` calls, as post() and wait_for_posts() do, and looks at the other's. Returns what is wrong.
inline std::string play_posts(const Stage& stage, std::int32_t me, std::uint64_t rounds) {
  const transport::Control control = stage.control();
  const std::int32_t peer = 1 - me;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::size_t which = round % 2;
    transport::PostSlot& slot = control.rank(me).slots[which];
    const std::uint64_t mine = round + 1;
    slot.post.set_back();
    slot.post.call.count = slot.post.call.counts_hash = slot.post.call.premul_bits = mine;
    slot.post.send.offset = slot.post.recv.offset = slot.post.failed_bytes = mine;
    for (std::uint64_t& word : stage.part(static_cast<std::size_t>(me)).payload[which]) word = mine;
    control.rank(me).brief.store(mine);
    slot.sequence.store(mine);
    control.ring_all();

    const transport::PostSlot& theirs = control.rank(peer).slots[which];
    if (!wait_on(control.rank(me).bell, [&] { return theirs.sequence.load() > round || stage.is_over(); }))
      return stage.stop("round " + std::to_string(round) + ": the other rank does not come");
    if (stage.is_over()) return "the other rank has stopped";
    const transport::CallRecord& call = theirs.post.call;
    bool good = call.count == mine && call.counts_hash == mine && call.premul_bits == mine &&
                theirs.post.send.offset == mine && theirs.post.recv.offset == mine && theirs.post.failed_bytes == mine;
    for (const std::uint64_t word : stage.part(static_cast<std::size_t>(peer)).payload[which])
      good = good && word == mine;
    if (!good) return stage.stop("round " + std::to_string(round) + ": a post is not whole");
  }
  return "";
}

// Rank 0 publishes `rounds` generations of its payloads, one after the other, as update_begin and publish do; rank 1
// fetches each. Several payloads let the ranks run apart, so that few rounds cost a sleep.
inline std::string play_generations(const Stage& stage, std::int32_t me, std::uint64_t rounds) {
  const transport::Control control = stage.control();
  Bell& bell = control.rank(me).bell;
  Stage::Part& owner = stage.part(0);
  Stage::Part& reader = stage.part(1);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t generation = round + 1;
    auto& payload = owner.payload[round % Stage::kPayloads];
    if (me == 0) {
      if (!wait_on(bell, [&] { return reader.done.load() + Stage::kPayloads >= generation || stage.is_over(); }))
        return stage.stop("the reader does not come");
      for (std::uint64_t& word : payload) word = generation;
      owner.published.store(generation);
    } else {
      if (!wait_on(bell, [&] { return owner.published.load() >= generation || stage.is_over(); }))
        return stage.stop("the owner does not come");
      for (const std::uint64_t word : payload)
        if (word != generation) return stage.stop("generation " + std::to_string(generation) + " is not whole");
      reader.done.store(generation);
    }
    if (stage.is_over()) return "the other rank has stopped";
    control.ring_all();
  }
  return "";
}

using Play = std::function<std::string(const Stage&, std::int32_t me, std::uint64_t rounds)>;

inline void expect_whole_among_threads(const Play& play, std::uint64_t rounds) {
  const Stage stage;
  std::string wrong;
  std::thread other([&] { wrong = play(stage, 1, rounds); });
  EXPECT_EQ(play(stage, 0, rounds), "");
  other.join();
  EXPECT_EQ(wrong, "");
}

inline void expect_whole_among_processes(const Play& play, std::uint64_t rounds) {
  const Stage stage;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(play(stage, 1, rounds).empty() ? 0 : 1);
  }
  EXPECT_EQ(play(stage, 0, rounds), "");
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  EXPECT_EQ(status, 0) << "rank 1 found something wrong, or died";
}

}  // namespace zerocomm::test
