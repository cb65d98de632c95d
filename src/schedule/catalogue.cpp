// The table of algorithms, and how a key becomes a schedule.
#include "schedule/catalogue.hpp"

#include "base/check.hpp"
#include "schedule/contract.hpp"
#include "schedule/direct.hpp"
#include "schedule/schedule_text.hpp"

namespace zerocomm::schedule {
namespace {

constexpr Algorithm kAlgorithms[] = {
    {Collective::all_reduce, "direct", true, direct_steps, direct_cost},
    {Collective::reduce_scatter, "direct", true, direct_steps, direct_cost},
    {Collective::all_gather, "direct", true, direct_steps, direct_cost},
    {Collective::broadcast, "direct", true, direct_steps, direct_cost},
    {Collective::barrier, "direct", true, direct_steps, direct_cost},
};

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm& find_algorithm(Collective collective, std::string_view name) {
  for (const Algorithm& row : kAlgorithms)
    if (row.collective == collective && row.name == name) return row;
  throw Error(ZC_UNSUPPORTED, format("%s has no algorithm called '%.*s'", collective_name(collective),
                                     static_cast<int>(name.size()), name.data()));
}

Key make_key(Collective collective, std::string_view algorithm, std::uint32_t ranks, std::uint32_t root,
             std::uint32_t lanes) {
  std::uint32_t chunks = lanes;
  if (collective == Collective::barrier) chunks = 0;
  if (has_blocks(collective))
    ZC_REQUIRE(!__builtin_mul_overflow(ranks, lanes, &chunks), ZC_OVERFLOW, "%u ranks with %u lanes", ranks, lanes);
  return {collective, std::string(algorithm), ranks, root, chunks, lanes};
}

void check_key(const Key& key) {
  const char* name = collective_name(key.collective);
  ZC_REQUIRE(key.ranks >= 1, ZC_ARGUMENT, "%s over 0 ranks", name);
  ZC_REQUIRE(key.root < key.ranks, ZC_ARGUMENT, "%s: root %u of %u ranks", name, key.root, key.ranks);
  ZC_REQUIRE(key.root == 0 || key.collective == Collective::broadcast, ZC_ARGUMENT, "%s has no root", name);
  ZC_REQUIRE(key.lanes >= 1 && key.lanes <= kMaxLanes, ZC_ARGUMENT, "%s in %u lanes; 1 to %u can be", name, key.lanes,
             kMaxLanes);
  if (key.collective == Collective::barrier) {
    ZC_REQUIRE(key.chunks == 0, ZC_ARGUMENT, "a barrier moves no chunks, not %u", key.chunks);
    return;
  }
  const std::uint64_t unit = std::uint64_t{key.lanes} * (has_blocks(key.collective) ? key.ranks : 1);
  ZC_REQUIRE(key.chunks > 0 && key.chunks % unit == 0, ZC_ARGUMENT,
             "%s over %u ranks in %u lanes: %u chunks is not a multiple of %llu", name, key.ranks, key.lanes,
             key.chunks, static_cast<unsigned long long>(unit));
}

RankSchedule build_rank(const Key& key, std::uint32_t rank) {
  check_key(key);
  ZC_REQUIRE(rank < key.ranks, ZC_ARGUMENT, "rank %u of %u", rank, key.ranks);
  return find_algorithm(key.collective, key.algorithm).steps(key, rank);
}

Schedule build(const Key& key) {
  check_key(key);
  Schedule schedule{key, 0, {}};
  for (std::uint32_t rank = 0; rank < key.ranks; ++rank) schedule.ranks.push_back(build_rank(key, rank));
  return schedule;
}

}  // namespace zerocomm::schedule
