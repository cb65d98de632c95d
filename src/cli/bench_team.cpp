#include "cli/bench_team.hpp"

#include "cli/bench_clock.hpp"
#include "cli/bench_stats.hpp"

#include <sched.h>

#include <barrier>
#include <thread>

namespace zerocomm::cli {
namespace {

std::vector<std::size_t> own_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<std::size_t> cores;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0)
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &mask)) cores.push_back(core);
  if (cores.empty()) cores.push_back(0);
  return cores;
}

}  // namespace

int core_count() { return static_cast<int>(own_cores().size()); }

void pin_to_core(int index) {
  const std::vector<std::size_t> cores = own_cores();
  if (cores.size() < 2) return;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(cores[static_cast<std::size_t>(index) % cores.size()], &mask);
  (void)sched_setaffinity(0, sizeof mask, &mask);  // a figure without it is still one
}

std::vector<double> time_team(int threads, int times, const std::function<void(int)>& work) {
  std::vector<std::vector<std::int64_t>> taken(static_cast<std::size_t>(threads));
  std::barrier gate(threads);
  std::vector<std::thread> team;
  team.reserve(taken.size());
  for (int index = 0; index < threads; ++index)
    team.emplace_back([&, index] {
      pin_to_core(index);
      work(index);
      for (int i = 0; i < times; ++i) {
        gate.arrive_and_wait();
        const std::int64_t begin = bench_now_ns();
        work(index);
        taken[static_cast<std::size_t>(index)].push_back(bench_now_ns() - begin);
      }
    });
  for (std::thread& thread : team) thread.join();
  return slowest(taken);
}

}  // namespace zerocomm::cli
