// Residency, places, victims and fetching ahead of one rank's gathered units.
#include "zero/fetcher.hpp"

#include "base/check.hpp"
#include "unit/zero/small_layout.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace zerocomm::zero {
namespace {

using test::small_layout;
using Units = std::vector<std::size_t>;

shard::Layout equal_units(std::size_t count, std::size_t bytes) {
  return small_layout(std::vector<test::UnitSpec>(count, {bytes}));
}

FetcherConfig arena(std::size_t bytes) { return {.arena_bytes = bytes, .alignment_bytes = 1}; }

Units list(std::span<const std::size_t> units) { return {units.begin(), units.end()}; }

Plan acquire(Fetcher& fetcher, std::size_t unit) {
  const Plan plan = fetcher.acquire(unit);
  EXPECT_EQ(plan.status, ZC_OK) << plan.text;
  if (plan.status == ZC_OK && plan.need == Need::fetch) fetcher.landed(unit, true);
  return plan;
}

void fetch_ahead(Fetcher& fetcher) {
  for (int fetched = 0; const std::optional<Plan> plan = fetcher.prefetch(); ++fetched) {
    fetcher.landed(plan->unit, true);
    ASSERT_LT(fetched, 100) << "units push each other out";
  }
}

// What a pass of one thread does; every acquire is released before the next.
void run_pass(Fetcher& fetcher, std::string_view name, const Units& units) {
  fetcher.begin_pass(name);
  fetch_ahead(fetcher);
  for (const std::size_t unit : units) {
    acquire(fetcher, unit);
    fetcher.visit(unit);
    ASSERT_EQ(fetcher.release(unit).status, ZC_OK);
    fetch_ahead(fetcher);
  }
  fetcher.end_pass();
}

// Hits and misses of one more pass.
std::pair<std::uint64_t, std::uint64_t> hits_and_misses(Fetcher& fetcher, std::string_view name, const Units& units) {
  const Fetcher::Counters before = fetcher.counters();
  run_pass(fetcher, name, units);
  return {fetcher.counters().hits - before.hits, fetcher.counters().misses - before.misses};
}

const Units kThereAndBack = {0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0};

TEST(Fetcher, the_third_pass_has_only_hits_when_two_units_fit) {
  const shard::Layout layout = equal_units(6, 10);
  Fetcher fetcher(layout, arena(20));
  run_pass(fetcher, "train", kThereAndBack);
  run_pass(fetcher, "train", kThereAndBack);
  EXPECT_EQ(hits_and_misses(fetcher, "train", kThereAndBack), (std::pair<std::uint64_t, std::uint64_t>{12, 0}));
  EXPECT_EQ(fetcher.counters().peak_bytes, 20U);
  EXPECT_EQ(fetcher.counters().wasted, 0U);
}

TEST(Fetcher, alternating_passes_have_only_hits_once_each_was_seen) {
  const Units forward = {0, 1, 2, 5};
  const shard::Layout layout = equal_units(6, 10);
  Fetcher fetcher(layout, arena(20));
  run_pass(fetcher, "a", kThereAndBack);
  run_pass(fetcher, "b", forward);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(hits_and_misses(fetcher, "a", kThereAndBack).second, 0U);
    EXPECT_EQ(hits_and_misses(fetcher, "b", forward).second, 0U);
  }
}

TEST(Fetcher, a_surprise_costs_its_own_misses_and_no_more) {
  struct Case {
    Units units;
    std::uint64_t surprises;
  };
  const shard::Layout layout = equal_units(8, 10);
  const Units usual = {0, 1, 2, 3, 4, 5};
  for (const auto& [units, surprises] :
       {Case{{0, 1, 2, 6, 3, 4, 5}, 1}, Case{{0, 1, 3, 4, 5}, 1}, Case{{0, 1, 2, 0, 1, 2, 3, 4, 5}, 1},
        Case{{0, 1, 1, 1, 2, 3, 4, 5}, 2}, Case{{0, 7, 7, 1, 2, 3, 4, 5}, 2}, Case{{5, 4, 3, 2, 1, 0}, 6}}) {
    Fetcher fetcher(layout, arena(20));
    run_pass(fetcher, "train", usual);
    EXPECT_LE(hits_and_misses(fetcher, "train", units).second, surprises) << units.size() << " visits";
    run_pass(fetcher, "train", usual);  // expects the surprise again
    EXPECT_EQ(hits_and_misses(fetcher, "train", usual).second, 0U);
  }
}

