// The table: nccl-tests' columns first and in its order, so that its parsers read them; ours behind.
#include "cli/bench_results.hpp"
#include "cli/bench_sizes.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace zerocomm::cli {
namespace {

std::string column(const std::string& text, int width) { return fmt::format("{:>{}}", text, width); }

std::string percent(const std::optional<double>& value) { return value ? fitted(*value, 6) : "N/A"; }

std::string place_cells(const std::optional<PlaceResult>& place) {
  if (!place) return "      N/A     N/A     N/A     N/A";
  return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", fitted(place->time.median, 7), fitted(place->algbw, 6),
                     fitted(place->busbw, 6), place->wrong ? std::to_string(*place->wrong) : "N/A");
}

std::string extra_cells(const std::optional<PlaceResult>& place) {
  if (!place) return "     N/A     N/A      N/A";
  return fmt::format("  {:>6}  {:>6}  {:>7}", percent(place->stream_percent), percent(place->bound_percent),
                     fitted(place->skew_us, 7));
}

std::string peer_cells(const BenchRun& run, const std::optional<PlaceResult>& place) {
  std::string text;
  for (const std::string& name : run.plan.peers) {
    const PeerResult* peer = nullptr;
    if (place)
      if (const auto found = place->peers.find(name); found != place->peers.end()) peer = &found->second;
    if (peer == nullptr)
      text += "          N/A     N/A";
    else if (!peer->unsupported.empty())
      text += "  unsupported     N/A";
    else
      text += fmt::format("  {:>11}  {:>6}", fitted(peer->time.median, 8) + (peer->by.empty() ? "" : "*"),
                          fitted(peer->ratio, 5) + "x");
  }
  return text;
}

std::string line(const std::string& text) { return "# " + text + "\n"; }

std::string peer_heads(const BenchRun& run, int row) {
  std::string text;
  for (std::size_t place = 0; place < run.plan.places.size(); ++place)
    for (const std::string& name : run.plan.peers)
      text += row == 0 ? fmt::format("  {:>11}  {:>6}", name, "ratio") : fmt::format("  {:>11}  {:>6}", "(us)", "");
  return text;
}

std::string heads(const BenchRun& run) {
  std::string first = fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "", "", "", "", "");
  std::string second = fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "size", "count", "type", "redop", "root");
  std::string third = fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "(B)", "(elements)", "", "", "");
  for (const char* place : {"out-of-place", "in-place"}) {
    first += column(place, 22) + std::string(11, ' ');
    second += fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "time", "algbw", "busbw", "#wrong");
    third += fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "(us)", "(GB/s)", "(GB/s)", "");
  }
  for (const BenchPlace place : run.plan.places) {
    first += column(place == BenchPlace::out ? "out-of-place" : "in-place", 19) + std::string(6, ' ');
    second += fmt::format("  {:>6}  {:>6}  {:>7}", "stream", "bound", "skew");
    third += fmt::format("  {:>6}  {:>6}  {:>7}", "(%)", "(%)", "(us)");
  }
  second += "  same";
  third += "  bits";
  for (const BenchPlace place : run.plan.places)
    if (!run.plan.peers.empty())
      first += fmt::format("{:>{}}", place == BenchPlace::out ? "peers, out-of-place" : "peers, in-place",
                           6 * (place == run.plan.places[0] ? 1 : 0) + 21 * static_cast<int>(run.plan.peers.size()));
  return first + "\n" + second + peer_heads(run, 0) + "\n" + third + peer_heads(run, 1) + "\n";
}

std::string step_text(const BenchPlan& plan) {
  return plan.step_bytes != 0 ? fmt::format("{}(bytes)", plan.step_bytes) : fmt::format("{}(factor)", plan.factor);
}

}  // namespace

std::string fitted(double value, int width) {
  if (!std::isfinite(value)) return "N/A";
  for (int digits = 2; digits >= 0; --digits) {
    std::string text = fmt::format("{:.{}f}", value, digits);
    if (static_cast<int>(text.length()) <= width) return text;
  }
  return fmt::format("{:.1e}", value);
}

std::string table_header(const BenchRun& run) {
  const BenchPlan& plan = run.plan;
  std::string names;
  for (const Collective collective : plan.collectives)
    names += (names.empty() ? "" : ",") + std::string(info_of(collective).name);
  std::string text = line(fmt::format("zc bench version {}", run.version));
  text += line("Collective test starting: " + names);
  text += line(fmt::format("ranks {} ({}{}) minBytes {} maxBytes {} step: {} warmup iters: {} iters: {} validation: {}",
                           plan.ranks, run.ranks_are, plan.pin ? ", each on a core" : "", plan.sizes_bytes.front(),
                           plan.sizes_bytes.back(), step_text(plan), plan.warmup, plan.iterations, plan.check ? 1 : 0));
  text += line(fmt::format("timing: {}; memory: {}",
                           plan.loop ? "loop, calls back to back on data that stay"
                                     : "fresh, source written and result read around every call",
                           run.memory_text));
  text += line("clock: " + run.clock);
  text += line("library: " + run.library);
  for (const auto& [name, library] : run.peer_libraries) text += line(fmt::format("peer {}: {}", name, library));
  if (!run.peer_libraries.empty())
    text += line(fmt::format("compared: {} rounds in turn, own and each peer; medians of medians", plan.rounds));
  if (run.triad_gbs) text += line(fmt::format("triad: {:.1f} GB/s by all ranks together", *run.triad_gbs));
  text += "#\n" + line("Using devices");
  for (const BenchDevice& device : run.devices)
    text += line(fmt::format(" Rank {:2} Group  0 Pid {:6} on {:>10} device  0 [cpu] {}", device.rank, device.pid,
                             device.host, device.model));
  return text + "#\n" + heads(run);
}

