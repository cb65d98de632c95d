// Turns the words of a command line into a plan, or into one line that says what is wrong.
#include "cli/bench_options.hpp"

#include "cli/bench_sizes.hpp"
#include "cli/failure.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace zerocomm::cli {
namespace {

constexpr int kMostRanks = 1024;
constexpr int kMostIterations = 10'000'000;
constexpr std::size_t kLeastDefault = 8, kMostDefault = 64U << 20;

[[noreturn]] void refuse_option(const std::string& text) { throw Failure(text, Exit::usage); }

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (from <= text.length()) {
    const std::size_t to = std::min(text.find(',', from), text.length());
    parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

std::string collective_names() {
  std::string names;
  for (const CollectiveInfo& info : all_collectives()) names += (names.empty() ? "" : ", ") + std::string(info.name);
  return names;
}

std::vector<Collective> parse_collectives(const std::vector<std::string>& words) {
  std::vector<Collective> collectives;
  for (const std::string& word : words)
    for (const std::string& name : split(word)) {
      if (name == "all") {
        for (const CollectiveInfo& info : all_collectives()) collectives.push_back(info.collective);
      } else if (const auto collective = collective_of(name)) {
        collectives.push_back(*collective);
      } else {
        refuse_option(
            fmt::format("bench {}: there is no such collective; there are {}, and all", name, collective_names()));
      }
    }
  if (collectives.empty())
    refuse_option(
        fmt::format("bench needs a collective: zc bench all_reduce; there are {}, and all", collective_names()));
  return collectives;
}

// A word that stands for one of several values.
template <class Value, class Find>
std::vector<Value> parse_list(const char* option, const std::string& text, std::span<const Value> all, Find find,
                              std::string (*name_of)(Value)) {
  std::vector<Value> values;
  for (const std::string& name : split(text)) {
    if (name == "all") {
      values.insert(values.end(), all.begin(), all.end());
    } else if (const auto value = find(name)) {
      values.push_back(*value);
    } else {
      std::string names;
      for (const Value other : all) names += name_of(other) + ", ";
      refuse_option(fmt::format("{} {}: there are {}and all", option, name, names));
    }
  }
  return values;
}

std::vector<BenchPlace> parse_places(const std::string& text) {
  if (text == "both") return {BenchPlace::out, BenchPlace::in};
  if (text == "out") return {BenchPlace::out};
  if (text == "in") return {BenchPlace::in};
  refuse_option(fmt::format("--in-place {}: there are both, in and out", text));
}

bool parse_choice(const char* option, const std::string& text, const char* no, const char* yes) {
  if (text != no && text != yes) refuse_option(fmt::format("{} {}: there are {} and {}", option, text, no, yes));
  return text == yes;
}

void require_range(const char* option, int value, int least, int most) {
  if (value < least || value > most)
    refuse_option(fmt::format("{} {}: it takes a number from {} to {}", option, value, least, most));
}

std::vector<std::size_t> parse_sizes(const BenchOptions& options, BenchPlan& plan) {
  std::size_t least = kLeastDefault, most = kMostDefault;
  if (!options.min_bytes.empty()) least = parse_bytes("-b", options.min_bytes);
  if (!options.max_bytes.empty())
    most = parse_bytes("-e", options.max_bytes);
  else
    most = std::max(most, least);
  if (options.min_bytes.empty()) least = std::min(least, most);
  if (!options.step_bytes.empty()) {
    if (options.factor) refuse_option("-i and -f: only one of them");
    plan.step_bytes = parse_bytes("-i", options.step_bytes);
  } else {
    plan.factor = options.factor.value_or(4);
  }
  return size_ladder(least, most, plan.step_bytes, plan.factor);
}

std::vector<std::string> parse_peers(const std::string& text) {
  std::vector<std::string> peers;
  if (text.empty()) return peers;
  for (const std::string& name : split(text)) {
    const bool known = name == "openmpi" || name == "openmpi-ucx" || name == "mpich" || name == "gloo";
    if (!known) refuse_option(fmt::format("--compare {}: there are openmpi, openmpi-ucx, mpich and gloo", name));
    if (std::find(peers.begin(), peers.end(), name) != peers.end())
      refuse_option(fmt::format("--compare names {} twice", name));
    peers.push_back(name);
  }
  return peers;
}

}  // namespace

BenchPlan plan_bench(const BenchOptions& options, int usable_cores) {
  BenchPlan plan;
  plan.collectives = parse_collectives(options.collectives);
  plan.ranks = options.ranks.value_or(usable_cores);
  if (plan.ranks < 1 || plan.ranks > kMostRanks)
    refuse_option(fmt::format("--ranks {}: there may be 1 to {} ranks", plan.ranks, kMostRanks));
  plan.dtypes = parse_list("-d", options.dtype, bench_dtypes(), bench_dtype_of, bench_dtype_name);
  plan.ops = parse_list("-o", options.op, bench_ops(), bench_op_of, bench_op_name);
  plan.places = parse_places(options.in_place);
  plan.sizes_bytes = parse_sizes(options, plan);
  require_range("-n", options.iterations, 1, kMostIterations);
  require_range("-w", options.warmup, 0, kMostIterations);
  require_range("-c", options.check, 0, 1);
  require_range("--rounds", options.rounds, 1, 1000);
  require_range("-r", options.root, 0, plan.ranks - 1);
  if (options.timeout_s < 0 || options.timeout_s > 1e9)
    refuse_option(fmt::format("-T {}: it takes a number of seconds up to 1e9; 0 is none", options.timeout_s));
  plan.root = options.root;
  plan.iterations = options.iterations;
  plan.warmup = options.warmup;
  plan.check = options.check != 0;
  plan.loop = options.loop;
  plan.pin = options.pin;
  if (!options.triad_bytes.empty()) plan.triad_bytes = parse_bytes("--triad", options.triad_bytes);
  plan.plain = parse_choice("--memory", options.memory, "registered", "plain");
  plan.skewed = parse_choice("--skew", options.skew, "even", "one");
  for (const Collective collective : plan.collectives)
    if (plan.skewed && !info_of(collective).uneven)
      refuse_option(fmt::format("--skew one: {} takes no counts; reduce_scatter_v, all_gather_v and all_to_all_v do",
                                info_of(collective).name));
  plan.peers = parse_peers(options.compare);
  plan.rounds = plan.peers.empty() ? 1 : options.rounds;
  if (bench_cases(plan).empty())
    refuse_option(fmt::format("-d {} -o {}: elements of this type cannot be combined so", options.dtype, options.op));
  return plan;
}

std::vector<BenchCase> bench_cases(const BenchPlan& plan) {
  std::vector<BenchCase> cases;
  for (const Collective collective : plan.collectives) {
    if (collective == Collective::barrier) {
      cases.push_back({collective, ZC_DTYPE_NONE, ZC_OP_NONE, 0});
      continue;
    }
    const bool reduces = info_of(collective).reduces;
    for (const zc_dtype dtype : plan.dtypes)
      for (const zc_op op : plan.ops) {
        if (reduces ? !can_reduce(dtype, op) : op != plan.ops.front()) continue;
        for (const std::size_t bytes : plan.sizes_bytes)
          cases.push_back({collective, dtype, reduces ? op : ZC_OP_NONE,
                           bench_count(collective, bytes, zc_dtype_bytes(dtype), plan.ranks)});
      }
  }
  return cases;
}

double bench_memory_bytes(const BenchPlan& plan) {
  double most = 0;
  for (const BenchCase& row : bench_cases(plan)) {
    if (row.collective == Collective::barrier) continue;
    const auto bytes = static_cast<double>(row.count * zc_dtype_bytes(row.dtype));
    // One rank gets the vectors of all others.
    const double extra = row.collective == Collective::all_to_all_v && plan.skewed ? bytes * (plan.ranks - 1) : 0;
    most = std::max(most, 2 * bytes * plan.ranks + extra);
  }
  return most;
}

}  // namespace zerocomm::cli