TEST(Fetcher, a_pass_that_visits_nothing_keeps_the_record) {
  const shard::Layout layout = equal_units(3, 10);
  Fetcher fetcher(layout, arena(20));
  run_pass(fetcher, "train", {0, 1, 2});
  run_pass(fetcher, "train", {});
  EXPECT_EQ(hits_and_misses(fetcher, "train", {0, 1, 2}).second, 0U);
}

TEST(Fetcher, forty_units_of_10_stay_within_35) {
  const shard::Layout layout = equal_units(40, 10);
  Fetcher fetcher(layout, arena(35));
  Units order;
  for (std::size_t u = 0; u < 40; ++u) order.push_back(u);
  run_pass(fetcher, "train", order);
  EXPECT_EQ(hits_and_misses(fetcher, "train", order).second, 0U);
  EXPECT_EQ(fetcher.counters().peak_bytes, 30U);
}

TEST(Fetcher, a_unit_of_30_among_units_of_1_gets_its_room) {
  std::vector<test::UnitSpec> units(41, {1});
  units[20].gathered_bytes = 30;
  const shard::Layout layout = small_layout(units);
  Units order;
  for (std::size_t u = 0; u < 41; ++u) order.push_back(u);
  for (const std::size_t bytes : {30U, 31U, 35U}) {
    Fetcher fetcher(layout, arena(bytes));
    for (int pass = 0; pass < 3; ++pass) run_pass(fetcher, "train", order);
    EXPECT_LE(fetcher.counters().peak_bytes, bytes);
  }
}

TEST(Fetcher, an_arena_that_could_never_hold_a_unit_is_refused_with_the_number_needed) {
  const shard::Layout layout = small_layout({{10}, {30}, {10}}, {{"e", 0}, {"w", 1}, {"h", 2, 1, "e"}});
  EXPECT_EQ(least_arena_bytes(layout, 1), 30U);
  EXPECT_EQ(least_arena_bytes(layout, 64), 74U);  // unit 2 with the owner of its tie
  try {
    const Fetcher fetcher(layout, arena(29));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ZC_BUDGET);
    EXPECT_NE(std::string(error.what()).find("unit 'u1'"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("need 30 bytes"), std::string::npos) << error.what();
  }
  EXPECT_THROW(Fetcher(layout, {.arena_bytes = 64, .max_held_bytes = 19}), Error);
}

TEST(Fetcher, holding_more_than_the_limit_is_refused_at_once_and_pins_nothing) {
  const shard::Layout layout = equal_units(3, 10);
  Fetcher fetcher(layout, {.arena_bytes = 100, .max_held_bytes = 20, .alignment_bytes = 1});
  acquire(fetcher, 0);
  acquire(fetcher, 1);
  acquire(fetcher, 1);  // held already: costs nothing
  const Plan plan = fetcher.acquire(2);
  EXPECT_EQ(plan.status, ZC_BUDGET);
  EXPECT_NE(plan.text.find("20 bytes are held"), std::string::npos) << plan.text;
  EXPECT_EQ(fetcher.held_bytes(), 20U);
  EXPECT_EQ(fetcher.held_units(), 2U);
  EXPECT_EQ(fetcher.release(1).status, ZC_OK);
  EXPECT_EQ(fetcher.acquire(2).status, ZC_BUDGET);
  EXPECT_EQ(fetcher.release(1).status, ZC_OK);
  EXPECT_EQ(acquire(fetcher, 2).need, Need::fetch);
}