std::string table_title(const BenchRun& run, const BenchRow& row) {
  if (run.plan.collectives.size() < 2) return "";
  const bool goes_on =
      run.rows.size() > 1 && run.rows[run.rows.size() - 2].bench_case.collective == row.bench_case.collective;
  return goes_on ? "" : line(info_of(row.bench_case.collective).name);
}

std::string table_row(const BenchRun& run, const BenchRow& row) {
  const BenchCase& bench_case = row.bench_case;
  const CollectiveInfo& info = info_of(bench_case.collective);
  const std::size_t count =
      info.in_blocks ? bench_case.count / static_cast<std::size_t>(run.plan.ranks) : bench_case.count;
  std::string text = fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}", row.size_bytes, count,
                                 bench_dtype_name(bench_case.dtype), bench_op_name(bench_case.op), row.root);
  text += place_cells(row.out) + place_cells(row.in);
  for (const BenchPlace place : run.plan.places) text += extra_cells(place == BenchPlace::out ? row.out : row.in);
  text += fmt::format("  {:>4}", row.same_bits ? (*row.same_bits ? "yes" : "NO") : "N/A");
  for (const BenchPlace place : run.plan.places) text += peer_cells(run, place == BenchPlace::out ? row.out : row.in);
  return text + "\n";
}

std::string table_footer(const BenchRun& run) {
  const std::int64_t wrong = wrong_of(run);
  const double average = average_busbw(run);
  std::string text = fmt::format("# {:<20} : {} {}\n", "Out of bounds values", wrong, wrong > 0 ? "FAILED" : "OK");
  if (const std::size_t rows = different_bits_of(run); rows > 0)
    text += fmt::format("# {:<20} : {} FAILED\n", "Rows of unlike bits", rows);
  text += fmt::format("# {:<20} : {:g}{}\n#\n", "Avg bus bandwidth", average,
                      run.min_busbw < 0 ? "" : (average < 0.9 * run.min_busbw ? " FAILED" : " OK"));
  text +=
      line(run.plan.loop ? "time    of one call: all calls / their number, on the slowest rank"
                         : fmt::format("time    median over {} calls of the slowest rank, from leaving a barrier to "
                                       "return",
                                       run.plan.iterations));
  text += line("algbw   size / time; busbw: algbw times what a rank's link must carry of each byte");
  text += line("#wrong  calls whose result was not exactly what it must be, on any rank");
  text += line("stream  time that plain loops over the same amount of memory took in this job / time; N/A: too small");
  text += line(run.triad_gbs ? "bound   time that the least possible traffic takes at the triad's speed / time"
                             : "bound   N/A: measured from 1 MiB on, at the speed of a triad");
  text += line("skew    time between the first and the last rank to begin a call, median");
  text += line("same    did all ranks get the same bits of noise that rounds; N/A: their results are not alike");
  if (!run.plan.peers.empty())
    text += line(
        "ratio   time of the peer / ours: above 1 is faster than the peer; * it did another call that gives at "
        "least the same");
  return text;
}

// ---- CSV

std::string csv_header(const BenchRun& run) {
  std::string text =
      "collective,ranks,size_bytes,count,type,redop,root,place,time_us,time_p10_us,time_p90_us,algbw_gbs,busbw_gbs,"
      "wrong,"
      "stream_percent,bound_percent,skew_us,same_bits";
  for (const std::string& name : run.plan.peers) fmt::format_to(std::back_inserter(text), ",{0}_us,{0}_ratio", name);
  return text + "\n";
}

std::string csv_row(const BenchRun& run, const BenchRow& row) {
  const BenchCase& bench_case = row.bench_case;
  const CollectiveInfo& info = info_of(bench_case.collective);
  const std::size_t count =
      info.in_blocks ? bench_case.count / static_cast<std::size_t>(run.plan.ranks) : bench_case.count;
  std::string text;
  const auto optional = [](const std::optional<double>& value) { return value ? fmt::format("{:.2f}", *value) : ""; };
  for (const BenchPlace which : {BenchPlace::out, BenchPlace::in}) {
    const std::optional<PlaceResult>& place = which == BenchPlace::out ? row.out : row.in;
    if (!place) continue;
    fmt::format_to(
        std::back_inserter(text), "{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.4f},{:.4f},{},{},{},{:.3f},{}",
        info.name, run.plan.ranks, row.size_bytes, count, bench_dtype_name(bench_case.dtype),
        bench_op_name(bench_case.op), row.root, which == BenchPlace::out ? "out" : "in", place->time.median,
        place->time.p10, place->time.p90, place->algbw, place->busbw, place->wrong ? std::to_string(*place->wrong) : "",
        optional(place->stream_percent), optional(place->bound_percent), place->skew_us,
        row.same_bits ? (*row.same_bits ? "yes" : "no") : "");
    for (const std::string& name : run.plan.peers) {
      const auto peer = place->peers.find(name);
      if (peer == place->peers.end())
        text += ",,";
      else if (!peer->second.unsupported.empty())
        text += ",unsupported,";
      else
        fmt::format_to(std::back_inserter(text), ",{:.3f},{:.3f}", peer->second.time.median, peer->second.ratio);
    }
    text += "\n";
  }
  return text;
}

}  // namespace zerocomm::cli
