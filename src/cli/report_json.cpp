// Reads what zc bench -J wrote.
#include "cli/failure.hpp"
#include "cli/report.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace zerocomm::cli {
namespace {

using Json = nlohmann::ordered_json;  // peers stay in their order

// An object of the file, and where it is: "results[3].out_of_place".
class Node {
 public:
  Node(const Json& json, const std::string& path, std::string where)
      : json_(json), path_(path), where_(std::move(where)) {
    if (!json.is_object()) fail("is no object");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Failure(path_ + ": " + (where_.empty() ? "the file" : where_) + " " + what, Exit::usage);
  }

  // Nothing: absent, or null.
  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  Node object(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) fail(std::string("has no \"") + key + "\"");
    return {*value, path_, (where_.empty() ? "" : where_ + ".") + key};
  }

  std::string text(const char* key) const {
    const auto value = optional_text(key);
    if (!value) fail(std::string("has no \"") + key + "\"");
    return *value;
  }
  std::optional<std::string> optional_text(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) fail(std::string("has a \"") + key + "\" that is not a text");
    return value->get<std::string>();
  }

  std::optional<double> optional_number(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number() || !std::isfinite(value->get<double>()) || value->get<double>() < 0)
      fail(std::string("has a \"") + key + "\" that is not a number from 0 up");
    return value->get<double>();
  }
  double number(const char* key) const {
    const auto value = optional_number(key);
    if (!value) fail(std::string("has no \"") + key + "\"");
    return *value;
  }

  std::optional<std::uint64_t> optional_count(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_unsigned()) fail(std::string("has a \"") + key + "\" that is not a whole number");
    return value->get<std::uint64_t>();
  }
  std::uint64_t count(const char* key) const {
    const auto value = optional_count(key);
    if (!value) fail(std::string("has no \"") + key + "\"");
    return *value;
  }

  const Json& json() const { return json_; }
  const std::string& path() const { return path_; }
  const std::string& where() const { return where_; }

 private:
  const Json& json_;
  const std::string& path_;
  std::string where_;
};

void read_times(const Node& node, ReportFigure& figure) {
  figure.time_us = node.number("time");
  figure.p10_us = node.optional_number("time_p10");
  figure.p90_us = node.optional_number("time_p90");
  figure.wrong = node.optional_count("wrong");
  if (!(figure.time_us > 0)) node.fail("has a \"time\" of 0");
}

ReportFigure read_peer(const Node& node, const std::string& name, const ReportFigure& own) {
  ReportFigure figure;
  figure.library = name;
  figure.by = node.optional_text("by").value_or("");
  if (const auto why = node.optional_text("unsupported")) {
    figure.unsupported = why->empty() ? "no reason given" : *why;
    return figure;
  }
  read_times(node, figure);
  figure.ratio = node.optional_number("ratio");
  // The same bytes in another time.
  figure.busbw = own.busbw * own.time_us / figure.time_us;
  return figure;
}

ReportPoint read_place(const Node& row, const Node& place) {
  ReportPoint point;
  point.size_bytes = row.count("size");
  point.count = row.count("count");
  point.own.library = "zerocomm";
  read_times(place, point.own);
  point.own.busbw = place.number("bus_bw");
  point.stream_percent = place.optional_number("stream_percent");
  point.bound_percent = place.optional_number("bound_percent");
  point.skew_us = place.optional_number("skew_us");
  if (place.find("peers") == nullptr) return point;
  const Node peers = place.object("peers");
  for (const auto& [name, peer] : peers.json().items())
    point.peers.push_back(read_peer({peer, place.path(), peers.where() + "." + name}, name, point.own));
  return point;
}

auto key_of(const ReportGroup& group) {
  return std::tie(group.collective, group.type, group.redop, group.root, group.place, group.memory, group.timing,
                  group.ranks);
}

void add_point(Report& report, ReportGroup&& key, ReportPoint&& point) {
  const auto same = [&](const ReportGroup& group) { return key_of(group) == key_of(key); };
  auto group = std::find_if(report.groups.begin(), report.groups.end(), same);
  if (group == report.groups.end()) group = report.groups.insert(group, std::move(key));
  const std::size_t file = report.files.size() - 1;
  if (group->blocks.empty() || group->blocks.back().file != file) group->blocks.push_back({file, {}});
  group->blocks.back().points.push_back(std::move(point));
}