TEST(Fetcher, room_is_refused_only_when_held_units_lie_in_the_way) {
  const shard::Layout layout = small_layout({{10}, {10}, {10}, {15}});
  Fetcher fetcher(layout, arena(35));
  for (const std::size_t unit : {0U, 1U, 2U}) acquire(fetcher, unit);
  ASSERT_EQ(fetcher.release(1).status, ZC_OK);
  const Plan plan = fetcher.acquire(3);
  EXPECT_EQ(plan.status, ZC_BUDGET);
  EXPECT_NE(plan.text.find("15 bytes in one piece"), std::string::npos) << plan.text;
  EXPECT_TRUE(fetcher.resident(1));  // nothing was dropped in vain
  ASSERT_EQ(fetcher.release(2).status, ZC_OK);
  EXPECT_EQ(list(acquire(fetcher, 3).dropped), Units{2});
}

TEST(Fetcher, the_unit_needed_latest_is_dropped_first) {
  const shard::Layout layout = equal_units(5, 10);
  Fetcher fetcher(layout, {.arena_bytes = 30, .alignment_bytes = 1, .prefetch = -1});
  const Units order = {0, 1, 2, 3, 2, 1, 0};
  run_pass(fetcher, "train", order);
  fetcher.begin_pass("train");
  for (const std::size_t unit : {0U, 1U, 2U}) {
    acquire(fetcher, unit);
    fetcher.visit(unit);
    ASSERT_EQ(fetcher.release(unit).status, ZC_OK);
  }
  const Plan plan = acquire(fetcher, 3);
  EXPECT_EQ(list(plan.dropped), Units{0});
  EXPECT_EQ(list(plan.dropped_offset_bytes), Units{plan.offset_bytes});
}

TEST(Fetcher, without_a_record_the_least_recently_used_is_dropped_first) {
  const shard::Layout layout = equal_units(4, 10);
  Fetcher fetcher(layout, arena(30));
  fetcher.begin_pass("train");
  for (const std::size_t unit : {0U, 1U, 2U, 0U}) {
    acquire(fetcher, unit);
    ASSERT_EQ(fetcher.release(unit).status, ZC_OK);
  }
  EXPECT_EQ(list(acquire(fetcher, 3).dropped), Units{1});
  EXPECT_EQ(fetcher.counters().evictions, 1U);
}

TEST(Fetcher, fetching_ahead_drops_nothing_that_is_held_or_needed_sooner) {
  const shard::Layout layout = equal_units(4, 10);
  Fetcher fetcher(layout, arena(20));
  run_pass(fetcher, "train", {0, 1, 0, 2, 3});
  ASSERT_EQ(fetcher.drop_all().status, ZC_OK);
  fetcher.begin_pass("train");
  acquire(fetcher, 0);
  fetcher.visit(0);
  EXPECT_EQ(fetcher.prefetch()->unit, 1U);
  fetcher.landed(1, true);
  EXPECT_FALSE(fetcher.prefetch().has_value());  // 0 is held, 1 comes before 2
  ASSERT_EQ(fetcher.release(0).status, ZC_OK);
  EXPECT_FALSE(fetcher.prefetch().has_value());  // and 0 comes again before 2
  acquire(fetcher, 1);
  fetcher.visit(1);
  ASSERT_EQ(fetcher.release(1).status, ZC_OK);
  const std::optional<Plan> plan = fetcher.prefetch();
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->unit, 2U);
  EXPECT_EQ(list(plan->dropped), Units{1});
}

TEST(Fetcher, never_more_than_the_given_number_of_units_are_ahead) {
  const shard::Layout layout = equal_units(6, 10);
  Fetcher fetcher(layout, {.arena_bytes = 60, .alignment_bytes = 1, .prefetch = 2});
  run_pass(fetcher, "train", {0, 1, 2, 3, 4, 5});
  ASSERT_EQ(fetcher.drop_all().status, ZC_OK);
  fetcher.begin_pass("train");
  EXPECT_EQ(fetcher.prefetch()->unit, 0U);
  EXPECT_EQ(fetcher.prefetch()->unit, 1U);
  EXPECT_FALSE(fetcher.prefetch().has_value());
  fetcher.landed(0, true);
  fetcher.landed(1, true);
  EXPECT_FALSE(fetcher.prefetch().has_value());
  acquire(fetcher, 0);
  fetcher.visit(0);
  EXPECT_EQ(fetcher.prefetch()->unit, 2U);
  EXPECT_FALSE(fetcher.prefetch().has_value());
}

