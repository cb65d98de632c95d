// The program zc: reads the command line, runs one command, and ends every failure with one line on stderr.
#include "cli/bench_command.hpp"
#include "cli/failure.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"

#include <zerocomm/version.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

using namespace zerocomm::cli;

int end_badly(const std::string& text, Exit exit) {
  std::string line = text.substr(0, text.find_last_not_of(" \n") + 1);
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  std::fprintf(stderr, "zc: %s\n", line.c_str());
  return static_cast<int>(exit);
}

// Whole numbers that a size can hold. The check of the command line's library takes -5 for a very large one.
CLI::Validator whole_number(std::size_t least) {
  return {[least](const std::string& text) -> std::string {
            std::size_t value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (error == std::errc() && end == text.data() + text.size() && value >= least) return {};
            return text + " is not a whole number from " + std::to_string(least) + " to " + std::to_string(SIZE_MAX);
          },
          ""};
}

void add_cut(CLI::App& command, CutOptions& cut) {
  command.add_option("-n,--ranks", cut.ranks, "Number of ranks")->required()->type_name("RANKS");
  command.add_option("--align", cut.alignment_bytes, "Alignment of tensors and shards, a power of two (default 64)")
      ->check(whole_number(0))
      ->type_name("BYTES");
  command.add_option("--bucket", cut.bucket_bytes, "Largest bucket of gradients (default 26214400)")
      ->check(whole_number(0))
      ->type_name("BYTES");
  command.add_option("--persistent", cut.persistent_bytes, "Units up to this stay gathered in stage 3 (default: none)")
      ->check(whole_number(0))
      ->type_name("BYTES");
  command.add_flag("--flat", cut.flat, "One cut over each whole buffer (default: one cut per unit)");
}

// The library takes 0 as "default"; on a command line 0 is a mistake.
void check_cut(const CLI::App& command, const CutOptions& cut) {
  if (cut.ranks < 1) throw Failure("-n " + std::to_string(cut.ranks) + ": at least 1 rank is needed", Exit::usage);
  for (const char* name : {"--align", "--bucket"})
    if (command.count(name) > 0 && command.get_option(name)->as<std::size_t>() == 0)
      throw Failure(std::string(name) + " 0: at least 1 byte is needed", Exit::usage);
  const std::size_t alignment = cut.alignment_bytes;
  if ((alignment & (alignment - 1)) != 0)
    throw Failure("--align " + std::to_string(alignment) + ": it must be a power of two", Exit::usage);
}

std::function<int()> add_layout(CLI::App& app, LayoutOptions& options) {
  CLI::App* command = app.add_subcommand("layout", "Show how a model is cut: units, buffers, buckets, shards, padding");
  command->add_option("MODEL", options.cut.model, "Model file")->required()->type_name("FILE");
  add_cut(*command, options.cut);
  command->add_option("--stage", options.stage, "ZeRO stage, 0 to 3")->required()->type_name("STAGE");
  command->add_option("--rank", options.rank, "Show the shards of this rank alone")->type_name("RANK");
  command->add_flag("--json", options.json, "Write JSON");
  command->add_option("--output", options.output, "Write to this file")->type_name("FILE");
  return [command, &options] {
    check_cut(*command, options.cut);
    run_layout(options);
    return 0;
  };
}

std::function<int()> add_estimate(CLI::App& app, EstimateOptions& options) {
  CLI::App* command = app.add_subcommand("estimate", "Memory and traffic of one rank in stages 0 to 3, by formula");
  CLI::Option* model = command->add_option("MODEL", options.cut.model, "Model file")->type_name("FILE");
  CLI::Option* count = command->add_option("--params", options.parameter_count, "Number of parameters, without a model")
                           ->check(whole_number(0))
                           ->type_name("COUNT");
  model->excludes(count);
  add_cut(*command, options.cut);
  command->add_option("--dtype", options.dtype, "Type of --params: f32, f16 or bf16 (default bf16)")
      ->default_str("bf16")
      ->type_name("DTYPE")
      ->needs(count);
  options.dtype = "bf16";
  command->add_option("--rank", options.rank, "Rank whose share is counted (default 0)")->type_name("RANK");
  command->add_option("--moments", options.moment_bytes, "Optimizer bytes per trained element (default 8: Adam)")
      ->check(whole_number(0))
      ->type_name("BYTES");
  command->add_option("--micro-steps", options.micro_steps, "Gradient passes per optimizer step (default 1)")
      ->type_name("COUNT");
  command->add_flag("--accumulate-first", options.accumulate_first, "Gradients are added up before they are reduced");
  command->add_flag("--json", options.json, "Write JSON");
  command->add_option("--output", options.output, "Write to this file")->type_name("FILE");
  return [command, model, count, &options] {
    if (model->count() + count->count() == 0) throw Failure("estimate needs a model file or --params", Exit::usage);
    if (options.micro_steps < 1)
      throw Failure("--micro-steps " + std::to_string(options.micro_steps) + ": at least 1 is needed", Exit::usage);
    check_cut(*command, options.cut);
    run_estimate(options);
    return 0;
  };
}

