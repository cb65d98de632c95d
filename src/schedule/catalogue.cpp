// The table of algorithms, and how a key becomes a schedule.
#include "schedule/catalogue.hpp"

#include "base/check.hpp"
#include "schedule/binomial.hpp"
#include "schedule/circulant.hpp"
#include "schedule/contract.hpp"
#include "schedule/direct.hpp"
#include "schedule/dissemination.hpp"
#include "schedule/ring.hpp"
#include "schedule/schedule_text.hpp"

namespace zerocomm::schedule {
namespace {

constexpr Algorithm kAlgorithms[] = {
    {Collective::all_reduce, "direct", true, false, direct_steps, direct_cost, nullptr},
    {Collective::all_reduce, "ring", false, false, ring_steps, ring_cost, nullptr},
    {Collective::all_reduce, "circulant", false, true, circulant_steps, circulant_cost, circulant_scratch},
    {Collective::reduce_scatter, "direct", true, false, direct_steps, direct_cost, nullptr},
    {Collective::reduce_scatter, "ring", false, false, ring_steps, ring_cost, ring_scratch},
    {Collective::reduce_scatter, "circulant", false, true, circulant_steps, circulant_cost, circulant_scratch},
    {Collective::all_gather, "direct", true, false, direct_steps, direct_cost, nullptr},
    {Collective::all_gather, "ring", true, false, ring_steps, ring_cost, nullptr},
    {Collective::all_gather, "circulant", true, true, circulant_steps, circulant_cost, nullptr},
    {Collective::broadcast, "direct", true, false, direct_steps, direct_cost, nullptr},
    {Collective::broadcast, "binomial", true, false, binomial_steps, binomial_cost, nullptr},
    {Collective::barrier, "direct", true, false, direct_steps, direct_cost, nullptr},
    {Collective::barrier, "dissemination", true, false, dissemination_steps, dissemination_cost, nullptr},
    {Collective::reduce, "direct", true, false, direct_steps, direct_cost, nullptr},
    {Collective::reduce, "binomial", false, false, binomial_steps, binomial_cost, binomial_scratch},
    {Collective::all_to_all, "direct", true, false, direct_steps, direct_cost, nullptr},
    {Collective::gather_to_root, "direct", true, false, direct_steps, direct_cost, nullptr},
    {Collective::gather_to_root, "binomial", true, true, binomial_steps, binomial_cost, binomial_scratch},
    {Collective::scatter_from_root, "direct", true, false, direct_steps, direct_cost, nullptr},
    {Collective::scatter_from_root, "binomial", true, true, binomial_steps, binomial_cost, binomial_scratch},
};

// Why a key names no schedule, whatever the algorithm; empty if it does.
std::string wrong_key(const Key& key) {
  const char* name = collective_name(key.collective);
  if (key.ranks == 0) return format("%s over 0 ranks", name);
  if (key.root >= key.ranks) return format("%s: root %u of %u ranks", name, key.root, key.ranks);
  if (key.root != 0 && !has_root(key.collective)) return format("%s has no root", name);
  if (key.lanes == 0 || key.lanes > kMaxLanes)
    return format("%s in %u lanes; 1 to %u can be", name, key.lanes, kMaxLanes);
  if (key.collective == Collective::barrier)
    return key.chunks == 0 ? "" : format("a barrier moves no chunks, not %u", key.chunks);
  const std::uint64_t blocks = block_count(key.collective, key.ranks);
  const unsigned long long unit = blocks * key.lanes;
  if (blocks <= UINT32_MAX && key.chunks > 0 && key.chunks % unit == 0) return {};
  return format("%s over %u ranks in %u lanes: %u chunks is not a multiple of %llu", name, key.ranks, key.lanes,
                key.chunks, unit);
}

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm* find_row(Collective collective, std::string_view name) {
  for (const Algorithm& row : kAlgorithms)
    if (row.collective == collective && row.name == name) return &row;
  return nullptr;
}

const Algorithm& find_algorithm(Collective collective, std::string_view name) {
  if (const Algorithm* row = find_row(collective, name)) return *row;
  std::string known;
  for (const Algorithm& row : kAlgorithms)
    if (row.collective == collective) known += (known.empty() ? "" : ", ") + std::string(row.name);
  throw Error(ZC_UNSUPPORTED, format("%s has no algorithm called '%.*s'; there are %s", collective_name(collective),
                                     static_cast<int>(name.size()), name.data(), known.c_str()));
}

Key make_key(Collective collective, std::string_view algorithm, std::uint32_t ranks, std::uint32_t root,
             std::uint32_t lanes) {
  const std::uint64_t chunks = collective == Collective::barrier ? 0 : block_count(collective, ranks);
  std::uint32_t product = 0;
  ZC_REQUIRE(!__builtin_mul_overflow(chunks, lanes, &product), ZC_OVERFLOW, "%u ranks with %u lanes", ranks, lanes);
  return {collective, std::string(algorithm), ranks, root, product, lanes};
}

void check_key(const Key& key) {
  const std::string wrong = wrong_key(key);
  ZC_REQUIRE(wrong.empty(), ZC_ARGUMENT, "%s", wrong.c_str());
}

bool wrong_for(const Algorithm& row, const Key& key) {
  return (row.one_lane && key.lanes > 1) || !wrong_key(key).empty();
}

std::uint32_t scratch_chunks(const Key& key) {
  const Algorithm& row = find_algorithm(key.collective, key.algorithm);
  return row.scratch == nullptr ? 0 : row.scratch(key);
}

RankSchedule build_rank(const Key& key, std::uint32_t rank) {
  check_key(key);
  ZC_REQUIRE(rank < key.ranks, ZC_ARGUMENT, "rank %u of %u", rank, key.ranks);
  const Algorithm& row = find_algorithm(key.collective, key.algorithm);
  ZC_REQUIRE(!row.one_lane || key.lanes == 1, ZC_UNSUPPORTED, "%s %s runs in one lane, not %u",
             collective_name(key.collective), key.algorithm.c_str(), key.lanes);
  return row.steps(key, rank);
}

Schedule build(const Key& key) {
  check_key(key);
  Schedule schedule{key, scratch_chunks(key), {}};
  for (std::uint32_t rank = 0; rank < key.ranks; ++rank) schedule.ranks.push_back(build_rank(key, rank));
  return schedule;
}

}  // namespace zerocomm::schedule
