// zc schedule: the catalogue, texts, proofs and costs of collective schedules.
#include "cli/failure.hpp"
#include "cli/model_layout.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"

#include <zerocomm/schedule.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>

namespace zerocomm::cli {
namespace {

struct DestroySchedule {
  void operator()(zc_schedule* schedule) const { zc_schedule_destroy(schedule); }
};
using SchedulePointer = std::unique_ptr<zc_schedule, DestroySchedule>;

std::string read_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) throw Failure(path + ": cannot be read: " + std::strerror(errno));
  std::string text;
  char part[4096];
  for (std::size_t got = 0; (got = std::fread(part, 1, sizeof part, file)) > 0;) text.append(part, got);
  const bool failed = std::ferror(file) != 0;
  const int reason = errno;
  std::fclose(file);
  if (failed) throw Failure(path + ": cannot be read: " + std::strerror(reason));
  return text;
}

zc_collective collective_of(const std::string& name) {
  std::string known;
  for (int i = ZC_COLLECTIVE_ALL_REDUCE; i <= ZC_COLLECTIVE_SCATTER_FROM_ROOT; ++i) {
    const auto collective = static_cast<zc_collective>(i);
    if (name == zc_collective_name(collective)) return collective;
    known += (known.empty() ? "" : ", ") + std::string(zc_collective_name(collective));
  }
  throw Failure(fmt::format("'{}' is no collective; there are {}", name, known), Exit::usage);
}

SchedulePointer make_schedule(const ScheduleOptions& options) {
  zc_schedule* schedule = nullptr;
  if (!options.file.empty()) {
    require_ok(zc_schedule_parse(read_file(options.file).c_str(), &schedule), options.file);
    return SchedulePointer(schedule);
  }
  zc_schedule_config config{};
  config.struct_size = sizeof config;
  config.collective = collective_of(options.collective);
  config.algorithm = options.algorithm.empty() ? nullptr : options.algorithm.c_str();
  config.ranks = options.ranks;
  config.root = options.root;
  config.lanes = options.lanes;
  config.chunks = options.chunks;
  require_ok(zc_schedule_create(&config, &schedule), "zc_schedule_create");
  return SchedulePointer(schedule);
}

zc_schedule_info info_of(const zc_schedule* schedule) {
  zc_schedule_info info{};
  info.struct_size = sizeof info;
  require_ok(zc_schedule_get_info(schedule, &info), "zc_schedule_get_info");
  return info;
}

// A word that the caller chose, inside a JSON string.
std::string escaped(const std::string& word) {
  std::string text;
  for (const char c : word) {
    if (c == '"' || c == '\\') text += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      text += c;
  }
  return text;
}

std::string key_json(const char* format, const zc_schedule_info& info) {
  return fmt::format(
      R"({{"format":"{}","version":1,"collective":"{}","algorithm":"{}","ranks":{},"root":{},"chunks":{},"lanes":{},)"
      R"("scratch":{},"loss":{})",
      format, zc_collective_name(info.collective), escaped(info.algorithm), info.ranks, info.root, info.chunks,
      info.lanes, info.scratch_chunks, info.loss);
}
std::string key_plain(const zc_schedule_info& info) {
  return fmt::format("{} {}: ranks {}, root {}, chunks {}, lanes {}, scratch {}, steps {}\n",
                     zc_collective_name(info.collective), info.algorithm, info.ranks, info.root, info.chunks,
                     info.lanes, info.scratch_chunks, info.step_count);
}

std::string catalogue(bool json) {
  std::string text = json ? R"({"format":"zc.schedule.list","version":1,"algorithms":[)"
                          : fmt::format("{:<18} {:<14} {:<10} lanes\n", "collective", "algorithm", "canonical");
  auto out = std::back_inserter(text);
  for (std::size_t i = 0; i < zc_schedule_algorithm_count(); ++i) {
    zc_algorithm_info row{};
    row.struct_size = sizeof row;
    require_ok(zc_schedule_algorithm(i, &row), "zc_schedule_algorithm");
    const char* collective = zc_collective_name(row.collective);
    const bool canonical = row.is_canonical != 0, one_lane = row.is_one_lane != 0;
    if (json)
      fmt::format_to(out, "{}\n{{\"collective\":\"{}\",\"algorithm\":\"{}\",\"canonical\":{},\"one_lane\":{}}}",
                     i == 0 ? "" : ",", collective, row.name, canonical, one_lane);
    else
      fmt::format_to(out, "{:<18} {:<14} {:<10} {}\n", collective, row.name, canonical ? "yes" : "no",
                     one_lane ? "one" : "any");
  }
  return json ? text + "]}\n" : text;
}

