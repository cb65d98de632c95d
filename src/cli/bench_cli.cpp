// The command line of zc bench.
#include "cli/bench_command.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace zerocomm::cli {
namespace {

constexpr const char* kCollectives =
    "all_reduce reduce_scatter all_gather broadcast reduce all_to_all barrier reduce_scatter_v all_gather_v "
    "all_to_all_v, "
    "several with commas between, or all";

constexpr const char* kFooter = R"(Examples:
  zc bench all_reduce                                a first look: one rank for each core, 8 B to 64 MiB
  zc bench all_gather --ranks 4 -b 8 -e 128M -f 2 -n 20 -w 5 -c 1 -J out.json
  zc bench reduce_scatter -d bfloat16 --memory plain --threads
  zc bench all_gather_v --skew one -r 1              all elements on rank 1
  zc bench all_reduce --compare openmpi,mpich        against other libraries, in turn in one job
  mpirun.openmpi -n 2 zc bench all_reduce            under a launcher, which says how many ranks
  zc bench limits                                    what memory, caches and wakes of this machine give
Sizes are bytes of the whole vector: all blocks together of all_gather, reduce_scatter, all_to_all. Times are those of
the slowest rank. The exit status is 1 if any result was wrong, 2 if the command line is.)";

void add_what(CLI::App& command, BenchOptions& options) {
  command.add_option("COLLECTIVE", options.collectives, kCollectives)->type_name("");
  command.add_option("--ranks", options.ranks, "Number of ranks, 1 to 1024 (default: one for each usable core)")
      ->type_name("RANKS");
  command.add_flag("--threads", options.threads, "Ranks are threads of one process (default: processes)");
  command.add_option("-b,--minbytes", options.min_bytes, "Smallest size (default 8)")->type_name("BYTES");
  command.add_option("-e,--maxbytes", options.max_bytes, "Largest size, such as 128M (default 64M)")
      ->type_name("BYTES");
  command.add_option("-f,--stepfactor", options.factor, "From one size to the next (default 4)")->type_name("FACTOR");
  command.add_option("-i,--stepbytes", options.step_bytes, "The same as a difference")->type_name("BYTES");
  command
      .add_option("-d,--datatype", options.dtype,
                  "int8 uint8 int32 int64 half float double bfloat16 f8e4m3, or all (default float)")
      ->type_name("TYPE");
  command.add_option("-o,--op", options.op, "sum prod max min avg mulsum, or all (default sum)")->type_name("OP");
  command.add_option("-r,--root", options.root, "Root, and the rank that has all with --skew one (default 0)")
      ->type_name("RANK");
  command.add_option("--in-place", options.in_place, "Which forms: both (default), out or in")->type_name("WHICH");
  command.add_option("--memory", options.memory, "registered: of zc_mem_alloc (default), or plain: as of malloc")
      ->type_name("KIND");
  command.add_option("--skew", options.skew, "Of the _v forms: even (default), or one: one rank has all elements")
      ->type_name("HOW");
}

void add_how(CLI::App& command, BenchOptions& options) {
  command.add_option("-n,--iters", options.iterations, "Calls that are timed (default 20)")->type_name("COUNT");
  command.add_option("-w,--warmup_iters", options.warmup, "Calls before them (default 5)")->type_name("COUNT");
  command.add_option("-c,--check", options.check, "1: every result is compared (default); 0: not")->type_name("0|1");
  command.add_flag("--loop", options.loop,
                   "Calls back to back on data that nobody touches, as nccl-tests does (default: fresh data for each)");
  command.add_flag("--pin", options.pin,
                   "Rank r stays on the r-th usable core, round and round; peers are bound likewise");
  command
      .add_option("--triad", options.triad_bytes,
                  "Memory for the triad of the bound (default: 4 caches, 256M to 1536M)")
      ->type_name("BYTES");
  command.add_option("-T,--timeout", options.timeout_s, "Longest time of a row's calls (default: none)")
      ->type_name("SECONDS");
  command.add_option("--min-busbw", options.min_busbw, "Exit status 1 if the average is below 0.9 times this")
      ->envname("NCCL_TESTS_MIN_BW")
      ->type_name("GB/s");
  command.add_option("--compare", options.compare, "Peers: openmpi, openmpi-ucx, mpich, gloo")->type_name("PEERS");
  command.add_option("--rounds", options.rounds, "With --compare: turns of own and peer (default 3)")
      ->type_name("COUNT");
  command.add_option("--peers", options.peers, "Where zc_peer_openmpi and its like are (default: beside zc)")
      ->type_name("FOLDER");
  command.add_option("-J,--output-json", options.json, "Write JSON to this file as well")->type_name("FILE");
  command.add_flag("--csv", options.csv, "Write CSV instead of the table");
  command.add_option("--output", options.output, "Write table or CSV to this file")->type_name("FILE");
  command.add_flag("-q,--quiet", options.quiet, "No progress line on a terminal");
  command.add_option("--serve", options.serve)->group("");
}

CLI::App* add_limits(CLI::App& command, LimitsOptions& options) {
  CLI::App* limits = command.add_subcommand("limits", "Memory streams, cache line, wakes, copies, page faults");
  limits->add_option("--threads", options.threads, "Threads, 1 up to this (default: one for each usable core)")
      ->check(CLI::Range(1, 1024))
      ->type_name("COUNT");
  limits->add_option("--bytes", options.bytes, "Size of each array (default 256M)")->type_name("BYTES");
  limits->add_flag("--json", options.json, "Write JSON");
  limits->add_option("--output", options.output, "Write to this file")->type_name("FILE");
  return limits;
}

}  // namespace

std::function<int()> add_bench(CLI::App& app, const std::vector<std::string>& words) {
  const auto options = std::make_shared<BenchOptions>();
  const auto limits_options = std::make_shared<LimitsOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure collectives: times, bandwidths, limits, other libraries");
  add_what(*command, *options);
  add_how(*command, *options);
  command->footer(kFooter);
  CLI::App* limits = add_limits(*command, *limits_options);
  return [options, limits_options, limits, &words] {
    if (limits->parsed()) return run_limits(*limits_options);
    options->words = words;
    return run_bench(*options);
  };
}

}  // namespace zerocomm::cli
