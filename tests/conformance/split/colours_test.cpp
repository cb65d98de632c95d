// Who is in which child, as which rank, on which node.
#include "split/child.hpp"
#include "support/exact_data.hpp"
#include "support/rank_threads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>

namespace zerocomm::test {
namespace {

struct Choice {
  std::int32_t color = 0, key = 0;
};

// Drawn choices: few colours, some ranks without one, keys that are often equal, negative or extreme.
Choice choice_of(std::uint64_t seed, std::int32_t rank) {
  const std::uint64_t draw = mix(seed, static_cast<std::uint64_t>(rank));
  constexpr std::int32_t kKeys[] = {0, 0, 5, -5, INT32_MIN, INT32_MAX, 1};
  constexpr std::int32_t kColors[] = {0, 7, ZC_NONE, INT32_MAX};
  return {kColors[draw % 4], kKeys[draw / 4 % 7]};
}

// The definition: sort (key, rank) of those of one colour.
std::vector<std::int64_t> oracle(std::uint64_t seed, std::int32_t ranks, std::int32_t color) {
  std::vector<std::tuple<std::int32_t, std::int32_t>> members;
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    if (const Choice choice = choice_of(seed, rank); choice.color == color) members.emplace_back(choice.key, rank);
  std::sort(members.begin(), members.end());
  std::vector<std::int64_t> result;
  for (const auto& [key, rank] : members) result.push_back(rank);
  return result;
}

TEST(SplitColours, and_keys_give_the_ranks_of_the_definition) {
  for (const std::int32_t ranks : {1, 2, 3, 4, 7, 17})
    run_ranks(ranks, [&](zc_comm* comm, std::int32_t rank) {
      for (std::uint64_t seed = 0; seed < (ranks == 17 ? 4U : 10U); ++seed) {
        const Choice choice = choice_of(mix(seed, 3), rank);
        const Child child(comm, choice.color, choice.key);
        RANK_CHECK((child == nullptr) == (choice.color == ZC_NONE), "colour %d", choice.color);
        if (child == nullptr) continue;
        check_members(child, rank, oracle(mix(seed, 3), ranks, choice.color));
      }
      RANK_OK(zc_barrier(comm, nullptr));
    });
}

TEST(SplitColours, of_a_split_of_a_split_count_ranks_of_the_one_above) {
  run_ranks(6, [&](zc_comm* comm, std::int32_t rank) {
    const Child half(comm, rank % 2, -rank);                // 4 2 0 and 5 3 1
    const Child pair(half, rank_in(half) == 0 ? 1 : 0, 0);  // 2 0 and 3 1
    const Child same(pair, 3, -rank_in(pair));              // turned around
    check_members(half, rank, {4 + rank % 2, 2 + rank % 2, rank % 2});
    if (rank >= 4) return check_members(same, rank, {rank});
    check_members(same, rank, {rank % 2, 2 + rank % 2});
  });
}

std::int32_t node_of(const zc_comm* comm, std::int32_t rank) {
  std::int32_t node = -1;
  RANK_OK(zc_comm_node(comm, rank, &node));
  return node;
}

zc_comm_info info_of(const zc_comm* comm) {
  zc_comm_info info{};
  info.struct_size = sizeof info;
  RANK_OK(zc_comm_get_info(comm, &info));
  return info;
}

TEST(SplitConfig, follows_the_parent_unless_it_says_something_else) {
  run_ranks(4,
            [&](zc_comm* comm, std::int32_t rank) {
              const Child like(comm, 0, -rank);  // 3 2 1 0: the second node comes first
              RANK_CHECK(node_of(like, 0) == 0 && node_of(like, 1) == 0 && node_of(like, 3) == 1, "nodes");
              RANK_CHECK(info_of(like).nodes == 2 && info_of(like).deadline_ns == 60 * kSecondNs, "nodes or deadline");
              RANK_CHECK(info_of(like).spin_ns == info_of(comm).spin_ns, "spin");
              RANK_CHECK(std::string(info_of(like).transport) == kTransportName, "transport");
              RANK_CHECK(std::string(info_of(like).private_copy) == info_of(comm).private_copy, "private copy");
              const Child near(comm, node_of(comm, rank), 0);
              RANK_CHECK(info_of(near).nodes == 1 && info_of(near).ranks == 2, "one node");
              zc_comm_config config{};
              config.struct_size = sizeof config;
              config.deadline_ns = 7 * kSecondNs;
              config.spin_ns = 1234;
              config.topology = "x:0 y:1-2 z:3";
              const Child other(comm, 0, 0, &config);
              RANK_CHECK(info_of(other).nodes == 3 && node_of(other, 2) == 1, "nodes");
              RANK_CHECK(info_of(other).deadline_ns == 7 * kSecondNs && info_of(other).spin_ns == 1234,
                         "deadline or spin");
            },
            {.topology = "a:0-1 b:2-3"});
}

}  // namespace
}  // namespace zerocomm::test
