#include "options.hpp"

#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string_view>

namespace gpt {

const char* const kUsage =
    "zc_gpt: train a GPT on text with ZeRO\n"
    "  zc run -n 4 -- zc_gpt [options]      as four processes; torchrun and mpirun do as well\n"
    "  zc_gpt --threads [options]           as threads of one process\n"
    "  zc_gpt --id ID --rank R --ranks N    as one of N processes that you start yourself\n"
    "ranks\n"
    "  --threads             all ranks in this process\n"
    "  --ranks N             how many, with --threads (4) or --id\n"
    "  --id ID --rank R      what all processes of the job share, and which of them this one is: 0 to N - 1\n"
    "  --make-id             print an ID, and do nothing else\n"
    "model and training\n"
    "  --model tiny|small    size of the model (small)\n"
    "  --dtype f32|bf16      of parameters and gradients (f32); bf16 has f32 masters\n"
    "  --text FILE           what to train on (the longest text in /usr/share/common-licenses)\n"
    "  --stage 0|1|2|3       one stage only; without it the main job runs: stages 0 to 3 with all ranks, and 1 rank "
    "that\n"
    "                        accumulates the same micro-batches\n"
    "  --steps N             optimizer steps (20)\n"
    "  --accumulate N        micro-batches per rank and step (1)\n"
    "  --clip NORM           largest norm of the gradient (1.0); 0 for none\n"
    "  --budget BYTES        for gathered parameters and gradient slots, stage 3 (two fifths of the parameters)\n"
    "  --json FILE           write the rows\n";

namespace {

template <class Number>
Number read_number(std::string_view option, std::string_view text, Number least, Number most) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most))
    throw std::runtime_error(std::string(option) + " takes a number from " + std::to_string(least) + " to " +
                             std::to_string(most) + ", not '" + std::string(text) + "'");
  return value;
}

[[noreturn]] void wrong(std::string_view option, std::string_view choices, std::string_view text) {
  throw std::runtime_error(std::string(option) + " takes " + std::string(choices) + ", not '" + std::string(text) +
                           "'");
}

void set_option(Command& command, std::string_view option, std::string_view value) {
  ShardedOptions& model = command.job.model;
  if (option == "--model") {
    const auto config = find_config(value);
    if (!config) wrong(option, "tiny or small", value);
    model.config = *config;
    model.adamw.learning_rate = value == "tiny" ? 2e-3F : 5e-4F;  // small models take larger steps
  } else if (option == "--dtype") {
    if (value != "f32" && value != "bf16") wrong(option, "f32 or bf16", value);
    model.dtype = value == "f32" ? Dtype::f32 : Dtype::bf16;
  } else if (option == "--text") {
    if (value.empty()) wrong(option, "a file name", value);
    command.text_path = value;
  } else if (option == "--json") {
    if (value.empty()) wrong(option, "a file name", value);
    command.json_path = value;
  } else if (option == "--ranks") {
    command.id.ranks = read_number<std::int32_t>(option, value, 1, 256);
  } else if (option == "--rank") {
    command.id.rank = read_number<std::int32_t>(option, value, 0, 255);
  } else if (option == "--id") {
    if (value.empty()) wrong(option, "what --make-id prints", value);
    command.id.text = value;
  } else if (option == "--steps") {
    command.job.steps = read_number<std::size_t>(option, value, 1, 1'000'000);
  } else if (option == "--accumulate") {
    model.accumulate = read_number<std::int32_t>(option, value, 1, 1024);
  } else if (option == "--stage") {
    const auto stage = read_number<std::int32_t>(option, value, 0, 3);
    command.stage = stage == 0 ? ZC_STAGE_0 : static_cast<zc_stage>(stage);
  } else if (option == "--clip") {
    model.clip = read_number<double>(option, value, 0.0, 1e30);
  } else if (option == "--budget") {
    model.budget_bytes = read_number<std::size_t>(option, value, 1, std::size_t{1} << 50);
  } else {
    throw std::runtime_error("unknown option '" + std::string(option) + "'; --help lists them");
  }
}

// Who are the ranks: threads, processes with an id, or processes of a launcher.
void settle_ranks(Command& command) {
  const JobId& id = command.id;
  if (command.threads) {
    if (!id.text.empty() || id.rank >= 0) throw std::runtime_error("--threads goes with neither --id nor --rank");
    if (id.ranks > 0) command.job.ranks = id.ranks;
  } else if (!id.text.empty()) {
    if (id.rank < 0 || id.ranks == 0) throw std::runtime_error("--id needs --rank R and --ranks N");
    if (id.rank >= id.ranks) throw std::runtime_error("--rank takes a number below that of --ranks");
  } else if (id.rank >= 0 || id.ranks > 0) {
    throw std::runtime_error(
        "--ranks is for --threads and --id, and --rank for --id: a launcher says it itself (zc run -n 4 -- zc_gpt "
        "...)");
  }
}

}  // namespace

Command parse_command(int argc, char** argv) {
  Command command;
  command.job.model.config = kSmall;
  command.job.model.adamw.learning_rate = 5e-4F;
  command.job.model.warm_up_steps = 5;
  command.job.steps = 20;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--help" || option == "-h") {
      command.action = Command::Action::help;
      return command;
    }
    if (option == "--make-id") {
      command.action = Command::Action::make_id;
    } else if (option == "--threads") {
      command.threads = true;
    } else {
      if (option.substr(0, 2) == "--" && i + 1 == argc)
        throw std::runtime_error(std::string(option) + " takes a value, or is unknown; --help lists the options");
      set_option(command, option, i + 1 < argc ? argv[i + 1] : "");
      ++i;
    }
  }
  if (command.action == Command::Action::make_id && argc > 2)
    throw std::runtime_error("--make-id goes with no other option");
  settle_ranks(command);
  return command;
}

}  // namespace gpt