TEST(Fetcher, prefetch_can_be_switched_off_and_still_be_asked_for_by_hand) {
  const shard::Layout layout = equal_units(3, 10);
  Fetcher fetcher(layout, {.arena_bytes = 30, .alignment_bytes = 1, .prefetch = -1});
  run_pass(fetcher, "train", {0, 1, 2});
  EXPECT_EQ(fetcher.counters().prefetches, 0U);
  ASSERT_EQ(fetcher.drop_all().status, ZC_OK);
  fetcher.begin_pass("train");
  EXPECT_FALSE(fetcher.prefetch().has_value());
  EXPECT_EQ(fetcher.prefetch(2)->unit, 2U);
  EXPECT_FALSE(fetcher.prefetch(2).has_value());
  EXPECT_FALSE(fetcher.prefetch(3).has_value());
}

TEST(Fetcher, what_was_fetched_by_hand_gives_way_to_an_acquire_only) {
  const shard::Layout layout = equal_units(5, 10);
  Fetcher fetcher(layout, arena(20));
  run_pass(fetcher, "train", {0, 1, 2, 3});
  fetcher.begin_pass("train");
  fetch_ahead(fetcher);                           // 0 and 1
  EXPECT_FALSE(fetcher.prefetch(4).has_value());  // both are still ahead
  acquire(fetcher, 0);
  fetcher.visit(0);
  ASSERT_EQ(fetcher.release(0).status, ZC_OK);
  const std::optional<Plan> plan = fetcher.prefetch(4);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(list(plan->dropped), Units{0});
  fetcher.landed(4, true);
  acquire(fetcher, 1);
  fetcher.visit(1);
  ASSERT_EQ(fetcher.release(1).status, ZC_OK);
  fetch_ahead(fetcher);
  EXPECT_TRUE(fetcher.resident(4));
  acquire(fetcher, 2);
  acquire(fetcher, 3);
  EXPECT_FALSE(fetcher.resident(4));
  EXPECT_EQ(fetcher.counters().wasted, 1U);
}

TEST(Fetcher, two_threads_share_one_fetch) {
  const shard::Layout layout = equal_units(2, 10);
  Fetcher fetcher(layout, arena(20));
  EXPECT_EQ(fetcher.acquire(0).need, Need::fetch);
  EXPECT_EQ(fetcher.acquire(0).need, Need::busy);
  EXPECT_TRUE(fetcher.any_fetching());
  EXPECT_FALSE(fetcher.resident(0));
  fetcher.landed(0, true);
  EXPECT_TRUE(fetcher.resident(0));
  EXPECT_EQ(fetcher.release(0).status, ZC_OK);
  EXPECT_EQ(fetcher.release(0).status, ZC_OK);
  EXPECT_EQ(fetcher.release(0).status, ZC_STATE);
  EXPECT_EQ(fetcher.counters().late_hits, 1U);
  EXPECT_EQ(fetcher.counters().misses, 1U);
}

TEST(Fetcher, room_taken_by_a_fetch_under_way_is_a_wait_and_not_a_refusal) {
  const shard::Layout layout = equal_units(3, 10);
  Fetcher fetcher(layout, arena(20));
  fetcher.begin_pass("train");
  acquire(fetcher, 0);
  EXPECT_EQ(fetcher.prefetch(1)->unit, 1U);
  const Plan plan = fetcher.acquire(2);
  EXPECT_EQ(plan.status, ZC_OK);
  EXPECT_EQ(plan.need, Need::retry);
  EXPECT_EQ(fetcher.held_units(), 1U);
  fetcher.landed(1, true);
  EXPECT_EQ(list(acquire(fetcher, 2).dropped), Units{1});
}

