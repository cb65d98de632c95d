// Where units, blocks, buckets and pieces end up.
#include "unit/shard/layout_builder.hpp"

#include <gtest/gtest.h>

namespace zerocomm::shard {
namespace {

using Indices = std::vector<std::size_t>;

TEST(Layout, units_stand_in_order_of_first_appearance_even_if_they_come_back) {
  LayoutBuilder builder;
  builder.tensors = {{"a", "outer", 4}, {"b", "inner", 4}, {"c", "outer", 4}};
  const Layout layout = builder.make();
  ASSERT_EQ(layout.units.size(), 2u);
  EXPECT_EQ(layout.units[0].name, "outer");
  EXPECT_EQ(layout.units[0].uses, (Indices{0, 2}));
  EXPECT_EQ(layout.units[1].uses, (Indices{1}));
  EXPECT_EQ(layout.uses[2].position, 1u);
}

TEST(Layout, block_offsets_are_aligned_and_shards_of_all_units_lie_end_to_end) {
  LayoutBuilder builder;
  builder.ranks = 3;
  builder.tensors = {{"a", "u", 5}, {"b", "u", 17}, {"c", "v", 100}};
  const Layout layout = builder.make();
  EXPECT_EQ(layout.uses[0].block_offset, 0u);
  EXPECT_EQ(layout.uses[1].block_offset, 16u);
  ASSERT_EQ(layout.blocks.size(), 2u);
  EXPECT_EQ(layout.blocks[0].shard_count, 16u);  // 33 elements over 3 ranks, by 16
  EXPECT_EQ(layout.blocks[0].count, 48u);
  EXPECT_EQ(layout.blocks[1].shard_count, 48u);  // 100 over 3 is 34
  EXPECT_EQ(layout.blocks[1].shard_offset, 16u);
  EXPECT_EQ(layout.buffers[0].shard_count, 64u);
  EXPECT_EQ(layout.buffers[0].count, 122u);
  EXPECT_EQ(layout.units[0].gathered_bytes, 192u);
}

TEST(Layout, narrow_reduced_gradients_align_shards_too) {
  LayoutBuilder builder = one_unit({100}, 4);
  builder.shard_gradient_dtype = ZC_DTYPE_BF16;
  EXPECT_EQ(builder.make().blocks[0].shard_count % 32, 0u);
}

TEST(Layout, groups_never_share_a_buffer) {
  LayoutBuilder builder = one_unit({4, 4}, 2);
  builder.tensors[1].group = 1;
  const Layout layout = builder.make();
  ASSERT_EQ(layout.buffers.size(), 2u);
  EXPECT_EQ(layout.buffers[1].group, 1);
  EXPECT_EQ(layout.buckets.size(), 2u);
}

TEST(Layout, pieces_of_a_tensor_name_the_range_that_each_rank_owns) {
  const Layout layout = one_unit({5, 40}, 3).make();  // block 0..5, 16..56: shards of 32
  const auto& first = layout.pieces[0][0];
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].tensor, 0u);
  EXPECT_EQ(first[0].count, 5u);
  EXPECT_EQ(first[1].tensor, 1u);
  EXPECT_EQ(first[1].shard_offset, 16u);
  EXPECT_EQ(first[1].count, 16u);
  ASSERT_EQ(layout.pieces[1][0].size(), 1u);
  EXPECT_EQ(layout.pieces[1][0][0].tensor_offset, 16u);
  EXPECT_EQ(layout.pieces[1][0][0].shard_offset, 0u);
  EXPECT_EQ(layout.pieces[1][0][0].count, 24u);
  EXPECT_TRUE(layout.pieces[2][0].empty());
}

TEST(Layout, slices_of_one_tensor_are_cut_with_the_unit_they_belong_to) {
  LayoutBuilder builder;
  builder.ranks = 2;
  builder.tensors = {{"stack", "", 64}};
  builder.uses = {{0, {0, 32}, "h.0"}, {0, {32, 32}, "h.1"}};
  const Layout layout = builder.make();
  ASSERT_EQ(layout.units.size(), 2u);
  EXPECT_EQ(layout.blocks.size(), 2u);
  const auto& pieces = layout.pieces[1][0];
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].tensor_offset, 16u);
  EXPECT_EQ(pieces[1].tensor_offset, 48u);
  EXPECT_EQ(pieces[1].shard_offset, 16u);
}

