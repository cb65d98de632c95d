// zc estimate: memory and traffic of one rank in every stage.
#include "cli/failure.hpp"
#include "cli/model_layout.hpp"
#include "cli/output.hpp"

#include <zerocomm/estimate.h>

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace zerocomm::cli {
namespace {

using Estimates = std::array<zc_estimate, 4>;

struct Column {
  const char* title;  // of the table
  const char* key;    // of the JSON
  std::size_t zc_estimate::*figure;
};
constexpr Column kColumns[] = {
    {"parameters", "parameter_bytes", &zc_estimate::parameter_bytes},
    {"gradients", "gradient_bytes", &zc_estimate::gradient_bytes},
    {"masters", "master_bytes", &zc_estimate::master_bytes},
    {"moments", "moment_bytes", &zc_estimate::moment_bytes},
    {"state", "state_bytes", &zc_estimate::state_bytes},
    {"padding", "padding_bytes", &zc_estimate::padding_bytes},
    {"gathered", "gather_elements", &zc_estimate::gather_elements},
    {"reduced", "reduce_elements", &zc_estimate::reduce_elements},
    {"received", "logical_bytes", &zc_estimate::logical_bytes},
};

zc_dtype dtype_of(const std::string& name) {
  for (const zc_dtype dtype : {ZC_DTYPE_F32, ZC_DTYPE_F16, ZC_DTYPE_BF16})
    if (name == zc_dtype_name(dtype)) return dtype;
  throw Failure("--dtype " + name + ": there are f32, f16 and bf16", Exit::usage);
}

Estimates estimate_stages(const EstimateOptions& options) {
  zc_estimate_config config{};
  config.struct_size = sizeof config;
  config.moment_bytes_per_element = options.moment_bytes == 0 ? ZC_ESTIMATE_NO_MOMENTS : options.moment_bytes;
  config.micro_steps = options.micro_steps;
  config.accumulate_first = options.accumulate_first;
  const bool has_model = !options.cut.model.empty();
  const Manifest manifest = has_model ? read_manifest(options.cut.model) : Manifest{};
  Estimates estimates{};
  for (int stage = 0; stage <= 3; ++stage) {
    zc_estimate& estimate = estimates[static_cast<std::size_t>(stage)];
    estimate.struct_size = sizeof estimate;
    if (has_model) {
      const LayoutPointer layout = make_layout(manifest, options.cut, stage);
      require_ok(zc_estimate_layout(layout.get(), options.rank, &config, &estimate), options.cut.model);
    } else {
      require_ok(zc_estimate_count(options.parameter_count, options.cut.ranks, stage_of(stage), dtype_of(options.dtype),
                                   &config, &estimate),
                 fmt::format("{} parameters", options.parameter_count));
    }
  }
  return estimates;
}

std::string table(const Estimates& estimates, const EstimateOptions& options) {
  std::string text =
      options.cut.model.empty()
          ? fmt::format("{} parameters of {} over {} ranks; bytes of the largest share\n", options.parameter_count,
                        options.dtype, options.cut.ranks)
          : fmt::format("{} over {} ranks; bytes of rank {}\n", options.cut.model, options.cut.ranks, options.rank);
  text += "stage";
  auto out = std::back_inserter(text);
  for (const Column& column : kColumns) fmt::format_to(out, " {:>15}", column.title);
  text += '\n';
  for (std::size_t stage = 0; stage < estimates.size(); ++stage) {
    fmt::format_to(out, "{:>5}", stage);
    for (const Column& column : kColumns) fmt::format_to(out, " {:>15}", estimates[stage].*column.figure);
    text += '\n';
  }
  return text +
         "state is the sum of the four before it; gathered and reduced are elements, received is their bytes, in one "
         "optimizer step\n";
}

std::string json(const Estimates& estimates, const EstimateOptions& options) {
  std::string text = fmt::format(R"({{"format":"zc.estimate","version":1,"ranks":{},"rank":{},"stages":[)",
                                 options.cut.ranks, options.rank);
  auto out = std::back_inserter(text);
  for (std::size_t stage = 0; stage < estimates.size(); ++stage) {
    fmt::format_to(out, "{}\n{{\"stage\":{}", stage == 0 ? "" : ",", stage);
    for (const Column& column : kColumns)
      fmt::format_to(out, ",\"{}\":{}", column.key, estimates[stage].*column.figure);
    text += '}';
  }
  return text + "]}\n";
}

}  // namespace

void run_estimate(const EstimateOptions& options) {
  if (options.rank < 0 || options.rank >= options.cut.ranks)
    throw Failure(fmt::format("--rank {}: there are ranks 0 to {}", options.rank, options.cut.ranks - 1), Exit::usage);
  const Estimates estimates = estimate_stages(options);
  write_output(options.json ? json(estimates, options) : table(estimates, options), options.output);
}

}  // namespace zerocomm::cli
