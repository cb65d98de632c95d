// A rank that is killed at any step of the protocol, that is between any two accesses to memory that ranks share.
#pragma once

#include "comm/fault.hpp"
#include "death/peer_lost.hpp"

#include <zerocomm/mem.h>

#include <cstdlib>
#include <memory>

namespace zerocomm::test {

// How far one rank came in one call.
struct Walk {
  static constexpr std::size_t kMost = 256;
  std::int32_t kill_at = 0;  // step at which the rank ends, from 1; 0: never
  std::int32_t steps = 0;
  char names[kMost][16] = {};

  // The number of the last step of that name; 0 if there is none.
  std::int32_t last(const std::string& name) const {
    for (std::int32_t i = std::min<std::int32_t>(steps, kMost); i > 0; --i)
      if (name == names[i - 1]) return i;
    return 0;
  }
};

// The walk of this thread, while it is in the call.
inline thread_local Walk* current_walk = nullptr;

inline void take_step(const char* name) {
  if (current_walk == nullptr) return;  // the keeper, or another call
  const std::int32_t index = current_walk->steps++;
  if (index < static_cast<std::int32_t>(Walk::kMost))
    std::snprintf(current_walk->names[index], sizeof current_walk->names[0], "%s", name);
  if (current_walk->steps == current_walk->kill_at) {
    kill(getpid(), SIGKILL);
    for (;;) ::pause();
  }
}

// Where the buffers of a call lie.
enum class Memory : std::uint8_t { staged, shared, private_read };

// One call of all ranks on f32 data, and what it leaves.
struct StepCall {
  const char* name;
  Memory memory;
  std::size_t count;  // elements per rank that are sent or received
  zc_status (*run)(zc_comm* comm, const float* send, float* recv, std::size_t count);
  // Elements of send and recv.
  std::size_t (*send_count)(std::size_t count, std::size_t ranks);
  std::size_t (*recv_count)(std::size_t count, std::size_t ranks);
  // Element i of what rank `rank` receives, when rank r sends r + 1 + 100 * (i % 7) at i.
  float (*wanted)(std::size_t i, std::size_t count, std::size_t rank, std::size_t ranks);
  const char* algo = "";  // ZC_ALGO
};

// The same in the form in which ranks write into each other's results.
inline StepCall spread(StepCall call, const char* algo) {
  call.algo = algo;
  return call;
}

inline float sent_element(std::size_t rank, std::size_t i) {
  return static_cast<float>(rank + 1) + 100 * static_cast<float>(i % 7);
}

inline constexpr auto kOne = [](std::size_t count, std::size_t) { return count; };
inline constexpr auto kAll = [](std::size_t count, std::size_t ranks) { return count * ranks; };
inline constexpr auto kNone = [](std::size_t, std::size_t) { return std::size_t{0}; };

inline float sum_at(std::size_t i, std::size_t ranks) {
  float sum = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) sum += sent_element(rank, i);
  return sum;
}

