// Layouts that went wrong for users of other libraries.
#include "unit/shard/layout_builder.hpp"

#include "base/math.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace zerocomm::shard {
namespace {

using Indices = std::vector<std::size_t>;

std::size_t sum(const Indices& counts) { return std::accumulate(counts.begin(), counts.end(), std::size_t{0}); }

TEST(LayoutCases, tail_padding_has_one_definition_and_real_ranges_add_up_for_every_rank_count) {
  for (std::int32_t ranks = 1; ranks <= 70; ++ranks) {
    LayoutBuilder builder = one_unit({57}, ranks);
    builder.alignment_bytes = 4;
    const Layout layout = builder.make();
    const auto n = static_cast<std::size_t>(ranks);
    EXPECT_EQ(layout.buffers[0].shard_count, ceil_div(57, n));
    EXPECT_EQ(layout.blocks[0].count, n * ceil_div(57, n));
    EXPECT_EQ(sum(owned_per_rank(layout)), 57u) << ranks << " ranks";
  }
  LayoutBuilder two = one_unit({57}, 2);
  two.alignment_bytes = 4;
  EXPECT_EQ(owned_per_rank(two.make()), (Indices{29, 28}));
}

TEST(LayoutCases, buckets_need_not_divide_by_the_rank_count_and_do_not_depend_on_it) {
  LayoutBuilder builder = one_unit({3, 4, 5}, 1);
  builder.bucket_bytes = 4 * sizeof(float);
  for (const std::int32_t ranks : {1, 2, 3, 5, 7}) {
    builder.ranks = ranks;
    const Layout layout = builder.make();
    ASSERT_EQ(layout.buckets.size(), 3u);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(layout.buckets[k].uses, (Indices{2 - k}));
      EXPECT_EQ(layout.buckets[k].count, 5 - k);
      EXPECT_EQ(layout.buckets[k].padded_count, 16u);
      EXPECT_EQ(layout.uses[k].bucket_offset, 0u);
    }
    EXPECT_EQ(layout.uses[1].block_offset, 16u);
    EXPECT_EQ(layout.uses[2].block_offset, 32u);
  }
}

TEST(LayoutCases, one_huge_tensor_is_spread_over_all_ranks) {
  const Layout layout = one_unit({1, 7, 38'597'376}, 3, ZC_DTYPE_BF16).make();
  const Indices owned = owned_per_rank(layout);
  const auto [least, most] = std::minmax_element(owned.begin(), owned.end());
  EXPECT_EQ(sum(owned), 38'597'384u);
  EXPECT_LE(*most - *least, 3u * 32u);
}

TEST(LayoutCases, the_worked_example_comes_out_to_the_element) {
  struct Row {
    std::size_t alignment_bytes, second, third, shard_count, padding;
  };
  for (const Row& row :
       {Row{2, 1, 8, 12'865'795, 1}, Row{16, 8, 16, 12'865'800, 16}, Row{64, 32, 64, 12'865'824, 88}}) {
    LayoutBuilder builder = one_unit({1, 7, 38'597'376}, 3, ZC_DTYPE_BF16);
    builder.alignment_bytes = row.alignment_bytes;
    const Layout layout = builder.make();
    EXPECT_EQ(layout.uses[1].block_offset, row.second);
    EXPECT_EQ(layout.uses[2].block_offset, row.third);
    EXPECT_EQ(layout.buffers[0].shard_count, row.shard_count);
    EXPECT_EQ(3 * layout.buffers[0].shard_count - layout.buffers[0].count, row.padding);
  }
}

TEST(LayoutCases, a_tensor_after_a_one_element_tensor_starts_aligned_on_every_rank) {
  for (const std::size_t alignment_bytes : {16u, 128u, 256u}) {
    LayoutBuilder builder = one_unit({1, 64 * 64}, 2, ZC_DTYPE_BF16);
    builder.alignment_bytes = alignment_bytes;
    const Layout layout = builder.make();
    EXPECT_EQ(layout.uses[1].block_offset * 2 % alignment_bytes, 0u);
    EXPECT_EQ(layout.uses[1].block_offset, alignment_bytes / 2);
    EXPECT_EQ(layout.uses[0].bucket_offset * 2 % alignment_bytes, 0u);
    EXPECT_EQ(layout.blocks[0].shard_count * 2 % alignment_bytes, 0u);
    // The gap is padding: no piece covers it.
    EXPECT_EQ(sum(owned_per_rank(layout)), 4097u);
    EXPECT_EQ(layout.pieces[0][0][0].count, 1u);
    EXPECT_EQ(layout.pieces[0][0][1].shard_offset, alignment_bytes / 2);
  }
}