std::function<int()> add_info(CLI::App& app, InfoOptions& options) {
  CLI::App* command =
      app.add_subcommand("info", "What was built, what this host and this launcher give, which variables are set");
  command->add_flag("--json", options.json, "Write JSON");
  command->add_option("--output", options.output, "Write to this file")->type_name("FILE");
  return [&options] {
    run_info(options);
    return 0;
  };
}

std::function<int()> add_report(CLI::App& app, ReportOptions& options) {
  CLI::App* command = app.add_subcommand("report", "A page with plots and tables from the JSON files of zc bench -J");
  command->add_option("FILE", options.files, "What zc bench -J wrote, one file or several")->required()->type_name("");
  command->add_option("-o,--output", options.output, "Write the page to this file")->type_name("FILE");
  return [&options] {
    run_report(options);
    return 0;
  };
}

// One of show, verify and cost: a row of the catalogue with its key, or a file.
void add_schedule_part(CLI::App& parent, ScheduleOptions& options, ScheduleCommand part, const char* name,
                       const char* what) {
  CLI::App* command = parent.add_subcommand(name, what);
  command->add_option("COLLECTIVE", options.collective, "A collective of the catalogue")->type_name("COLLECTIVE");
  command->add_option("ALGORITHM", options.algorithm, "One of its algorithms (default direct)")->type_name("ALGORITHM");
  CLI::Option* const of_catalogue[] = {
      command->add_option("-n,--ranks", options.ranks, "Number of ranks")->type_name("RANKS"),
      command->add_option("--root", options.root, "Root of a rooted collective (default 0)")->type_name("RANK"),
      command->add_option("--chunks", options.chunks, "Chunks of the whole vector (default: the fewest)")
          ->check(CLI::Range(std::uint32_t{1}, UINT32_MAX))
          ->type_name("COUNT"),
      command->add_option("--lanes", options.lanes, "Lanes of each rank (default 1)")
          ->check(CLI::Range(1, 255))
          ->type_name("COUNT"),
  };
  CLI::Option* file = command->add_option("--file", options.file, "Read the schedule from this text instead");
  file->type_name("FILE");
  for (CLI::Option* option : of_catalogue) file->excludes(option);  // the text says it
  command->add_option("--output", options.output, "Write to this file")->type_name("FILE");
  if (part != ScheduleCommand::show) command->add_flag("--json", options.json, "Write JSON");
  if (part == ScheduleCommand::cost) {
    CLI::Option* csv = command->add_flag("--csv", options.csv, "Write CSV");
    csv->excludes("--json");
    command->add_option("--count", options.count, "Elements of the whole vector (default: one for each chunk)")
        ->check(whole_number(1))
        ->type_name("COUNT");
  }
  command->callback([&options, part] { options.command = part; });
}

std::function<int()> add_schedule(CLI::App& app, ScheduleOptions& options) {
  CLI::App* command = app.add_subcommand("schedule", "Collective schedules: list, show, prove and count them");
  command->require_subcommand(1);
  CLI::App* list = command->add_subcommand("list", "The catalogue of algorithms");
  list->add_flag("--json", options.json, "Write JSON");
  list->add_option("--output", options.output, "Write to this file")->type_name("FILE");
  list->callback([&options] { options.command = ScheduleCommand::list; });
  add_schedule_part(*command, options, ScheduleCommand::show, "show", "What every rank does, as text");
  add_schedule_part(*command, options, ScheduleCommand::verify, "verify", "Prove a schedule, or say where it is wrong");
  add_schedule_part(*command, options, ScheduleCommand::cost, "cost", "Messages, data and critical path");
  return [&options] {
    const bool from_file = !options.file.empty();
    if (options.command != ScheduleCommand::list && from_file == !options.collective.empty())
      throw Failure(from_file ? "--file and a collective: only one of them" : "a collective or --file is needed",
                    Exit::usage);
    if (!options.collective.empty() && options.ranks < 1)
      throw Failure("-n " + std::to_string(options.ranks) + ": at least 1 rank is needed", Exit::usage);
    return run_schedule(options);
  };
}

