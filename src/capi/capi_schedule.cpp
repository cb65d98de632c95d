// schedule.h: reads the caller's structs, calls src/schedule, fills the caller's structs.
#include "capi/guard.hpp"
#include "capi/handles_schedule.hpp"
#include "schedule/catalogue.hpp"
#include "schedule/contract.hpp"
#include "schedule/schedule_text.hpp"
#include "schedule/verify.hpp"

#include <zerocomm/schedule.h>

#include <algorithm>
#include <memory>

namespace schedule = zerocomm::schedule;
using zerocomm::capi::guard;
using zerocomm::capi::read_struct;
using zerocomm::capi::write_struct;

namespace {

constexpr std::int32_t kMostRanks = 1024;  // ranks * lanes: all of them are held at once

const schedule::Schedule& value_of(const zc_schedule* handle) {
  ZC_REQUIRE(handle != nullptr, ZC_ARGUMENT, "the schedule is NULL");
  return handle->value;
}

// The public numbers begin at 1, in the same order.
zc_collective public_collective(schedule::Collective collective) {
  return static_cast<zc_collective>(static_cast<int>(collective) + 1);
}
bool is_collective(zc_collective collective) {
  return collective >= ZC_COLLECTIVE_ALL_REDUCE && collective <= ZC_COLLECTIVE_SCATTER_FROM_ROOT;
}
static_assert(static_cast<int>(ZC_COLLECTIVE_SCATTER_FROM_ROOT) == static_cast<int>(schedule::kCollectives));

schedule::Key key_of(const zc_schedule_config& config) {
  ZC_REQUIRE(is_collective(config.collective), ZC_ARGUMENT, "collective %d does not exist",
             static_cast<int>(config.collective));
  const std::int32_t lanes = config.lanes == 0 ? 1 : config.lanes;
  ZC_REQUIRE(config.ranks >= 1, ZC_ARGUMENT, "ranks is %d; at least 1 is needed", config.ranks);
  ZC_REQUIRE(lanes >= 1 && lanes <= static_cast<std::int32_t>(schedule::kMaxLanes), ZC_ARGUMENT,
             "lanes is %d; 1 to %u can be", config.lanes, schedule::kMaxLanes);
  ZC_REQUIRE(config.root >= 0 && config.root < config.ranks, ZC_ARGUMENT, "root %d of %d ranks", config.root,
             config.ranks);
  ZC_REQUIRE(config.ranks <= kMostRanks / lanes, ZC_UNSUPPORTED, "%d ranks in %d lanes; ranks * lanes is at most %d",
             config.ranks, lanes, kMostRanks);
  schedule::Key key = schedule::make_key(static_cast<schedule::Collective>(static_cast<int>(config.collective) - 1),
                                         config.algorithm == nullptr ? "direct" : config.algorithm,
                                         static_cast<std::uint32_t>(config.ranks),
                                         static_cast<std::uint32_t>(config.root), static_cast<std::uint32_t>(lanes));
  if (config.chunks != 0) key.chunks = config.chunks;
  return key;
}

void write_text(const std::string& whole, char* text, size_t capacity_bytes, size_t* needed_bytes) {
  ZC_REQUIRE(text != nullptr || capacity_bytes == 0, ZC_ARGUMENT, "text is NULL, capacity_bytes is %zu",
             capacity_bytes);
  if (capacity_bytes > 0) {
    const std::size_t copied = std::min(whole.size(), capacity_bytes - 1);
    std::memcpy(text, whole.data(), copied);
    text[copied] = '\0';
  }
  if (needed_bytes != nullptr) *needed_bytes = whole.size() + 1;
}

zc_finding public_finding(schedule::Finding finding) {
  switch (finding) {
    case schedule::Finding::holds:
      return ZC_FINDING_HOLDS;
    case schedule::Finding::broken:
      return ZC_FINDING_BROKEN;
    case schedule::Finding::unknown:
      break;
  }
  return ZC_FINDING_UNKNOWN;
}

schedule::Partition partition_of(const schedule::Key& key, std::size_t count) {
  if (count == 0 || key.chunks == 0) return schedule::Partition::unit(key.chunks);
  const auto blocks = static_cast<std::uint32_t>(schedule::block_count(key.collective, key.ranks));
  return schedule::Partition::even(count, blocks, key.chunks / blocks);
}

}  // namespace

const char* zc_collective_name(zc_collective collective) {
  return is_collective(collective)
             ? schedule::collective_name(static_cast<schedule::Collective>(static_cast<int>(collective) - 1))
             : "none";
}

zc_status zc_schedule_create(const zc_schedule_config* config, zc_schedule** schedule) {
  return guard([&] {
    ZC_REQUIRE(schedule != nullptr, ZC_ARGUMENT, "schedule is NULL");
    ZC_REQUIRE(config != nullptr, ZC_ARGUMENT, "config is NULL");
    const schedule::Key key = key_of(read_struct(config, "zc_schedule_config"));
    *schedule = std::make_unique<zc_schedule>(schedule::build(key)).release();
    return ZC_OK;
  });
}

