#include "cli/bench_session.hpp"

#include "cli/bench_kernels.hpp"
#include "cli/bench_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace zerocomm::cli {
namespace {

constexpr int kStreamIterations = 5;
constexpr std::size_t kLeastStreamBytes = 64U << 10;  // below it, a stream measures the clock
constexpr std::size_t kLeastTriadBytes = 1U << 20;

std::vector<std::vector<std::int64_t>> times_of(const std::vector<BenchReply>& replies) {
  std::vector<std::vector<std::int64_t>> times;
  times.reserve(replies.size());
  for (const BenchReply& reply : replies) times.push_back(reply.times_ns);
  return times;
}

void require_equal_lengths(const std::string& group, const std::vector<BenchReply>& replies) {
  for (const BenchReply& reply : replies)
    if (reply.times_ns.size() != replies[0].times_ns.size() || reply.arrivals_ns.size() != reply.times_ns.size() ||
        reply.times_ns.empty())
      throw Failure("the ranks of " + group + " have not measured equally many iterations");
}

// "all_gather of 64 KiB"
std::string label_of(const BenchCase& bench_case) {
  std::string name = info_of(bench_case.collective).name;
  if (bench_case.count == 0) return name;
  return name + " of " + bytes_text(static_cast<double>(bench_case.count * zc_dtype_bytes(bench_case.dtype)));
}

}  // namespace

std::vector<BenchPlace> places_of(const BenchPlan& plan, Collective collective) {
  const CollectiveInfo& info = info_of(collective);
  std::vector<BenchPlace> places;
  for (const BenchPlace place : plan.places) {
    const bool exists = place == BenchPlace::out ? info.out : info.in;
    // Blocks of different counts cannot change places.
    const bool legal = !(plan.skewed && collective == Collective::all_to_all_v && place == BenchPlace::in);
    if (exists && legal) places.push_back(place);
  }
  // One form is all there is: that one, whatever was asked for.
  if (places.empty()) places.push_back(info.out ? BenchPlace::out : BenchPlace::in);
  return places;
}

BenchRequest BenchSession::request_of(const BenchCase& bench_case, BenchPlace place) const {
  const BenchPlan& plan = run_.plan;
  BenchRequest request;
  request.collective = bench_case.collective;
  request.dtype = bench_case.dtype == ZC_DTYPE_NONE ? ZC_DTYPE_F32 : bench_case.dtype;
  request.count = bench_case.count;
  request.place = place;
  request.plain = plan.plain;
  request.loop = plan.loop;
  request.warmup = plan.warmup;
  request.iterations = plan.iterations;
  request.check = plan.check;
  if (bench_case.op != ZC_OP_NONE) request.op = bench_case.op;
  request.root = plan.root;
  request.skewed = plan.skewed;
  return request;
}

void BenchSession::reserve() {
  const BenchPlan& plan = run_.plan;
  std::size_t first = 0, second = 0;
  for (const BenchCase& bench_case : bench_cases(plan)) {
    const std::size_t bytes = bench_case.count * zc_dtype_bytes(bench_case.dtype);
    const bool gathers_all = plan.skewed && bench_case.collective == Collective::all_to_all_v;
    first = std::max(first, bytes);
    if (info_of(bench_case.collective).out)
      second = std::max(second, gathers_all ? bytes * static_cast<std::size_t>(plan.ranks) : bytes);
  }
  const auto pages = [](std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; };
  driver_.ask(kOwnGroup, fmt::format("reserve {} {} {} {}", pages(first), pages(second),
                                     plan.plain ? "plain" : "registered", plan.pin ? "pin" : "free"));
}