Prefix prefix_of(const std::string& word) {
  if (word == "auto") return Prefix::automatic;
  if (word == "always") return Prefix::always;
  if (word == "never") return Prefix::never;
  throw Failure("--prefix " + word + ": there are auto, always and never", Exit::usage);
}

std::function<int()> add_run(CLI::App& app, RunOptions& options) {
  CLI::App* command = app.add_subcommand("run", "Start a program several times on this host, as the ranks of one job");
  command->add_option("-n,--ranks", options.ranks, "Number of ranks, 1 to 1024")->required()->type_name("RANKS");
  const CLI::Option* timeout =
      command->add_option("--timeout", options.timeout_s, "End the job after this time (default: never)")
          ->type_name("SECONDS");
  const CLI::Option* prefix =
      command->add_option("--prefix")
          ->description("The rank in front of every line: auto (default: on a terminal), always or never")
          ->type_name("WHEN");
  command->footer("zc run -n RANKS [OPTIONS] -- PROGRAM ARGS...");
  return [timeout, prefix, &options] {
    if (timeout->count() > 0 && !(options.timeout_s > 0))
      throw Failure("--timeout " + timeout->results().back() + ": more than 0 seconds are needed", Exit::usage);
    if (prefix->count() > 0) options.prefix = prefix_of(prefix->results().back());
    return run_ranks(options);
  };
}

// Cuts the program and its arguments off the words after "run": what follows "--", or the first word that is no option
// and belongs to none, however much it looks like an option or a command of ours.
std::vector<std::string> take_program(const CLI::App& command, std::vector<std::string>& words) {
  std::size_t i = 1;
  while (i < words.size() && words[i] != "--" && words[i].length() > 1 && words[i][0] == '-') {
    const CLI::Option* option = command.get_option_no_throw(words[i]);  // not "--name=value", nor "-n4"
    i += option != nullptr && option->get_items_expected_min() > 0 ? 2U : 1U;
  }
  i = std::min(i, words.size());
  const std::size_t first = i < words.size() && words[i] == "--" ? i + 1 : i;
  std::vector<std::string> program(words.begin() + static_cast<std::ptrdiff_t>(first), words.end());
  words.resize(i);
  return program;
}

int run(int argc, char** argv) {
  CLI::App app("Collectives and ZeRO sharding: tools of the library zerocomm", "zc");
  app.set_version_flag("--version", std::string("zc ") + zc_version_text());
  app.require_subcommand(1);
  LayoutOptions layout;
  EstimateOptions estimate;
  RunOptions ranks;
  InfoOptions info;
  ScheduleOptions schedule;
  ReportOptions report;
  const std::vector<std::string> line(argv, argv + argc);
  const std::pair<const char*, std::function<int()>> commands[] = {{"layout", add_layout(app, layout)},
                                                                   {"estimate", add_estimate(app, estimate)},
                                                                   {"run", add_run(app, ranks)},
                                                                   {"info", add_info(app, info)},
                                                                   {"schedule", add_schedule(app, schedule)},
                                                                   {"report", add_report(app, report)},
                                                                   {"bench", add_bench(app, line)}};
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "run") ranks.program = take_program(*app.get_subcommand("run"), words);
  try {
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    write_output(app.help(), "");
    return 0;
  } catch (const CLI::CallForVersion& version) {
    write_output(std::string(version.what()) + "\n", "");
    return 0;
  } catch (const CLI::ParseError& error) {
    return end_badly(std::string(error.what()) + " (see zc --help)", Exit::usage);
  }
  for (const auto& [name, command] : commands)
    if (app.got_subcommand(name)) return command();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Failure& failure) {
    return end_badly(failure.what(), failure.exit());
  } catch (const std::bad_alloc&) {
    return end_badly("there is not enough memory", Exit::failed);
  } catch (const std::exception& error) {
    return end_badly(error.what(), Exit::failed);
  }
}