TEST(Fetcher, a_fetch_that_failed_leaves_no_trace) {
  const shard::Layout layout = equal_units(2, 10);
  Fetcher fetcher(layout, arena(10));
  EXPECT_EQ(fetcher.acquire(0).need, Need::fetch);
  EXPECT_EQ(fetcher.acquire(0).need, Need::busy);
  fetcher.landed(0, false);
  EXPECT_FALSE(fetcher.resident(0));
  EXPECT_EQ(fetcher.held_bytes(), 0U);
  EXPECT_EQ(fetcher.held_units(), 0U);
  EXPECT_EQ(fetcher.resident_bytes(), 0U);
  EXPECT_EQ(acquire(fetcher, 1).offset_bytes, 0U);
  ASSERT_EQ(fetcher.release(1).status, ZC_OK);
  acquire(fetcher, 0);
  EXPECT_EQ(fetcher.release(0).status, ZC_OK);
  EXPECT_EQ(fetcher.release(0).status, ZC_STATE);  // the failed pins are gone
}

TEST(Fetcher, what_was_fetched_by_hand_and_not_used_gives_way_in_the_next_pass) {
  const shard::Layout layout = equal_units(3, 10);
  Fetcher fetcher(layout, arena(10));
  run_pass(fetcher, "train", {0, 1});
  ASSERT_EQ(fetcher.drop_all().status, ZC_OK);
  fetcher.begin_pass("train");
  ASSERT_TRUE(fetcher.prefetch(2).has_value());
  fetcher.landed(2, true);
  EXPECT_FALSE(fetcher.prefetch().has_value());
  fetcher.visit(0);
  fetcher.end_pass();
  fetcher.begin_pass("train");
  EXPECT_EQ(fetcher.prefetch()->unit, 0U);
}

TEST(Fetcher, persistent_units_lie_in_memory_of_their_own_until_all_is_dropped) {
  const shard::Layout layout = small_layout({{10, true}, {20}, {7, true}, {20}});
  Fetcher fetcher(layout, {.arena_bytes = 20, .alignment_bytes = 8, .drop_released = true});
  EXPECT_EQ(fetcher.offset_bytes(2), 16U);
  run_pass(fetcher, "train", {0, 1, 2, 3});
  EXPECT_TRUE(fetcher.resident(0) && fetcher.resident(2));
  EXPECT_FALSE(fetcher.resident(1) || fetcher.resident(3));
  acquire(fetcher, 0);
  acquire(fetcher, 1);
  EXPECT_EQ(fetcher.held_bytes(), 20U);
  EXPECT_EQ(fetcher.resident_bytes(), 37U);
  EXPECT_EQ(fetcher.drop_all().status, ZC_STATE);
  ASSERT_EQ(fetcher.release(0).status, ZC_OK);
  EXPECT_EQ(list(fetcher.release(1).dropped), Units{1});
  EXPECT_EQ(list(fetcher.drop_all().dropped), (Units{0, 2}));
  EXPECT_EQ(fetcher.resident_bytes(), 0U);
}

TEST(Fetcher, a_unit_without_bytes_is_always_there) {
  const shard::Layout layout = small_layout({{0}, {10}});
  Fetcher fetcher(layout, {.arena_bytes = 10, .alignment_bytes = 1, .drop_released = true});
  acquire(fetcher, 1);
  EXPECT_EQ(fetcher.acquire(0).need, Need::resident);
  EXPECT_TRUE(fetcher.release(0).dropped.empty());
  EXPECT_TRUE(fetcher.resident(0));
  ASSERT_EQ(fetcher.release(1).status, ZC_OK);
  EXPECT_TRUE(fetcher.drop_all().dropped.empty());
  EXPECT_TRUE(fetcher.resident(0));
}

TEST(Fetcher, drop_all_waits_for_fetches_under_way_and_counts_what_was_fetched_in_vain) {
  const shard::Layout layout = equal_units(2, 10);
  Fetcher fetcher(layout, arena(20));
  fetcher.begin_pass("train");
  ASSERT_TRUE(fetcher.prefetch(1).has_value());
  fetcher.end_pass();
  EXPECT_EQ(fetcher.drop_all().status, ZC_STATE);
  fetcher.landed(1, true);
  EXPECT_EQ(list(fetcher.drop_all().dropped), Units{1});
  EXPECT_EQ(fetcher.counters().wasted, 1U);
  EXPECT_EQ(fetcher.counters().evictions, 0U);
}

