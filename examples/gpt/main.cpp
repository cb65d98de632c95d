// The main job: train the same GPT at every ZeRO stage, and show that the bits agree while memory and traffic follow
// the formulas.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "options.hpp"
#include "report.hpp"

namespace {

using namespace gpt;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::vector<JobOptions> jobs_of(const Command& command) {
  std::vector<JobOptions> jobs;
  if (command.stage) {
    jobs.push_back(command.job);
    jobs.back().model.stage = *command.stage;
    return jobs;
  }
  for (const zc_stage stage : {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3}) {
    jobs.push_back(command.job);
    jobs.back().model.stage = stage;
    if (stage != ZC_STAGE_3) jobs.back().model.budget_bytes = 0;
  }
  // One rank that takes the micro-batches of all ranks, in rank order. Sums over passes and over ranks are both in
  // order, so they agree to the last bit where each rank has one micro-batch.
  if (command.job.ranks > 1 && command.job.model.accumulate == 1) {
    jobs.push_back(command.job);
    jobs.back().ranks = 1;
    jobs.back().model.accumulate = command.job.ranks;
    jobs.back().model.stage = ZC_STAGE_0;
    jobs.back().model.budget_bytes = 0;
  }
  return jobs;
}

int run(const Command& command) {
  const std::string path = command.text_path.empty() ? default_text().string() : command.text_path;
  const Text text = Text::load(path, command.job.model.config.context);
  std::unique_ptr<std::FILE, CloseFile> json;
  if (!command.json_path.empty()) {  // before the work, so that nothing is lost
    json.reset(std::fopen(command.json_path.c_str(), "we"));
    if (!json) throw std::runtime_error("cannot write '" + command.json_path + "': " + std::strerror(errno));
  }
  const bool terminal = isatty(STDERR_FILENO) != 0;
  std::vector<Row> rows;
  for (const JobOptions& job : jobs_of(command)) {
    const int stage = job.model.stage == ZC_STAGE_0 ? 0 : static_cast<int>(job.model.stage);
    const auto progress = [&](std::size_t step, double loss, double norm) {
      if (terminal)
        std::fprintf(stderr, "\rstage %d, %d rank%s: step %zu of %zu, loss %.4f, norm %.3f ", stage, job.ranks,
                     job.ranks == 1 ? "" : "s", step + 1, job.steps, loss, norm);
    };
    rows.push_back(run_job(job, text, progress));
    if (terminal) std::fprintf(stderr, "\r\033[K");
  }
  std::printf("text %s, %zu bytes; %zu steps\n", path.c_str(), text.byte_count(), command.job.steps);
  print_table(stdout, rows);
  if (json) write_json(json.get(), command.json_path, rows);
  const std::vector<std::string> faults = find_faults(rows);
  for (const std::string& fault : faults) std::fprintf(stderr, "zc_gpt: %s\n", fault.c_str());
  if (faults.empty() && rows.size() > 1)
    std::printf("all rows agree: same losses, same weights, bytes as the formulas say\n");
  if (std::fflush(stdout) != 0)
    throw std::runtime_error(std::string("cannot write the table: ") + std::strerror(errno));
  return faults.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Command command = parse_command(argc, argv);
    if (command.help) {
      std::fputs(kUsage, stdout);
      return 0;
    }
    return run(command);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "zc_gpt: %s\n", error.what());
    return 1;
  }
}
