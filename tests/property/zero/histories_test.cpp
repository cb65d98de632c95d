// Random diverging histories under random interleavings, and what happens when one wait is left out.
#include "property/zero/world.hpp"

#include "unit/zero/small_layout.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <string>

namespace zerocomm::test {
namespace {

constexpr std::uint64_t kHistories = 2000;

TEST(Histories, hold_every_promise_under_every_interleaving_tried) { EXPECT_EQ(first_failure({}, 1, kHistories), ""); }

// The same, drawn by rapidcheck, which shrinks what fails: 100 histories, each under 20 interleavings.
RC_GTEST_PROP(Histories, that_are_drawn_hold_every_promise,
              (const std::vector<std::uint64_t>& choices, std::uint32_t seed)) {
  Random random(choices);
  const History history = random_history(random);
  for (std::uint64_t interleaving = 0; interleaving < 20; ++interleaving)
    RC_ASSERT(World(history, {}, seed + interleaving).run() == "");
}

TEST(Histories, come_to_every_corner) {
  Reached all;
  for (std::uint64_t seed = 1; seed <= kHistories; ++seed) {
    Random random(seed);
    World world(random_history(random), {}, seed);
    ASSERT_EQ(world.run(), "");
    const Reached& one = world.reached();
    all.retries += one.retries;
    all.busy += one.busy;
    all.made_room += one.made_room;
    all.refused += one.refused;
    all.evictions += one.evictions;
    all.ahead += one.ahead;
    all.wasted += one.wasted;
    all.reserved_slots += one.reserved_slots;
    all.empty_arrivals += one.empty_arrivals;
    all.late_readers += one.late_readers;
  }
  EXPECT_GT(all.retries, 50U);
  EXPECT_GT(all.busy, 50U);
  EXPECT_GT(all.made_room, 20U);
  EXPECT_GT(all.refused, 50U);
  EXPECT_GT(all.evictions, 1000U);
  EXPECT_GT(all.ahead, 1000U);
  EXPECT_GT(all.wasted, 50U);
  EXPECT_GT(all.reserved_slots, 1000U);
  EXPECT_GT(all.empty_arrivals, 200U);
  EXPECT_GT(all.late_readers, 0U);
}

void expect_found(const Faults& faults, const std::string& what) {
  EXPECT_NE(first_failure(faults, 1, kHistories, what), "") << "no history shows: " << what;
}

TEST(HistoriesControl, an_update_that_does_not_wait_for_readers_is_found) {
  expect_found({.no_done_wait = true}, "a shard is overwritten while it is read");
  expect_found({.no_done_wait = true}, "a copy reads another generation");
  expect_found({.no_done_wait = true}, "a pull reads another generation");
}

TEST(HistoriesControl, a_reader_that_does_not_wait_for_the_owner_is_found) {
  expect_found({.no_published_wait = true}, "a copy reads another generation");
  expect_found({.no_published_wait = true}, "a pull reads another generation");
}

TEST(HistoriesControl, an_update_that_does_not_drain_copies_is_found) {
  expect_found({.no_drain = true}, "a shard is overwritten while it is read");
  expect_found({.done_before_drain = true}, "a shard is overwritten while it is read");
}

TEST(HistoriesControl, a_cache_kept_over_an_update_is_found) { expect_found({.keep_cache = true}, "stale"); }

TEST(HistoriesControl, slots_without_a_reserved_one_deadlock) { expect_found({.no_reserved_slot = true}, "deadlock"); }

TEST(HistoriesControl, a_slot_freed_before_it_was_read_is_found) {
  expect_found({.free_at_arrival = true}, "a slot is reused before its bucket is reduced");
}

TEST(HistoriesControl, an_end_that_waits_for_grants_only_is_found) {
  expect_found({.end_when_granted = true}, "`end` returns before");
}

// The same programs under many interleavings.
void expect_all_good(const History& history) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const std::string failure = World(history, {}, seed).run();
    ASSERT_EQ(failure, "") << "seed " << seed;
  }
}

std::vector<std::size_t> upward(std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

TEST(OrderFree, ranks_visit_units_in_different_orders_and_different_numbers_of_times) {
  const shard::Layout layout = small_layout({{2}, {2}, {2}}, {{"a", 0}, {"b", 1}, {"c", 2}});
  expect_all_good(history_of(layout, {{0, 1, 1, 1, 2}, {0, 1, 2}, {2, 0}}, {{2, 1, 0}, {2, 1, 0}, {2, 1, 0}}));
  expect_all_good(history_of(layout, {{}, {0, 1, 2}, {}}, {{2, 1, 0}, {0, 1, 2}, {1, 0, 2}}));
}

TEST(OrderFree, ranks_complete_buckets_in_opposite_orders_with_2_slots) {
  std::vector<UseSpec> uses;
  for (std::size_t i = 0; i < 8; ++i) uses.push_back({"t" + std::to_string(i), 0});
  const shard::Layout layout = small_layout({{2}}, uses);
  std::vector<std::size_t> up = upward(8), down(up.rbegin(), up.rend());
  for (const std::uint32_t slots : {1U, 2U, 3U}) {
    History history = history_of(layout, {{0}, {0}}, {up, down});
    history.reducer.slots = slots;
    expect_all_good(history);
  }
}

TEST(OrderFree, a_tied_tensor_is_used_in_the_first_unit_and_in_the_last) {
  const shard::Layout layout =
      small_layout({{3}, {2}, {1}}, {{"embedding", 0}, {"body", 1}, {"norm", 2}, {"head", 2, 1, "embedding"}});
  expect_all_good(history_of(layout, {{0, 1, 2, 2, 1, 0}, {2, 0, 1}}, {{3, 2, 1, 0}, {0, 1, 3, 2}}));
}

}  // namespace
}  // namespace zerocomm::test