void add_row(Report& report, const Node& row, const Node& config) {
  bool any = false;
  for (const auto& [key, place] : {std::pair{"out_of_place", "out of place"}, std::pair{"in_place", "in place"}}) {
    if (row.find(key) == nullptr) continue;
    any = true;
    ReportGroup group;
    group.collective = row.text("collective");
    group.type = row.text("type");
    group.redop = row.optional_text("redop").value_or("none");
    group.root = row.optional_text("root").value_or("-1");
    group.place = place;
    group.memory = config.optional_text("memory").value_or("");
    group.timing = config.optional_text("timing").value_or("");
    if (config.optional_text("skew").value_or("even") == "one" && group.collective.ends_with("_v"))
      group.timing += ", all elements on one rank";
    group.ranks = config.count("ranks");
    add_point(report, std::move(group), read_place(row, row.object(key)));
  }
  if (!any) row.fail("has neither \"out_of_place\" nor \"in_place\"");
}

std::string joined(const Node& root, const char* key) {
  const Json* words = root.find(key);
  if (words == nullptr) return "";
  if (!words->is_array()) root.fail(std::string("has a \"") + key + "\" that is not a list");
  std::string line;
  for (const Json& word : *words) {
    if (!word.is_string()) root.fail(std::string("has a \"") + key + "\" that holds something else than texts");
    line += (line.empty() ? "" : " ") + word.get<std::string>();
  }
  return line;
}

// "vm, AMD EPYC": the hosts of all ranks, each once.
std::string machine_of(const Node& config) {
  const Json* devices = config.find("devices");
  if (devices == nullptr || !devices->is_array()) return "";
  std::vector<std::string> machines;
  for (std::size_t i = 0; i < devices->size(); ++i) {
    const Node device((*devices)[i], config.path(), "config.devices[" + std::to_string(i) + "]");
    const std::string host = device.optional_text("hostname").value_or("");
    const std::string model = device.optional_text("device_info").value_or("");
    std::string machine = host;
    if (!host.empty() && !model.empty()) machine += ", ";
    machine += model;
    if (std::find(machines.begin(), machines.end(), machine) == machines.end()) machines.push_back(machine);
  }
  std::string line;
  for (const std::string& machine : machines) line += (line.empty() ? "" : "; ") + machine;
  return line;
}

ReportFile read_facts(const Node& root, const Node& config) {
  ReportFile file;
  file.path = root.path();
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) file.facts.emplace_back(name, value);
  };
  add("command", joined(root, "args"));
  add("machine", machine_of(config));
  add("date", root.optional_text("start_time").value_or(""));
  add("program", root.optional_text("program").value_or(""));
  add("commit", root.optional_text("commit").value_or(""));
  add("zerocomm", root.optional_text("library").value_or(""));
  if (root.find("peer_libraries") != nullptr) {
    const Node peers = root.object("peer_libraries");
    for (const auto& [name, version] : peers.json().items()) add(name.c_str(), peers.text(name.c_str()));
  }
  add("variables", joined(root, "env"));
  add("clock", root.optional_text("clock").value_or(""));
  if (const auto triad = root.optional_number("triad_gbs")) add("triad", report_number(*triad) + " GB/s");
  if (root.find("out_of_bounds") != nullptr)
    add("wrong results", std::to_string(root.object("out_of_bounds").count("count")));
  return file;
}

// nlohmann's texts begin with an identifier in brackets, and end with what was read, which may be long and no text.
std::string reason_of(const Json::exception& error) {
  const std::string text = error.what();
  const std::size_t end = text.find("] ");
  std::string reason = end == std::string::npos ? text : text.substr(end + 2);
  if (reason.length() > 200) reason = reason.substr(0, 200) + "...";
  std::replace_if(
      reason.begin(), reason.end(), [](char c) { return c < 0x20 || c == 0x7f; }, '?');
  return reason;
}

}  // namespace

void add_report_file(Report& report, const std::string& text, const std::string& path) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& error) {
    throw Failure(path + ": not JSON: " + reason_of(error), Exit::usage);
  }
  const Json* results = nullptr;
  if (json.is_object() && json.contains("results")) results = &json["results"];
  if (results == nullptr || !results->is_array())
    throw Failure(path + ": not a file of zc bench -J: it has no list \"results\"", Exit::usage);
  if (results->empty()) throw Failure(path + ": its list \"results\" is empty", Exit::usage);
  const Node root(json, path, ""), config = root.object("config");
  report.files.push_back(read_facts(root, config));
  for (std::size_t i = 0; i < results->size(); ++i)
    add_row(report, {(*results)[i], path, "results[" + std::to_string(i) + "]"}, config);
}

}  // namespace zerocomm::cli
