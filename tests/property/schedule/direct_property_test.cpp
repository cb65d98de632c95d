// Direct, for every number of ranks up to 17 and 33, every root, several lanes and sizes of blocks.
#include "schedule/catalogue.hpp"
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

template <class Action>
void for_each_key(Action action) {
  for (const Algorithm& row : algorithms())
    for (const std::uint32_t p : rank_counts())
      for (std::uint32_t root = 0; root < (row.collective == Collective::broadcast ? p : 1); ++root)
        for (const std::uint32_t lanes : {1u, 3u})
          for (const std::uint32_t pieces : {1u, 2u}) {
            Key key = make_key(row.collective, row.name, p, root, lanes);
            key.chunks *= pieces;
            action(row, key);
          }
}

TEST(DirectSchedule, is_proved_and_canonical_for_any_ranks_and_root) {
  std::size_t proved = 0;
  for_each_key([&](const Algorithm& row, const Key& key) {
    const Verdict verdict = verify(build(key));
    EXPECT_TRUE(verdict.ok()) << collective_name(key.collective) << " over " << key.ranks << "\n" << verdict.text();
    EXPECT_EQ(verdict.canonical, row.canonical);
    ++proved;
  });
  EXPECT_EQ(proved, 4 * (4 * 18 + (17 * 18 / 2 + 33)));
}

TEST(DirectSchedule, costs_what_its_closed_form_says) {
  for_each_key([](const Algorithm& row, const Key& key) {
    const Schedule schedule = build(key);
    for (const LinkModel links : {LinkModel{1000, 1}, LinkModel{1, 1000}, LinkModel{1, 1}}) {
      const Cost cost = cost_of(schedule, Partition::unit(key.chunks), links);
      EXPECT_EQ(cost, row.closed_form(key))
          << collective_name(key.collective) << " over " << key.ranks << " in " << key.lanes
          << " lanes: " << path_text(cost.critical_path) << ", not " << path_text(row.closed_form(key).critical_path);
    }
  });
}

TEST(DirectSchedule, text_brings_back_the_same_schedule) {
  for_each_key([](const Algorithm&, const Key& key) {
    if (key.ranks > 9) return;
    const Schedule schedule = build(key);
    EXPECT_EQ(from_text(to_text(schedule)), schedule);
  });
}

}  // namespace
}  // namespace zerocomm::schedule