inline StepCall reduce_scatter_step(Memory memory, std::size_t count) {
  return {
      "reduce_scatter",
      memory,
      count,
      [](zc_comm* comm, const float* send, float* recv, std::size_t n) {
        return zc_reduce_scatter(comm, send, recv, n, ZC_DTYPE_F32, ZC_OP_SUM, nullptr);
      },
      kAll,
      kOne,
      [](std::size_t i, std::size_t n, std::size_t rank, std::size_t ranks) { return sum_at(rank * n + i, ranks); }};
}
inline StepCall all_gather_step(Memory memory, std::size_t count) {
  return {"all_gather",
          memory,
          count,
          [](zc_comm* comm, const float* send, float* recv, std::size_t n) {
            return zc_all_gather(comm, send, recv, n, ZC_DTYPE_F32, nullptr);
          },
          kOne,
          kAll,
          [](std::size_t i, std::size_t n, std::size_t, std::size_t) { return sent_element(i / n, i % n); }};
}
inline StepCall all_reduce_step(Memory memory, std::size_t count) {
  return {"all_reduce",
          memory,
          count,
          [](zc_comm* comm, const float* send, float* recv, std::size_t n) {
            return zc_all_reduce(comm, send, recv, n, ZC_DTYPE_F32, ZC_OP_SUM, nullptr);
          },
          kOne,
          kOne,
          [](std::size_t i, std::size_t, std::size_t, std::size_t ranks) { return sum_at(i, ranks); }};
}
// From the last rank.
inline StepCall broadcast_step(Memory memory, std::size_t count) {
  return {"broadcast",
          memory,
          count,
          [](zc_comm* comm, const float* send, float* recv, std::size_t n) {
            std::int32_t rank = 0, ranks = 0;
            RANK_OK(zc_comm_rank(comm, &rank));
            RANK_OK(zc_comm_size(comm, &ranks));
            if (rank == ranks - 1) std::memcpy(recv, send, n * sizeof(float));
            return zc_broadcast(comm, recv, n, ZC_DTYPE_F32, ranks - 1, nullptr);
          },
          kOne,
          kOne,
          [](std::size_t i, std::size_t, std::size_t, std::size_t ranks) { return sent_element(ranks - 1, i); }};
}
inline StepCall barrier_step() {
  return {"barrier",
          Memory::staged,
          0,
          [](zc_comm* comm, const float*, float*, std::size_t) { return zc_barrier(comm, nullptr); },
          kNone,
          kNone,
          [](std::size_t, std::size_t, std::size_t, std::size_t) { return 0.0F; }};
}
inline StepCall window_create_step() {
  return {"window_create",
          Memory::shared,
          0,
          [](zc_comm* comm, const float*, float*, std::size_t) {
            zc_window* window = nullptr;
            zc_window_config config{};
            config.struct_size = sizeof config;
            config.bytes = 100;
            const zc_status status = zc_window_create(comm, &config, &window);
            if (status == ZC_OK) RANK_OK(zc_window_destroy(window));
            return status;
          },
          kNone,
          kNone,
          [](std::size_t, std::size_t, std::size_t, std::size_t) { return 0.0F; }};
}

// Memory for `count` floats: of the process, or such as others reach.
inline std::shared_ptr<float> step_memory(zc_comm* comm, Memory kind, std::size_t count) {
  if (kind != Memory::shared) return {new float[count + 1](), std::default_delete<float[]>()};
  void* memory = nullptr;
  RANK_OK(zc_mem_alloc(comm, (count + 1) * sizeof(float), &memory));
  return {static_cast<float*>(memory), [](float*) {}};
}

// How many calls of survivors were complete, and how many were not.
struct StepCounts {
  int kills = 0, done = 0, lost = 0;
};
inline StepCounts step_counts;

