// Some threads, each on a core of its own where there are enough, that do the same again and again, together.
#pragma once

#include <functional>
#include <vector>

namespace zerocomm::cli {

// Runs `work(thread)` on all threads, once to warm up and then `times`; returns each time in ns, of the slowest thread.
std::vector<double> time_team(int threads, int times, const std::function<void(int)>& work);

// Puts this thread on the index-th core that it may use, round and round.
void pin_to_core(int index);
int core_count();

}  // namespace zerocomm::cli