zc_status zc_schedule_parse(const char* text, zc_schedule** schedule) {
  return guard([&] {
    ZC_REQUIRE(schedule != nullptr, ZC_ARGUMENT, "schedule is NULL");
    ZC_REQUIRE(text != nullptr, ZC_ARGUMENT, "text is NULL");
    *schedule = std::make_unique<zc_schedule>(schedule::from_text(text)).release();
    return ZC_OK;
  });
}

zc_status zc_schedule_destroy(zc_schedule* schedule) {
  delete schedule;
  return ZC_OK;
}

zc_status zc_schedule_text(const zc_schedule* schedule, char* text, size_t capacity_bytes, size_t* needed_bytes) {
  return guard([&] {
    write_text(schedule::to_text(value_of(schedule)), text, capacity_bytes, needed_bytes);
    return ZC_OK;
  });
}

zc_status zc_schedule_get_info(const zc_schedule* schedule, zc_schedule_info* info) {
  return guard([&] {
    const schedule::Schedule& value = value_of(schedule);
    zc_schedule_info mine{};
    mine.collective = public_collective(value.key.collective);
    mine.ranks = static_cast<std::int32_t>(value.key.ranks);
    mine.root = static_cast<std::int32_t>(value.key.root);
    mine.lanes = static_cast<std::int32_t>(value.key.lanes);
    mine.chunks = value.key.chunks;
    mine.scratch_chunks = value.scratch_chunks;
    mine.loss = value.loss;
    for (const schedule::RankSchedule& rank : value.ranks)
      for (const schedule::Lane& lane : rank.lanes) mine.step_count += lane.steps.size();
    mine.algorithm = value.key.algorithm.c_str();
    write_struct(mine, info, "zc_schedule_info");
    return ZC_OK;
  });
}

zc_status zc_schedule_verify(const zc_schedule* schedule, zc_schedule_verdict* verdict, char* text,
                             size_t capacity_bytes, size_t* needed_bytes) {
  return guard([&] {
    const schedule::Verdict found = schedule::verify(value_of(schedule));
    zc_schedule_verdict mine{};
    mine.is_proved = found.ok() ? 1 : 0;
    mine.is_canonical = found.canonical ? 1 : 0;
    static_assert(sizeof mine.findings / sizeof mine.findings[0] == schedule::kProperties);
    std::transform(found.findings.begin(), found.findings.end(), std::begin(mine.findings), public_finding);
    write_text(found.text(), text, capacity_bytes, needed_bytes);
    write_struct(mine, verdict, "zc_schedule_verdict");
    return ZC_OK;
  });
}

zc_status zc_schedule_cost(const zc_schedule* schedule, int32_t rank, const zc_schedule_cost_config* config,
                           zc_schedule_costs* costs) {
  return guard([&] {
    const schedule::Schedule& value = value_of(schedule);
    const zc_schedule_cost_config mine = read_struct(config, "zc_schedule_cost_config");
    ZC_REQUIRE(rank == ZC_NONE || (rank >= 0 && static_cast<std::uint32_t>(rank) < value.key.ranks), ZC_ARGUMENT,
               "rank %d of %u", rank, value.key.ranks);
    schedule::require_runnable(value);
    schedule::LinkModel links;
    if (mine.alpha != 0) links.alpha = mine.alpha;
    if (mine.beta != 0) links.beta = mine.beta;
    const schedule::Cost found = schedule::cost_of(value, partition_of(value.key, mine.count), links);
    zc_schedule_costs result{};
    for (std::size_t r = 0; r < found.ranks.size(); ++r) {
      if (rank != ZC_NONE && r != static_cast<std::size_t>(rank)) continue;
      const schedule::Traffic& traffic = found.ranks[r];
      result.messages_sent = std::max(result.messages_sent, traffic.messages_sent);
      result.elements_sent = std::max(result.elements_sent, traffic.elements_sent);
      result.messages_received = std::max(result.messages_received, traffic.messages_received);
      result.elements_received = std::max(result.elements_received, traffic.elements_received);
    }
    result.path_latencies = found.critical_path.alphas;
    result.path_elements = found.critical_path.elements;
    write_struct(result, costs, "zc_schedule_costs");
    return ZC_OK;
  });
}

size_t zc_schedule_algorithm_count(void) { return schedule::algorithms().size(); }

zc_status zc_schedule_algorithm(size_t index, zc_algorithm_info* info) {
  return guard([&] {
    ZC_REQUIRE(index < schedule::algorithms().size(), ZC_ARGUMENT, "row %zu of a catalogue of %zu", index,
               schedule::algorithms().size());
    const schedule::Algorithm& row = schedule::algorithms()[index];
    zc_algorithm_info mine{};
    mine.collective = public_collective(row.collective);
    mine.is_canonical = row.canonical ? 1 : 0;
    mine.is_one_lane = row.one_lane ? 1 : 0;
    mine.name = row.name.data();
    write_struct(mine, info, "zc_algorithm_info");
    return ZC_OK;
  });
}