std::string whole_text(const zc_schedule* schedule) {
  std::size_t needed_bytes = 0;
  require_ok(zc_schedule_text(schedule, nullptr, 0, &needed_bytes), "zc_schedule_text");
  std::string text(needed_bytes, '\0');
  require_ok(zc_schedule_text(schedule, text.data(), text.size(), nullptr), "zc_schedule_text");
  text.pop_back();  // the NUL
  return text;
}

int verify(const zc_schedule* schedule, const ScheduleOptions& options) {
  static constexpr const char* kFindings[] = {"unknown", "holds", "broken"};
  zc_schedule_verdict verdict{};
  verdict.struct_size = sizeof verdict;
  std::string words(65536, '\0');
  std::size_t needed_bytes = 0;
  require_ok(zc_schedule_verify(schedule, &verdict, words.data(), words.size(), &needed_bytes), "zc_schedule_verify");
  words.resize(std::min(needed_bytes, words.size()) - 1);
  const bool proved = verdict.is_proved != 0;
  if (options.json) {
    std::string text = key_json("zc.schedule.verdict", info_of(schedule)) +
                       fmt::format(R"(,"proved":{},"canonical":{},"findings":[)", proved, verdict.is_canonical != 0);
    const char* comma = "";
    for (const zc_finding finding : verdict.findings) {
      text += fmt::format("{}\"{}\"", comma, kFindings[finding]);
      comma = ",";
    }
    write_output(text + fmt::format("],\"text\":\"{}\"}}\n", escaped(words)), options.output);
  } else {
    if (words.empty() || words.back() != '\n') words += '\n';
    write_output(key_plain(info_of(schedule)) + words, options.output);
  }
  return static_cast<int>(proved ? Exit::ok : Exit::failed);
}

struct CostColumn {
  const char* key;
  const char* title;
  std::uint64_t zc_schedule_costs::*figure;
};
constexpr CostColumn kColumns[] = {{"messages_sent", "sent", &zc_schedule_costs::messages_sent},
                                   {"elements_sent", "elements", &zc_schedule_costs::elements_sent},
                                   {"messages_received", "received", &zc_schedule_costs::messages_received},
                                   {"elements_received", "elements", &zc_schedule_costs::elements_received}};

std::string cost_text(const zc_schedule* schedule, const ScheduleOptions& options) {
  const zc_schedule_info info = info_of(schedule);
  zc_schedule_cost_config config{};
  config.struct_size = sizeof config;
  config.count = options.count;
  std::string text;
  auto out = std::back_inserter(text);
  zc_schedule_costs costs{};
  for (std::int32_t rank = 0; rank < info.ranks; ++rank) {
    costs.struct_size = sizeof costs;
    require_ok(zc_schedule_cost(schedule, rank, &config, &costs), "zc_schedule_cost");
    if (options.json) {
      fmt::format_to(out, "{}\n{{\"rank\":{}", rank == 0 ? "" : ",", rank);
      for (const CostColumn& column : kColumns) fmt::format_to(out, ",\"{}\":{}", column.key, costs.*column.figure);
      text += '}';
    } else {
      text += options.csv ? std::to_string(rank) : fmt::format("{:>5}", rank);
      for (const CostColumn& column : kColumns)
        text += options.csv ? fmt::format(",{}", costs.*column.figure) : fmt::format(" {:>12}", costs.*column.figure);
      text += '\n';
    }
  }
  if (options.json)
    return key_json("zc.schedule.cost", info) +
           fmt::format(R"(,"path_latencies":{},"path_elements":{},"costs":[)", costs.path_latencies,
                       costs.path_elements) +
           text + "]}\n";
  std::string head = options.csv ? "rank" : key_plain(info) + " rank";
  for (const CostColumn& column : kColumns)
    head += options.csv ? fmt::format(",{}", column.key) : fmt::format(" {:>12}", column.title);
  if (options.csv) return head + '\n' + text;
  return head + '\n' + text +
         fmt::format("critical path: {} latencies and {} elements{}\n", costs.path_latencies, costs.path_elements,
                     options.count == 0 ? ", a chunk counted as one" : "");
}

}  // namespace

int run_schedule(const ScheduleOptions& options) {
  if (options.command == ScheduleCommand::list) {
    write_output(catalogue(options.json), options.output);
    return 0;
  }
  const SchedulePointer schedule = make_schedule(options);
  if (options.command == ScheduleCommand::verify) return verify(schedule.get(), options);
  write_output(
      options.command == ScheduleCommand::show ? whole_text(schedule.get()) : cost_text(schedule.get(), options),
      options.output);
  return 0;
}

}  // namespace zerocomm::cli