TEST(Fetcher, the_owner_of_a_tie_in_the_middle_of_the_arena_can_be_moved_out_of_the_way) {
  // Unit 2 needs the 5 bytes of unit 0 beside its own 30; unit 0 lies at 10.
  const shard::Layout layout = small_layout({{5}, {10}, {30}}, {{"e", 0}, {"w", 1}, {"h", 2, 1, "e"}});
  Fetcher fetcher(layout, arena(35));
  acquire(fetcher, 1);
  EXPECT_EQ(acquire(fetcher, 0).offset_bytes, 10U);
  ASSERT_EQ(fetcher.release(1).status, ZC_OK);
  EXPECT_EQ(fetcher.acquire(2).status, ZC_BUDGET);
  ASSERT_EQ(fetcher.release(0).status, ZC_OK);
  fetcher.drop_unheld();
  acquire(fetcher, 2);
  acquire(fetcher, 0);
  EXPECT_EQ(fetcher.held_bytes(), 35U);
}

TEST(Fetcher, the_owner_of_a_tie_is_fetched_ahead_for_the_unit_that_needs_it) {
  const shard::Layout layout = small_layout({{5}, {10}, {0}}, {{"e", 0}, {"w", 1}, {"h", 2, 1, "e"}});
  Fetcher fetcher(layout, arena(10));
  fetcher.begin_pass("train");
  fetcher.visit(1);
  fetcher.visit(2);
  fetcher.end_pass();
  fetcher.begin_pass("train");
  EXPECT_EQ(fetcher.prefetch()->unit, 1U);
  fetcher.landed(1, true);
  fetcher.visit(1);
  EXPECT_EQ(fetcher.prefetch()->unit, 0U);
}

TEST(Fetcher, units_outside_the_layout_and_releases_too_many_are_errors) {
  const shard::Layout layout = equal_units(1, 10);
  Fetcher fetcher(layout, arena(10));
  EXPECT_EQ(fetcher.acquire(1).status, ZC_ARGUMENT);
  EXPECT_EQ(fetcher.release(1).status, ZC_ARGUMENT);
  EXPECT_EQ(fetcher.release(0).status, ZC_STATE);
}

TEST(TraceTable, the_name_unused_for_longest_gives_way) {
  TraceTable table(2, 10);
  for (const std::string_view name : {"a", "b", "a", "c"}) {
    Trace& trace = table.find(name);
    trace.begin();
    trace.visit(1);
    trace.end();
  }
  EXPECT_EQ(table.find("a").order().size(), 1U);
  EXPECT_EQ(table.find("c").order().size(), 1U);
  EXPECT_TRUE(table.find("b").order().empty());
}

TEST(Trace, a_pass_longer_than_the_record_is_remembered_in_part) {
  Trace trace;
  trace.reserve(3);
  trace.begin();
  for (std::size_t unit = 0; unit < 9; ++unit) trace.visit(unit);
  trace.end();
  EXPECT_EQ(trace.order().size(), 3U);
}

TEST(FindRoom, takes_free_room_at_the_lowest_offset_before_it_drops_anything) {
  const std::vector<ArenaBlock> blocks = {{4, 4, 100, 0}, {12, 4, 100, 1}};
  EXPECT_EQ(find_room(blocks, 24, 4, 4, 0), 0U);
  EXPECT_EQ(find_room(blocks, 24, 3, 4, 0), 0U);
  EXPECT_EQ(find_room(blocks, 24, 8, 4, 0), 16U);
}

TEST(FindRoom, drops_neighbours_whose_soonest_use_is_latest_and_none_at_or_below_the_floor) {
  const std::vector<ArenaBlock> blocks = {{0, 4, 9, 0}, {4, 4, 2, 1}, {8, 4, 7, 2}, {12, 4, 5, 3}};
  EXPECT_EQ(find_room(blocks, 16, 4, 4, 0), 0U);
  EXPECT_EQ(find_room(blocks, 16, 8, 4, 0), 8U);
  EXPECT_EQ(find_room(blocks, 16, 8, 4, 5), std::nullopt);
  EXPECT_EQ(find_room(blocks, 16, 4, 4, 7), 0U);
  EXPECT_EQ(find_room(blocks, 16, 17, 4, 0), std::nullopt);
}

}  // namespace
}  // namespace zerocomm::zero
