// Readiness, grants and slots of one rank's buckets.
#include "zero/reducer.hpp"

#include "unit/zero/small_layout.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace zerocomm::zero {
namespace {

using test::small_layout;

// Uses 0..3, one in each bucket: use 3 - b is in bucket b.
shard::Layout four_buckets() { return small_layout({{1}, {1}}, {{"a", 0}, {"b", 0}, {"c", 1}, {"d", 1}}); }

void report(Reducer& reducer, std::size_t use) {
  std::string text;
  ASSERT_EQ(reducer.ready(use, &text), ZC_OK) << text;
}

void expect_grant(Reducer& reducer, std::size_t bucket, std::uint32_t slot) {
  const std::optional<Grant> grant = reducer.next();
  ASSERT_TRUE(grant.has_value());
  EXPECT_EQ(grant->bucket, bucket);
  EXPECT_EQ(grant->slot, slot);
}

TEST(Reducer, one_slot_is_kept_for_the_lowest_unreduced_bucket) {
  const shard::Layout layout = four_buckets();
  Reducer reducer(layout, {.slots = 2});
  reducer.begin(0);
  for (const std::size_t use : {0U, 1U, 2U}) report(reducer, use);  // buckets 3, 2, 1
  expect_grant(reducer, 1, 0);
  EXPECT_FALSE(reducer.next().has_value());  // the reserved slot waits for bucket 0
  report(reducer, 3);
  expect_grant(reducer, 0, 1);
  EXPECT_FALSE(reducer.next().has_value());
  reducer.observe(0, 1);
  EXPECT_EQ(reducer.lowest_unreduced(), 1U);
  EXPECT_FALSE(reducer.next().has_value());  // bucket 1 is the lowest now, and has a slot: 2 and 3 wait
  reducer.observe(1, 1);
  expect_grant(reducer, 2, 0);
  EXPECT_FALSE(reducer.next().has_value());
  reducer.observe(2, 1);
  expect_grant(reducer, 3, 0);
  EXPECT_FALSE(reducer.finished());
  reducer.observe(3, 1);
  EXPECT_TRUE(reducer.finished());
}

TEST(Reducer, two_ranks_that_complete_buckets_in_opposite_orders_with_2_slots_both_finish) {
  const shard::Layout layout = four_buckets();
  Reducer up(layout, {.slots = 2}), down(layout, {.slots = 2});
  up.begin(0);
  down.begin(0);
  for (std::size_t use = 0; use < 4; ++use) {
    report(up, use);
    report(down, 3 - use);
    while (up.next().has_value()) continue;
    while (down.next().has_value()) continue;
  }
  std::size_t rounds = 0;
  while ((!up.finished() || !down.finished()) && ++rounds < 10) {
    for (std::size_t b = 0; b < 4; ++b) {
      if (!up.granted(b) || !down.granted(b)) continue;
      up.observe(b, 1);
      down.observe(b, 1);
    }
    while (up.next().has_value()) continue;
    while (down.next().has_value()) continue;
  }
  EXPECT_TRUE(up.finished() && down.finished());
  EXPECT_LT(rounds, 10U);
}

TEST(Reducer, the_only_slot_of_one_serves_buckets_in_layout_order) {
  const shard::Layout layout = four_buckets();
  Reducer reducer(layout, {.slots = 1});
  reducer.begin(0);
  for (std::size_t use = 0; use < 4; ++use) report(reducer, use);
  for (std::size_t b = 0; b < 4; ++b) {
    expect_grant(reducer, b, 0);
    EXPECT_FALSE(reducer.next().has_value());
    reducer.observe(b, 1);
  }
  EXPECT_TRUE(reducer.finished());
}

TEST(Reducer, with_own_slots_no_bucket_waits_for_another) {
  const shard::Layout layout = four_buckets();
  Reducer reducer(layout, {.slots = 4, .own_slots = true});
  reducer.begin(0);
  report(reducer, 0);
  expect_grant(reducer, 3, 3);
  report(reducer, 1);
  expect_grant(reducer, 2, 2);
  report(reducer, 3);
  expect_grant(reducer, 0, 0);
}

TEST(Reducer, a_slot_is_freed_by_the_count_of_completed_passes_and_by_nothing_older) {
  const shard::Layout layout = four_buckets();
  Reducer reducer(layout, {.slots = 1});
  reducer.begin(7);
  report(reducer, 3);
  report(reducer, 2);
  expect_grant(reducer, 0, 0);
  reducer.observe(0, 7);  // passes 0 to 6
  EXPECT_FALSE(reducer.reduced(0));
  EXPECT_FALSE(reducer.next().has_value());
  reducer.observe(0, 8);
  reducer.observe(0, 3);  // an old look changes nothing
  EXPECT_TRUE(reducer.reduced(0));
  EXPECT_EQ(reducer.reduced_count(), 1U);
  expect_grant(reducer, 1, 0);
}

TEST(Reducer, a_tied_tensor_completes_its_bucket_only_with_the_parts_of_all_its_units) {
  // Used in the first unit and in the last; its storage, and so its bucket, is the first one's.
  const shard::Layout layout =
      small_layout({{1}, {1}, {0}}, {{"embedding", 0}, {"body", 1}, {"head", 2, 1, "embedding"}});
  Reducer reducer(layout, {.slots = 2});
  EXPECT_EQ(reducer.bucket_count(), 2U);
  reducer.begin(0);
  report(reducer, 2);
  EXPECT_FALSE(reducer.next().has_value());
  EXPECT_EQ(reducer.missing(1), (std::vector<std::size_t>{0}));
  report(reducer, 0);
  expect_grant(reducer, 1, 0);
  EXPECT_EQ(reducer.missing(0), (std::vector<std::size_t>{1}));
}

TEST(Reducer, a_bucket_with_one_absent_part_is_copied_and_one_with_none_left_needs_no_slot) {
  const shard::Layout layout = small_layout({{1}}, {{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}}, 2);
  Reducer reducer(layout, {.slots = 1});
  reducer.begin(0);
  ASSERT_EQ(reducer.absent(0, nullptr), ZC_OK);
  ASSERT_EQ(reducer.absent(1, nullptr), ZC_OK);
  expect_grant(reducer, 1, kNoSlot);
  ASSERT_EQ(reducer.absent(2, nullptr), ZC_OK);
  report(reducer, 3);
  expect_grant(reducer, 0, 0);
  EXPECT_TRUE(reducer.is_absent(2));
  EXPECT_FALSE(reducer.is_absent(3));
  reducer.observe(1, 1);
  EXPECT_FALSE(reducer.finished());
  reducer.observe(0, 1);
  EXPECT_TRUE(reducer.finished());
}

TEST(Reducer, launch_at_end_grants_nothing_before_the_pass_is_closed) {
  const shard::Layout layout = four_buckets();
  Reducer reducer(layout, {.slots = 4, .own_slots = true, .launch_at_end = true});
  reducer.begin(0);
  for (std::size_t use = 0; use < 4; ++use) report(reducer, use);
  EXPECT_FALSE(reducer.next().has_value());
  ASSERT_EQ(reducer.close(nullptr), ZC_OK);
  for (std::uint32_t b = 0; b < 4; ++b) expect_grant(reducer, b, b);
}

TEST(Reducer, a_gradient_that_never_comes_is_an_error_with_its_name_and_the_pass_stays_open) {
  const shard::Layout layout = small_layout({{1}}, {{"p0", 0, 1}, {"p1", 0, 7}, {"p2", 0, 50}}, 3);
  Reducer reducer(layout, {.slots = 2});
  for (std::uint64_t pass = 0; pass < 2; ++pass) {
    reducer.begin(pass);
    report(reducer, 0);
    report(reducer, 2);
    std::string text;
    EXPECT_EQ(reducer.close(&text), ZC_ARGUMENT);
    EXPECT_NE(text.find("'p1'"), std::string::npos) << text;
    EXPECT_EQ(text.find("'p0'"), std::string::npos) << text;
    EXPECT_FALSE(reducer.next().has_value());
    report(reducer, 1);
    EXPECT_EQ(reducer.close(&text), ZC_OK);
    EXPECT_EQ(reducer.close(&text), ZC_OK);
    expect_grant(reducer, 0, 0);
    reducer.observe(0, pass + 1);
    EXPECT_TRUE(reducer.finished());
  }
}

TEST(Reducer, a_gradient_that_never_comes_is_zeros_where_the_policy_says_so) {
  // Rank 0 has a only, rank 1 has b only: both announce both buckets, whatever arrived.
  const shard::Layout layout = small_layout({{1}}, {{"a", 0, 5}, {"b", 0, 5}});
  for (const std::size_t present : {0U, 1U}) {
    Reducer reducer(layout, {.slots = 2, .absent_is_zero = true});
    reducer.begin(0);
    report(reducer, present);
    expect_grant(reducer, 1 - present, 0);
    ASSERT_EQ(reducer.close(nullptr), ZC_OK);
    expect_grant(reducer, present, kNoSlot);
    EXPECT_TRUE(reducer.is_absent(1 - present));
  }
}

TEST(Reducer, an_error_lists_a_few_tensors_and_counts_the_rest) {
  std::vector<test::UseSpec> uses;
  for (int i = 0; i < 12; ++i) uses.push_back({"t" + std::to_string(i), 0});
  const shard::Layout layout = small_layout({{1}}, uses);
  Reducer reducer(layout, {});
  reducer.begin(3);
  std::string text;
  EXPECT_EQ(reducer.close(&text), ZC_ARGUMENT);
  EXPECT_NE(text.find("pass 3"), std::string::npos) << text;
  EXPECT_NE(text.find("'t4' (use 4) and 7 more"), std::string::npos) << text;
}

TEST(Reducer, misuse_names_the_tensor_and_changes_nothing) {
  const shard::Layout layout = small_layout({{1}}, {{"weight", 0}, {"table", 0, 3, {}, true}, {"nothing", 0, 0}});
  Reducer reducer(layout, {});
  std::string text;
  EXPECT_EQ(reducer.ready(0, &text), ZC_STATE);
  EXPECT_NE(text.find("'weight'"), std::string::npos) << text;
  EXPECT_EQ(reducer.close(&text), ZC_STATE);
  reducer.begin(0);
  EXPECT_EQ(reducer.ready(1, &text), ZC_ARGUMENT);
  EXPECT_NE(text.find("'table' (use 1), which is frozen"), std::string::npos) << text;
  EXPECT_EQ(reducer.ready(3, &text), ZC_ARGUMENT);
  EXPECT_EQ(reducer.ready(2, &text), ZC_OK);  // no elements: accepted, as often as it comes
  EXPECT_EQ(reducer.ready(2, &text), ZC_OK);
  EXPECT_EQ(reducer.ready(0, &text), ZC_OK);
  EXPECT_EQ(reducer.absent(0, &text), ZC_STATE);
  EXPECT_NE(text.find("'weight' (use 0) was reported ready before"), std::string::npos) << text;
  EXPECT_FALSE(reducer.is_absent(0));
  EXPECT_EQ(reducer.close(&text), ZC_OK);
  EXPECT_EQ(reducer.ready(0, &text), ZC_STATE);  // the pass is closed
}

TEST(Reducer, a_pass_that_only_collects_is_followed_by_one_under_the_same_number) {
  const shard::Layout layout = four_buckets();
  Reducer reducer(layout, {.slots = 2});
  for (int collected = 0; collected < 2; ++collected) {
    reducer.begin(0);
    for (std::size_t use = 0; use < 4; ++use) report(reducer, use);
    ASSERT_EQ(reducer.close(nullptr), ZC_OK);
  }
  reducer.begin(0);
  EXPECT_EQ(reducer.missing(0), (std::vector<std::size_t>{3}));
  EXPECT_FALSE(reducer.granted(0));
  EXPECT_FALSE(reducer.finished());
}

TEST(Reducer, a_layout_without_gradients_is_finished_at_once) {
  const shard::Layout layout = small_layout({{1}}, {{"table", 0, 3, {}, true}});
  Reducer reducer(layout, {});
  reducer.begin(0);
  ASSERT_EQ(reducer.close(nullptr), ZC_OK);
  EXPECT_TRUE(reducer.finished());
  EXPECT_EQ(reducer.lowest_unreduced(), 0U);
}

TEST(Reducer, needs_at_least_one_slot) { EXPECT_ANY_THROW(Reducer(four_buckets(), {.slots = 0})); }

}  // namespace
}  // namespace zerocomm::zero
