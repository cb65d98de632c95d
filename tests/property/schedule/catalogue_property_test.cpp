// Every row of the catalogue, for every number of ranks up to 17 and 33, every root, several lanes and sizes of blocks.
#include "schedule/catalogue.hpp"
#include "schedule/contract.hpp"
#include "schedule/schedule_text.hpp"
#include "schedule/verify.hpp"

#include <gtest/gtest.h>

namespace zerocomm::schedule {
namespace {

std::vector<std::uint32_t> rank_counts() {
  std::vector<std::uint32_t> counts;
  for (std::uint32_t p = 1; p <= 17; ++p) counts.push_back(p);
  counts.push_back(33);
  return counts;
}

// Every root of up to 9 ranks; of more, those where blocks wrap in different places.
std::vector<std::uint32_t> roots(const Algorithm& row, std::uint32_t p) {
  if (!has_root(row.collective)) return {0};
  if (p > 9) return {0, 1, p / 2, p - 1};
  std::vector<std::uint32_t> all;
  for (std::uint32_t root = 0; root < p; ++root) all.push_back(root);
  return all;
}

template <class Action>
void for_each_key(const Algorithm& row, Action action) {
  for (const std::uint32_t p : rank_counts())
    for (const std::uint32_t root : roots(row, p))
      for (const std::uint32_t lanes : {1u, 3u})
        for (const std::uint32_t pieces : {1u, 2u}) {
          if (row.one_lane && lanes > 1) continue;
          if (row.collective == Collective::all_to_all && p > 17 && (lanes > 1 || pieces > 1)) continue;
          Key key = make_key(row.collective, row.name, p, root, lanes);
          key.chunks *= pieces;
          action(key);
        }
}

std::string name_of(const Key& key) {
  return std::string(collective_name(key.collective)) + " " + key.algorithm + " over " + std::to_string(key.ranks) +
         " root " + std::to_string(key.root) + " chunks " + std::to_string(key.chunks) + " lanes " +
         std::to_string(key.lanes);
}

class Catalogue : public testing::TestWithParam<Algorithm> {};

TEST_P(Catalogue, every_schedule_is_proved_and_canonical_if_the_row_says_so) {
  std::size_t proved = 0;
  bool always_canonical = true;
  for_each_key(GetParam(), [&](const Key& key) {
    const Verdict verdict = verify(build(key));
    ASSERT_TRUE(verdict.ok()) << name_of(key) << "\n" << verdict.text();
    for (const Finding finding : verdict.findings) ASSERT_EQ(finding, Finding::holds) << name_of(key);
    always_canonical = always_canonical && verdict.canonical;
    ++proved;
  });
  EXPECT_EQ(always_canonical, GetParam().canonical);
  EXPECT_GE(proved, 18u * 2);
}

TEST_P(Catalogue, every_schedule_costs_what_its_closed_form_says_on_any_links) {
  for_each_key(GetParam(), [&](const Key& key) {
    const Schedule schedule = build(key);
    for (const LinkModel links : {LinkModel{1000, 1}, LinkModel{1, 1000}, LinkModel{1, 1}}) {
      const Cost cost = cost_of(schedule, Partition::unit(key.chunks), links), wanted = GetParam().closed_form(key);
      ASSERT_EQ(cost.ranks, wanted.ranks) << name_of(key);
      ASSERT_EQ(path_text(cost.critical_path), path_text(wanted.critical_path)) << name_of(key);
    }
  });
}

TEST_P(Catalogue, text_brings_back_the_same_schedule) {
  for_each_key(GetParam(), [](const Key& key) {
    if (key.ranks > 9) return;
    const Schedule schedule = build(key);
    ASSERT_EQ(from_text(to_text(schedule)), schedule) << name_of(key);
  });
}

// Scratch is what limits the piece of a long vector that is worked on at once.
TEST_P(Catalogue, no_slot_of_scratch_is_idle) {
  for_each_key(GetParam(), [](const Key& key) {
    const Schedule schedule = build(key);
    std::vector<bool> used(schedule.scratch_chunks);
    for (const RankSchedule& rank : schedule.ranks)
      for (const Lane& lane : rank.lanes)
        for (const Step& step : lane.steps)
          for (std::uint32_t i = 0; step.dst_buf == Buf::scratch && i < step.n_chunks; ++i)
            used[step.dst_chunk + i] = true;
    for (std::size_t slot = 0; slot < used.size(); ++slot) ASSERT_TRUE(used[slot]) << slot << ": " << name_of(key);
  });
}

INSTANTIATE_TEST_SUITE_P(Rows, Catalogue, testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const auto& row) {
                           return std::string(collective_name(row.param.collective)) + "_" +
                                  std::string(row.param.name);
                         });

}  // namespace
}  // namespace zerocomm::schedule