// Runs the call with the victim killed at that step (0: after the call), and checks what the others got. Returns the
// victim's walk.
inline Walk kill_at_step(const StepCall& call, std::int32_t rank_count, std::int32_t victim, std::int32_t step,
                         const Walk& whole) {
  const auto ranks = static_cast<std::size_t>(rank_count);
  const Shared<Walk> walk;
  const SharedArray<Told> in_call(ranks), after(ranks);
  walk->kill_at = step;
  ++step_counts.kills;
  ChildRanks children(
      rank_count,
      [&](zc_comm* comm, std::int32_t rank) {
        const std::size_t self = static_cast<std::size_t>(rank), sends = call.send_count(call.count, ranks),
                          receives = call.recv_count(call.count, ranks);
        const std::shared_ptr<float> send = step_memory(comm, call.memory, sends),
                                     recv = step_memory(comm, call.memory, receives);
        for (std::size_t i = 0; i < sends; ++i) send.get()[i] = sent_element(self, i);
        comm::fault_hook.store(take_step);
        if (rank == victim) current_walk = &*walk;
        const zc_status status = call.run(comm, send.get(), recv.get(), call.count);
        in_call[rank].tell(status);
        current_walk = nullptr;
        for (std::size_t i = 0; status == ZC_OK && i < receives; ++i)
          RANK_CHECK(recv.get()[i] == call.wanted(i, call.count, self, ranks), "element %zu is %g", i,
                     static_cast<double>(recv.get()[i]));
        if (rank == victim) {
          kill(getpid(), SIGKILL);
          ::pause();
        }
        after[rank].tell(zc_barrier(comm, nullptr));
        check_stays(comm, after[rank]);
      },
      {.deadline_ns = kSlack * 20 * kSecondNs},
      [&](std::int32_t) {
        if (call.memory == Memory::staged) setenv("ZC_COPY", "staging", 1);
        setenv("ZC_ALGO", call.algo, 1);
      });
  const std::vector<ChildEnd> ends = children.wait(kSlack * 30 * kSecondNs);
  const auto where = [&](std::size_t rank) {
    return format("%s, memory %d, %zu ranks, rank %d killed at step %d (%s), rank %zu", call.name,
                  static_cast<int>(call.memory), ranks, victim, step,
                  step == 0 ? "after it" : walk->names[(step - 1) % static_cast<std::int32_t>(Walk::kMost)], rank);
  };
  // From which step of the victim on the others have all that they need of it.
  std::int32_t complete = whole.last("finished");
  if (complete == 0) complete = whole.last("filled");
  if (complete == 0) complete = whole.last("posted");
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const ChildEnd& end = ends[rank];
    if (static_cast<std::int32_t>(rank) == victim) {
      EXPECT_TRUE(end.killed_by(SIGKILL)) << where(rank) << ": " << end.text;
      EXPECT_EQ(walk->steps, step == 0 ? walk->steps : step) << where(rank);
      continue;
    }
    EXPECT_TRUE(end.ok()) << where(rank) << ": " << end.text;
    const auto in = static_cast<zc_status>(in_call[rank].status);
    const bool may_be_ok = step == 0 || step >= complete;
    EXPECT_TRUE(in == ZC_PEER_LOST || (in == ZC_OK && may_be_ok))
        << where(rank) << " got " << zc_status_name(in) << ": " << in_call[rank].text;
    if (in == ZC_PEER_LOST) {
      EXPECT_STREQ(in_call[rank].text, after[rank].text) << where(rank);
    }
    ++(in == ZC_OK ? step_counts.done : step_counts.lost);
  }
  expect_lost(after, children, {victim});
  if (testing::Test::HasFailure()) std::printf("%s\n", where(0).c_str());
  return *walk;
}

// Can ranks read each other's memory here?
inline bool can_read_private() {
  const Shared<bool> can;
  RankProcesses(2).run([&](zc_comm* comm, std::int32_t rank) {
    zc_comm_info info{};
    info.struct_size = sizeof info;
    RANK_OK(zc_comm_get_info(comm, &info));
    if (rank == 0) *can = std::strcmp(info.private_copy, "process_vm_readv") == 0;
  });
  return *can;
}

// Every step of every victim.
inline void kill_at_every_step(const StepCall& call, std::int32_t ranks) {
  for (std::int32_t victim = 0; victim < ranks && !testing::Test::HasFailure(); ++victim) {
    const Walk whole = kill_at_step(call, ranks, victim, 0, {});
    ASSERT_GE(whole.steps, 5);
    ASSERT_EQ(whole.last("reading") != 0, call.memory != Memory::staged) << call.name;
    ASSERT_EQ(whole.last("filled") != 0, call.memory == Memory::staged && call.count != 0) << call.name;
    ASSERT_LT(whole.steps, static_cast<std::int32_t>(Walk::kMost));
    for (std::int32_t step = 1; step <= whole.steps && !testing::Test::HasFailure(); ++step)
      kill_at_step(call, ranks, victim, step, whole);
  }
}

}  // namespace zerocomm::test
