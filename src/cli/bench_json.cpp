// The file of -J: the keys of nccl-tests, and more beside them.
#include "cli/bench_limits.hpp"
#include "cli/bench_results.hpp"

#include <nlohmann/json.hpp>

namespace zerocomm::cli {
namespace {

using Json = nlohmann::ordered_json;

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json peers_json(const PlaceResult& place) {
  Json peers = Json::object();
  for (const auto& [name, peer] : place.peers) {
    Json& entry = peers[name];
    if (!peer.unsupported.empty()) {
      entry["unsupported"] = peer.unsupported;
      continue;
    }
    entry["time"] = peer.time.median;
    entry["time_p10"] = peer.time.p10;
    entry["time_p90"] = peer.time.p90;
    entry["ratio"] = peer.ratio;
    entry["wrong"] = peer.wrong;
    if (!peer.by.empty()) entry["by"] = peer.by;
  }
  return peers;
}

void add_extras(Json& to, const PlaceResult& place) {
  to["time_p10"] = place.time.p10;
  to["time_p90"] = place.time.p90;
  to["stream_percent"] = or_null(place.stream_percent);
  to["bound_percent"] = or_null(place.bound_percent);
  to["skew_us"] = place.skew_us;
  to["wrong"] = or_null(place.wrong);
  to["peers"] = peers_json(place);
}

Json place_json(const std::optional<PlaceResult>& place) {
  if (!place) return {};
  Json json;
  json["time"] = place->time.median;
  json["alg_bw"] = place->algbw;
  json["bus_bw"] = place->busbw;
  json["nwrong"] = or_null(place->wrong);
  add_extras(json, *place);
  return json;
}

Json row_json(const BenchRun& run, const BenchRow& row) {
  const BenchCase& bench_case = row.bench_case;
  const CollectiveInfo& info = info_of(bench_case.collective);
  Json json;
  json["collective"] = info.name;
  json["size"] = row.size_bytes;
  json["count"] = info.in_blocks ? bench_case.count / static_cast<std::size_t>(run.plan.ranks) : bench_case.count;
  json["type"] = bench_dtype_name(bench_case.dtype);
  json["redop"] = bench_op_name(bench_case.op);
  json["root"] = std::to_string(row.root);
  json["out_of_place"] = place_json(row.out);
  json["in_place"] = place_json(row.in);
  json["actual_iterations"] = run.plan.iterations;
  json["experiment_name"] = info.name;
  json["same_bits"] = or_null(row.same_bits);
  // Of the first place that was measured, once more, for who looks at one of them only.
  json["place"] = row.out ? "out" : "in";
  const PlaceResult& first = row.out ? *row.out : *row.in;
  json["time"] = first.time.median;
  json["alg_bw"] = first.algbw;
  json["bus_bw"] = first.busbw;
  add_extras(json, first);
  return json;
}

Json config_json(const BenchRun& run) {
  const BenchPlan& plan = run.plan;
  Json json;
  json["ranks"] = plan.ranks;
  json["ranks_are"] = run.ranks_are;
  json["minimum_bytes"] = plan.sizes_bytes.front();
  json["maximum_bytes"] = plan.sizes_bytes.back();
  if (plan.step_bytes != 0)
    json["step_bytes"] = plan.step_bytes;
  else
    json["step_factor"] = plan.factor;
  json["warmup_iters"] = plan.warmup;
  json["iterations"] = plan.iterations;
  json["aggregated_iterations"] = 1;
  json["validation"] = plan.check ? 1 : 0;
  json["graph"] = 0;
  json["blocking_collectives"] = true;
  json["parallel_init"] = false;
  json["memory"] = plan.plain ? "plain" : "registered";
  json["timing"] = plan.loop ? "loop" : "fresh";
  json["skew"] = plan.skewed ? "one" : "even";
  json["pin"] = plan.pin;
  json["rounds"] = plan.rounds;
  for (const BenchDevice& device : run.devices) {
    Json entry;
    entry["rank"] = device.rank;
    entry["group"] = 0;
    entry["pid"] = device.pid;
    entry["hostname"] = device.host;
    entry["device"] = 0;
    entry["device_hex"] = "cpu";
    entry["device_info"] = device.model;
    json["devices"].push_back(entry);
  }
  return json;
}

}  // namespace

std::string bench_json(const BenchRun& run) {
  Json json;
  json["version"] = 1;
  json["program"] = "zc bench " + run.version;
  json["start_time"] = run.start_time;
  json["args"] = run.words;
  json["env"] = run.variables;
  json["config"] = config_json(run);
  json["clock"] = run.clock;
  json["library"] = run.library;
  json["peer_libraries"] = run.peer_libraries.empty() ? Json::object() : Json(run.peer_libraries);
  json["triad_gbs"] = or_null(run.triad_gbs);
  json["results"] = Json::array();
  for (const BenchRow& row : run.rows) json["results"].push_back(row_json(run, row));
  const std::int64_t wrong = wrong_of(run);
  json["out_of_bounds"]["count"] = wrong;
  json["out_of_bounds"]["okay"] = wrong == 0;
  json["average_bus_bandwidth"]["bandwidth"] = average_busbw(run);
  if (run.min_busbw < 0)
    json["average_bus_bandwidth"]["okay"] = "unchecked";
  else
    json["average_bus_bandwidth"]["okay"] = average_busbw(run) >= 0.9 * run.min_busbw;
  json["end_time"] = run.end_time;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string limits_json(const std::vector<Limit>& limits, const std::string& host, const std::string& model) {
  Json json;
  json["format"] = "zc.limits";
  json["version"] = 1;
  json["host"] = host;
  json["processor"] = model;
  json["limits"] = Json::array();
  for (const Limit& limit : limits)
    json["limits"].push_back({{"what", limit.what},
                              {"threads", limit.threads},
                              {"bytes", limit.bytes},
                              {"median", limit.value},
                              {"best", limit.best},
                              {"unit", limit.unit}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace zerocomm::cli
