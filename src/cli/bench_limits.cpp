#include "cli/bench_command.hpp"
namespace zerocomm::cli {
int run_limits(const LimitsOptions&) { return 0; }
}  // namespace zerocomm::cli
