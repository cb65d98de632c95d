// zc bench limits: measures what the machine gives, as a table and as JSON.
#include "cli/bench_command.hpp"
#include "cli/bench_facts.hpp"
#include "cli/bench_kernels.hpp"
#include "cli/bench_limits.hpp"
#include "cli/bench_sizes.hpp"
#include "cli/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <iterator>

namespace zerocomm::cli {
namespace {

constexpr std::size_t kDefaultBytes = 256U << 20, kLeastBytes = 64U << 10, kMostFaultBytes = 64U << 20;

std::string number(double value) { return fmt::format("{:.{}f}", value, value < 1000 ? 2 : 0); }

}  // namespace

std::string limits_table(const std::vector<Limit>& limits) {
  std::string text =
      fmt::format("# {:<46} {:>7} {:>10} {:>10} {:>10}  {}\n", "limit", "threads", "size", "median", "best", "unit");
  for (const Limit& limit : limits)
    fmt::format_to(std::back_inserter(text), "  {:<46} {:>7} {:>10} {:>10} {:>10}  {}\n", limit.what, limit.threads,
                   limit.bytes == 0 ? "" : bytes_text(static_cast<double>(limit.bytes)), number(limit.value),
                   number(limit.best), limit.unit);
  return text +
         "# GB/s: bytes read and written by all threads together, 10^9 a second; what stores fetch first is not "
         "counted\n"
         "# bypassing stores go past the caches; pages are 4 KiB; each thread stays on a core of its own if there are "
         "enough\n";
}

int run_limits(const LimitsOptions& options) {
  const HostFacts facts = host_facts();
  const int threads = options.threads == 0 ? facts.usable_cores : options.threads;
  const std::size_t asked = options.bytes.empty() ? kDefaultBytes : parse_bytes("--bytes", options.bytes);
  const std::size_t bytes = std::max(asked, kLeastBytes * static_cast<std::size_t>(threads)) / 4096 * 4096;
  require_memory(3.0 * static_cast<double>(bytes), facts, "three arrays of " + bytes_text(static_cast<double>(bytes)));
  std::vector<Limit> limits;
  // In a thread of its own, since measuring pins the thread.
  std::async(std::launch::async, [&] {
    const auto add = [&](const std::vector<Limit>& more) { limits.insert(limits.end(), more.begin(), more.end()); };
    for (int count = 1; count <= threads; ++count) add(measure_streams(count, bytes));
    add(measure_copies(bytes));
    add(measure_line());
    add(measure_wakes());
    add(measure_faults(std::min(bytes, kMostFaultBytes)));
  }).get();
  write_output(options.json ? limits_json(limits, facts.host, facts.model)
                            : fmt::format("# {}, {}; streams with {}\n", facts.host, facts.model, stream_level()) +
                                  limits_table(limits),
               options.output);
  return 0;
}

}  // namespace zerocomm::cli
