// The main job: train the same GPT at every ZeRO stage, and show that the bits agree while memory and traffic follow
// the formulas.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "blake2b.hpp"
#include "checked.hpp"
#include "options.hpp"
#include "ranks.hpp"
#include "report.hpp"

namespace {

using namespace gpt;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::vector<JobOptions> jobs_of(const Command& command, std::int32_t ranks) {
  JobOptions job = command.job;
  job.ranks = ranks;
  std::vector<JobOptions> jobs;
  if (command.stage) {
    jobs.push_back(job);
    jobs.back().model.stage = *command.stage;
    return jobs;
  }
  for (const zc_stage stage : {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3}) {
    jobs.push_back(job);
    jobs.back().model.stage = stage;
    if (stage != ZC_STAGE_3) jobs.back().model.budget_bytes = 0;
  }
  // One rank that takes the micro-batches of all ranks, in rank order. Sums over passes and over ranks are both in
  // order, so they agree to the last bit where each rank has one micro-batch.
  if (ranks > 1 && job.model.accumulate == 1) {
    jobs.push_back(job);
    jobs.back().ranks = 1;
    jobs.back().model.accumulate = ranks;
    jobs.back().model.stage = ZC_STAGE_0;
    jobs.back().model.budget_bytes = 0;
  }
  return jobs;
}

Progress progress_of(const JobOptions& job) {
  if (isatty(STDERR_FILENO) == 0) return [](std::size_t, double, double) {};
  return [&job](std::size_t step, double loss, double norm) {
    std::fprintf(stderr, "\rstage %d, %d rank%s: step %zu of %zu, loss %.4f, norm %.3f \033[K",
                 stage_number(job.model.stage), job.ranks, job.ranks == 1 ? "" : "s", step + 1, job.steps, loss, norm);
    if (step + 1 == job.steps) std::fprintf(stderr, "\r\033[K");
  };
}

// Of all that decides the results.
std::string hash_of(const Command& command, const Text& text) {
  const ShardedOptions& model = command.job.model;
  std::ostringstream options;
  options << model.config.width << ' ' << element_bytes(model.dtype) << ' ' << command.job.steps << ' '
          << model.accumulate << ' ' << std::hexfloat << model.clip << ' ' << model.budget_bytes << ' '
          << (command.stage ? stage_number(*command.stage) : -1);
  Blake2b hash;
  hash.update(options.str().data(), options.str().size());
  hash.update(text.bytes().data(), text.bytes().size());
  return hash.finish_hex();
}

// Returns the exit status.
int train(const Command& command, Ranks& ranks) {
  const std::string path = command.text_path.empty() ? default_text().string() : command.text_path;
  const Text text = Text::load(path, command.job.model.config.context);
  ranks.require_same(hash_of(command, text));
  std::unique_ptr<std::FILE, CloseFile> json;
  if (ranks.speaks() && !command.json_path.empty()) {  // before the work, so that nothing is lost
    json.reset(std::fopen(command.json_path.c_str(), "we"));
    if (!json) throw std::runtime_error("cannot write '" + command.json_path + "': " + std::strerror(errno));
  }
  std::vector<Row> rows;
  for (const JobOptions& job : jobs_of(command, ranks.count())) {
    const Progress progress = ranks.speaks() ? progress_of(job) : Progress();
    if (std::optional<Row> row = ranks.run(job, text, progress)) rows.push_back(std::move(*row));
  }
  if (ranks.speaks()) {
    std::printf("text %s, %zu bytes; %zu steps\n", path.c_str(), text.byte_count(), command.job.steps);
    print_table(stdout, rows);
    if (json) write_json(json.get(), command.json_path, rows);
  }
  const std::vector<std::string> faults = find_faults(rows);
  for (const std::string& fault : faults) std::fprintf(stderr, "zc_gpt: %s%s\n", ranks.name().c_str(), fault.c_str());
  const bool well = ranks.all_well(faults.empty());
  if (!well) {
    if (faults.empty()) std::fprintf(stderr, "zc_gpt: %sanother rank found a fault\n", ranks.name().c_str());
    return 1;
  }
  if (ranks.speaks() && rows.size() > 1)
    std::printf("all rows agree: same losses, same weights, bytes as the formulas say\n");
  if (std::fflush(stdout) != 0)
    throw std::runtime_error(std::string("cannot write the table: ") + std::strerror(errno));
  ranks.all_well(true);  // nobody ends well before everything is written
  return 0;
}

int train(const Command& command) {
  const std::unique_ptr<Ranks> ranks = command.threads ? thread_ranks(command.job.ranks) : process_ranks(command.id);
  try {
    return train(command, *ranks);
  } catch (const std::exception& error) {
    ranks->abort();
    throw std::runtime_error(ranks->name() + error.what());
  }
}

void print_id() {
  zc_unique_id id{};
  check(zc_unique_id_create(&id));
  std::printf("%s\n", id.text);
  if (std::fflush(stdout) != 0) throw std::runtime_error(std::string("cannot write the id: ") + std::strerror(errno));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Command command = parse_command(argc, argv);
    switch (command.action) {
      case Command::Action::help:
        std::fputs(kUsage, stdout);
        return 0;
      case Command::Action::make_id:
        print_id();
        return 0;
      case Command::Action::train:
        return train(command);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "zc_gpt: %s\n", error.what());
  }
  return 1;
}
