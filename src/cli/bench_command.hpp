// The command zc bench.
#pragma once

#include "cli/bench_options.hpp"

#include <functional>

namespace CLI {
class App;
}

namespace zerocomm::cli {

// The exit status: 1 if a result was wrong, or less than was demanded.
int run_bench(const BenchOptions& options);

struct LimitsOptions {
  int threads = 0;  // 0: as many as cores
  std::string bytes;
  bool quick = false;
  bool json = false;
  std::string output;
};
int run_limits(const LimitsOptions& options);

// Adds `bench` to the program. The function runs it, once the command line is read; `words` is that line.
std::function<int()> add_bench(CLI::App& app, const std::vector<std::string>& words);

}  // namespace zerocomm::cli