TEST(Layout, buckets_follow_the_reverse_order_of_use_with_one_open_bucket_per_buffer) {
  LayoutBuilder builder;
  builder.tensors = {{"a", "u", 4}, {"x", "u", 4, ZC_DTYPE_BF16}, {"b", "u", 4}, {"y", "u", 4, ZC_DTYPE_BF16}};
  builder.bucket_bytes = 32;
  const Layout layout = builder.make();
  ASSERT_EQ(layout.buckets.size(), 2u);
  EXPECT_EQ(layout.buckets[0].uses, (Indices{3, 1}));  // its last member is x, which backward meets before a
  EXPECT_EQ(layout.buckets[1].uses, (Indices{2, 0}));
}

TEST(Layout, a_use_larger_than_the_limit_has_a_bucket_of_its_own) {
  LayoutBuilder builder = one_unit({2, 100, 2, 2}, 2);
  builder.bucket_bytes = 16;
  const Layout layout = builder.make();
  ASSERT_EQ(layout.buckets.size(), 3u);
  EXPECT_EQ(layout.buckets[0].uses, (Indices{3, 2}));
  EXPECT_EQ(layout.buckets[1].uses, (Indices{1}));
  EXPECT_EQ(layout.buckets[2].uses, (Indices{0}));
}

TEST(Layout, bucket_slots_are_aligned_in_the_gradient_dtype) {
  LayoutBuilder builder = one_unit({5, 40}, 2, ZC_DTYPE_BF16);
  const Layout layout = builder.make();
  ASSERT_EQ(layout.buckets.size(), 1u);
  EXPECT_EQ(layout.uses[1].bucket_offset, 0u);
  EXPECT_EQ(layout.uses[0].bucket_offset, 64u);
  EXPECT_EQ(layout.buckets[0].count, 45u);
  EXPECT_EQ(layout.buckets[0].padded_count, 96u);
}

TEST(Layout, bucket_runs_say_who_owns_what) {
  const Layout layout = one_unit({40}, 2).make();  // shards of 32
  const std::vector<BucketRun>& runs = layout.buckets[0].runs;
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].owner, 0);
  EXPECT_EQ(runs[0].count, 32u);
  EXPECT_EQ(runs[1].owner, 1);
  EXPECT_EQ(runs[1].bucket_offset, 32u);
  EXPECT_EQ(runs[1].use_offset, 32u);
  EXPECT_EQ(runs[1].shard_offset, 0u);
  EXPECT_EQ(runs[1].count, 8u);
}

TEST(Layout, small_units_are_persistent_in_stage_3_alone) {
  LayoutBuilder builder;
  builder.tensors = {{"a", "small", 16}, {"b", "large", 17}};
  builder.persistent_bytes = 64;
  const Layout layout = builder.make();
  EXPECT_TRUE(layout.units[0].persistent);
  EXPECT_FALSE(layout.units[1].persistent);
  builder.stage = ZC_STAGE_2;
  EXPECT_FALSE(builder.make().units[0].persistent);
  builder.stage = ZC_STAGE_3;
  builder.persistent_bytes = 0;
  EXPECT_FALSE(builder.make().units[0].persistent);
}

TEST(Layout, more_ranks_than_elements_leaves_empty_shards) {
  const Layout layout = one_unit({3}, 9).make();
  EXPECT_EQ(owned_per_rank(layout), (Indices{3, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(layout.buffers[0].shard_count, 16u);
}

TEST(Layout, nothing_at_all_is_a_layout) {
  const Layout layout = LayoutBuilder{}.make();
  EXPECT_TRUE(layout.units.empty());
  EXPECT_TRUE(layout.buckets.empty());
  EXPECT_EQ(layout.pieces.size(), 1u);
}

}  // namespace
}  // namespace zerocomm::shard