// The best of all, as STREAM counts: two reads and a write for every element.
void BenchSession::measure_triad() {
  const BenchPlan& plan = run_.plan;
  if (plan.sizes_bytes.back() < kLeastTriadBytes) return;
  const std::size_t part = plan.triad_bytes / 3 / static_cast<std::size_t>(plan.ranks) / 4096 * 4096;
  if (part == 0) return;
  double best_ns = 0;
  for (const int bypass : {0, 1}) {
    if (bypass == 1 && !has_bypass()) continue;
    const auto replies = driver_.ask(kOwnGroup, fmt::format("triad {} {} {}", part, kStreamIterations, bypass));
    require_equal_lengths(kOwnGroup, replies);
    const std::vector<double> times = slowest(times_of(replies));
    const double least = *std::min_element(times.begin(), times.end());
    best_ns = best_ns == 0 ? least : std::min(best_ns, least);
  }
  if (best_ns > 0) run_.triad_gbs = 3.0 * static_cast<double>(part) * plan.ranks / best_ns;
}

BenchSession::Sample BenchSession::ask_once(const std::string& group, const std::string& line) {
  const std::vector<BenchReply> replies = driver_.ask(group, line);
  Sample sample;
  for (const BenchReply& reply : replies)
    if (!reply.unsupported.empty()) sample.unsupported = reply.unsupported;
  if (!sample.unsupported.empty()) return sample;
  require_equal_lengths(group, replies);
  std::vector<std::vector<std::int64_t>> arrivals;
  for (const BenchReply& reply : replies) {
    arrivals.push_back(reply.arrivals_ns);
    sample.wrong += reply.wrong;
  }
  sample.time = summary(slowest(times_of(replies)));
  sample.skew_us = percentile(spread(arrivals), 0.5) / 1e3;
  return sample;
}

// A peer has sums over f32 and the like, rank 0 as the root, and equal blocks.
BenchSession::Sample BenchSession::ask_peer(const std::string& peer, const BenchRequest& request) {
  Sample sample;
  if (request.op != ZC_OP_SUM || request.root != 0 || info_of(request.collective).uneven) {
    sample.unsupported = "the peers have sums, root 0 and equal blocks alone";
    return sample;
  }
  const bool plain_f32 = request.dtype == ZC_DTYPE_F32;
  BenchRequest as_f32 = request;
  as_f32.dtype = ZC_DTYPE_F32;
  sample = ask_once(peer, request_line(request));
  const bool falls_back =
      !sample.unsupported.empty() && !plain_f32 && (request.dtype == ZC_DTYPE_BF16 || request.dtype == ZC_DTYPE_F16);
  if (falls_back) {
    sample = ask_once(peer, request_line(as_f32));
    sample.by = "f32";
  }
  if (request.collective != Collective::reduce_scatter) return sample;
  // Their all-reduce is often the faster reduce-scatter, and its result is at least the same.
  std::string line = request_line(falls_back ? as_f32 : request);
  line.insert(std::string("run reduce_scatter").length(), "_by_all_reduce");
  Sample other = ask_once(peer, line);
  if (!other.unsupported.empty() || (sample.unsupported.empty() && sample.time.median <= other.time.median))
    return sample;
  other.wrong += sample.wrong;
  other.by = sample.by + (sample.by.empty() ? "" : " ") + "all_reduce";
  return other;
}

std::optional<double> BenchSession::stream_us(const BenchCase& bench_case, BenchPlace place) {
  const StreamShape shape = stream_shape(bench_case.collective, place, bench_case.count, run_.plan.ranks);
  const std::size_t element_bytes = zc_dtype_bytes(bench_case.dtype), run_bytes = shape.run * element_bytes / 64 * 64;
  if (bench_case.count * element_bytes < kLeastStreamBytes || run_bytes == 0 || shape.reads + shape.writes < 2)
    return std::nullopt;
  // In place there is one buffer: what is written is what was read, or the rest of it.
  const bool in = place == BenchPlace::in, apart = shape.reads + shape.writes == run_.plan.ranks;
  const char* const where = !in ? "out" : apart ? "apart" : "in";
  std::optional<double> best;
  for (const int bypass : {0, 1}) {
    if (bypass == 1 && !has_bypass()) continue;
    const auto replies = driver_.ask(kOwnGroup, fmt::format("stream {} {} {} {} {} {}", shape.reads, shape.writes,
                                                            run_bytes, kStreamIterations, bypass, where));
    require_equal_lengths(kOwnGroup, replies);
    const double time = summary(slowest(times_of(replies))).median;
    best = best ? std::min(*best, time) : time;
  }
  return best;
}