TEST(LayoutCases, an_empty_tensor_has_a_unit_and_a_place_but_no_room_and_no_bucket) {
  const Layout alone = one_unit({0}, 2).make();
  ASSERT_EQ(alone.units.size(), 1u);
  EXPECT_EQ(alone.units[0].uses, (Indices{0}));
  EXPECT_TRUE(alone.units[0].needs.empty());
  EXPECT_EQ(alone.units[0].gathered_bytes, 0u);
  EXPECT_EQ(alone.uses[0].bucket, kNoIndex);
  EXPECT_EQ(alone.buffers[0].shard_count, 0u);
  EXPECT_TRUE(alone.buckets.empty());

  const Layout with_other = one_unit({0, 5}, 2).make();
  EXPECT_EQ(with_other.units[0].uses, (Indices{0, 1}));
  EXPECT_EQ(with_other.uses[1].block_offset, 0u);
  EXPECT_EQ(with_other.uses[0].bucket, kNoIndex);
  EXPECT_EQ(with_other.buckets[0].uses, (Indices{1}));
  EXPECT_EQ(with_other.tensors[0].count, 0u);
  EXPECT_EQ(owned_per_rank(with_other), (Indices{5, 0}));
}

TEST(LayoutCases, an_empty_tensor_at_the_end_lies_inside_its_block) {
  const Layout layout = one_unit({5, 0}, 1).make();
  EXPECT_EQ(layout.uses[1].block, layout.uses[0].block);
  EXPECT_LE(layout.uses[1].block_offset, layout.blocks[0].count);
}

TEST(LayoutCases, counts_beyond_31_and_53_bits_are_exact) {
  for (const std::size_t count : {(std::size_t{1} << 31) + 5, (std::size_t{1} << 53) + 1}) {
    LayoutBuilder builder = one_unit({count, 3}, 8);
    builder.alignment_bytes = 4;
    const Layout layout = builder.make();
    EXPECT_EQ(layout.uses[1].block_offset, count);
    EXPECT_EQ(layout.buffers[0].shard_count, count / 8 + 1);
    const Indices owned = owned_per_rank(layout);
    EXPECT_EQ(sum(owned), count + 3);
    EXPECT_EQ(owned[0], count / 8 + 1);
    const zc_piece& last = layout.pieces[6][0].back();
    EXPECT_EQ(last.tensor_offset, 6 * (count / 8 + 1));
    EXPECT_EQ(layout.buckets.back().uses, (Indices{0}));
  }
}

TEST(LayoutCases, the_fill_of_a_bucket_starts_anew_after_it_is_closed) {
  LayoutBuilder builder = one_unit(Indices(12, 3), 2);
  builder.bucket_bytes = 10 * sizeof(float);
  const Layout layout = builder.make();
  ASSERT_EQ(layout.buckets.size(), 4u);
  for (const Bucket& bucket : layout.buckets) EXPECT_EQ(bucket.count, 9u);
}

TEST(LayoutCases, frozen_tensors_are_gathered_but_have_no_gradient_memory) {
  LayoutBuilder builder;
  builder.ranks = 8;
  builder.tensors = {{"body", "layer", 38'597'376}, {"adapter", "layer", 8}};
  builder.tensors[0].frozen = true;
  const Layout layout = builder.make();
  EXPECT_EQ(layout.units[0].blocks.size(), 2u);
  EXPECT_GE(layout.units[0].gathered_bytes, 4u * (38'597'376 + 8));
  ASSERT_EQ(layout.buckets.size(), 1u);
  EXPECT_EQ(layout.buckets[0].count, 8u);
  EXPECT_FALSE(layout.buffers[0].trainable);
  EXPECT_EQ(layout.buffers[0].gradient_dtype, ZC_DTYPE_NONE);

  builder.tensors[0].frozen = false;
  const Layout flipped = builder.make();
  EXPECT_NE(flipped.hash, layout.hash);
  EXPECT_EQ(flipped.buffers.size(), 1u);
  EXPECT_EQ(layout.buffers.size(), 2u);
}

TEST(LayoutCases, dtypes_of_one_unit_have_buffers_of_their_own_and_one_gathered_memory) {
  LayoutBuilder builder;
  builder.ranks = 2;
  builder.tensors = {{"a", "u", 7, ZC_DTYPE_BF16},
                     {"b", "u", 5, ZC_DTYPE_F32},
                     {"c", "u", 16, ZC_DTYPE_F8E4M3, ZC_DTYPE_NONE, true},
                     {"d", "u", 3, ZC_DTYPE_BF16, ZC_DTYPE_F32}};
  const Layout layout = builder.make();
  ASSERT_EQ(layout.buffers.size(), 4u);
  EXPECT_EQ(layout.buffers[0].gradient_dtype, ZC_DTYPE_BF16);
  EXPECT_EQ(layout.buffers[0].shard_gradient_dtype, ZC_DTYPE_F32);
  EXPECT_EQ(layout.buffers[3].gradient_dtype, ZC_DTYPE_F32);
  // Alignment is in bytes: 32, 16 and 64 elements a shard.
  EXPECT_EQ(layout.buffers[0].shard_count, 32u);
  EXPECT_EQ(layout.buffers[1].shard_count, 16u);
  EXPECT_EQ(layout.buffers[2].shard_count, 64u);
  Indices offsets;
  for (const Block& block : layout.blocks) offsets.push_back(block.unit_offset_bytes);
  EXPECT_EQ(offsets, (Indices{0, 128, 256, 384}));
  EXPECT_EQ(layout.units[0].gathered_bytes, 512u);
  EXPECT_EQ(layout.buckets.size(), 3u);
}

}  // namespace
}  // namespace zerocomm::shard