std::optional<bool> BenchSession::same_bits(const BenchCase& bench_case, BenchPlace place) {
  if (!info_of(bench_case.collective).same_result) return std::nullopt;
  const std::string line = request_line(request_of(bench_case, place));
  const auto replies = driver_.ask(kOwnGroup, "bits" + line.substr(line.find(' ')));
  return std::ranges::all_of(replies, [&](const BenchReply& reply) { return reply.bits == replies[0].bits; });
}

PlaceResult BenchSession::measure_place(const BenchCase& bench_case, BenchPlace place) {
  const BenchPlan& plan = run_.plan;
  const BenchRequest request = request_of(bench_case, place);
  std::vector<BenchTime> own;
  std::map<std::string, std::vector<BenchTime>> theirs;
  std::vector<double> skews;
  PlaceResult result;
  std::int64_t wrong = 0;
  const auto run_own = [&] {
    const Sample sample = ask_once(kOwnGroup, request_line(request));
    if (!sample.unsupported.empty()) throw Failure(fmt::format("zerocomm: {}", sample.unsupported));
    own.push_back(sample.time);
    skews.push_back(sample.skew_us);
    wrong += sample.wrong;
  };
  for (int round = 0; round < plan.rounds; ++round) {
    if (plan.peers.empty()) run_own();
    for (const std::string& peer : plan.peers) {
      run_own();
      PeerResult& seen = result.peers[peer];
      if (!seen.unsupported.empty()) continue;
      const Sample sample = ask_peer(peer, request);
      seen.unsupported = sample.unsupported;
      if (!seen.unsupported.empty()) continue;
      seen.wrong += sample.wrong;
      seen.by = sample.by;
      theirs[peer].push_back(sample.time);
    }
  }
  result.time = median_of(own);
  result.skew_us = percentile(skews, 0.5);
  if (plan.check) result.wrong = wrong;
  for (auto& [peer, times] : theirs) {
    result.peers[peer].time = median_of(times);
    result.peers[peer].ratio = result.time.median > 0 ? result.peers[peer].time.median / result.time.median : 0;
  }
  set_bandwidth(result, bench_case, plan.ranks);
  if (const auto stream = stream_us(bench_case, place); stream && result.time.median > 0)
    result.stream_percent = 100 * *stream / result.time.median;
  const double bytes = bound_count(bench_case.collective, place, bench_case.count, plan.ranks) *
                       static_cast<double>(bench_case.count == 0 ? 0 : zc_dtype_bytes(bench_case.dtype));
  if (run_.triad_gbs && bytes >= static_cast<double>(kLeastTriadBytes) && result.time.median > 0)
    result.bound_percent = 100 * bytes / (*run_.triad_gbs * 1e3) / result.time.median;
  return result;
}

BenchRow BenchSession::measure_row(const BenchCase& bench_case) {
  BenchRow row;
  row.bench_case = bench_case;
  row.size_bytes = bench_case.count * zc_dtype_bytes(bench_case.dtype);
  const CollectiveInfo& info = info_of(bench_case.collective);
  row.root = info.rooted || run_.plan.skewed ? run_.plan.root : -1;
  const std::vector<BenchPlace> places = places_of(run_.plan, bench_case.collective);
  for (const BenchPlace place : places)
    (place == BenchPlace::out ? row.out : row.in) = measure_place(bench_case, place);
  if (run_.plan.check) row.same_bits = same_bits(bench_case, places.front());
  return row;
}

void BenchSession::measure() {
  const std::vector<BenchCase> cases = bench_cases(run_.plan);
  listener_.progress(0, "memory");
  measure_triad();
  reserve();
  listener_.start(run_);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    listener_.progress(static_cast<double>(i) / static_cast<double>(cases.size()), label_of(cases[i]));
    run_.rows.push_back(measure_row(cases[i]));
    listener_.show(run_, run_.rows.back());
  }
}

}  // namespace zerocomm::cli
