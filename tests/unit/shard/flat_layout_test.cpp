// Flat placement: where units, shards and padding end up when a whole buffer is cut once.
#include "unit/shard/layout_builder.hpp"

#include "base/check.hpp"
#include "shard/estimate.hpp"
#include "shard/layout_totals.hpp"
#include "shard/ownership.hpp"
#include "shard/unit_partition.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace zerocomm::shard {
namespace {

using Indices = std::vector<std::size_t>;

// Aligned to 16 elements: u is [0, 33) of its buffer, v [48, 148), w [160, 167). Padded once, to 3 * 64.
LayoutBuilder three_units() {
  LayoutBuilder builder;
  builder.placement = ZC_PLACEMENT_FLAT;
  builder.ranks = 3;
  builder.tensors = {{"a", "u", 5}, {"b", "u", 17}, {"c", "v", 100}, {"d", "w", 7}};
  return builder;
}

TEST(FlatLayout, units_lie_end_to_end_and_the_buffer_is_padded_once) {
  const Layout layout = three_units().make();
  ASSERT_EQ(layout.blocks.size(), 3u);
  EXPECT_EQ(layout.blocks[0].cut_offset, 0u);
  EXPECT_EQ(layout.blocks[1].cut_offset, 48u);
  EXPECT_EQ(layout.blocks[2].cut_offset, 160u);
  EXPECT_EQ(layout.blocks[0].padded_count, 48u);
  EXPECT_EQ(layout.blocks[1].padded_count, 112u);
  EXPECT_EQ(layout.blocks[2].padded_count, 32u);  // up to the end of the last shard
  EXPECT_EQ(layout.uses[1].block_offset, 16u);
  EXPECT_EQ(layout.buffers[0].shard_count, 64u);  // 176 elements over 3 ranks are 59
  EXPECT_EQ(layout_totals(layout).padded_bytes, 3u * 64 * 4);
}

TEST(FlatLayout, a_gathered_unit_has_no_padding_at_its_end) {
  const Layout layout = three_units().make();
  EXPECT_EQ(layout.units[0].gathered_bytes, 33u * 4);
  EXPECT_EQ(layout.units[1].gathered_bytes, 400u);
  EXPECT_EQ(layout_totals(layout).largest_unit_bytes, 400u);
  LayoutBuilder mixed = three_units();
  mixed.tensors.push_back({"e", "u", 3, ZC_DTYPE_BF16});
  EXPECT_EQ(mixed.make().units[0].gathered_bytes, 192u + 3 * 2);  // the second block begins aligned
}

// What partition writes into the shards is where the view of the shards laid end to end says.
TEST(FlatLayout, a_view_finds_what_was_cut) {
  LayoutBuilder builder = three_units();
  builder.tensors.push_back({"h", "v", 9, ZC_DTYPE_BF16});
  builder.tensors.push_back({"t", "w", 17, ZC_DTYPE_F32, ZC_DTYPE_NONE, false, 0, "b"});
  builder.tensors.push_back({"void", "w", 0});
  const Layout layout = builder.make();
  std::vector<std::vector<std::byte>> whole;
  for (const Buffer& buffer : layout.buffers)
    whole.emplace_back(3 * buffer.shard_count * zc_dtype_bytes(buffer.dtype), std::byte{0xee});
  std::vector<std::vector<std::byte>> values;
  for (std::size_t t = 0; t < builder.tensors.size(); ++t) {
    values.emplace_back(builder.tensors[t].count * zc_dtype_bytes(builder.tensors[t].dtype));
    for (std::size_t i = 0; i < values[t].size(); ++i) values[t][i] = static_cast<std::byte>(31 * t + i);
  }
  for (std::size_t unit = 0; unit < layout.units.size(); ++unit) {
    std::vector<const void*> full;
    for (const std::size_t use : layout.units[unit].uses) full.push_back(values[layout.uses[use].tensor].data());
    for (std::int32_t rank = 0; rank < 3; ++rank) {
      std::vector<void*> shards;
      for (std::size_t b = 0; b < whole.size(); ++b)
        shards.push_back(whole[b].data() + static_cast<std::size_t>(rank) * (whole[b].size() / 3));
      partition_unit(layout, rank, unit, full.data(), shards.data());
    }
  }
  const std::vector<const void*> buffers{whole[0].data(), whole[1].data()};
  for (std::size_t unit = 0; unit < layout.units.size(); ++unit) {
    const std::vector<std::size_t>& uses = layout.units[unit].uses;
    std::vector<const void*> tensors(uses.size());
    view_unit(layout, unit, buffers.data(), tensors.data(), tensors.size());
    for (std::size_t position = 0; position < uses.size(); ++position) {
      const Use& use = layout.uses[uses[position]];
      const std::vector<std::byte>& wanted = values[layout.uses[use.stored].tensor];
      ASSERT_EQ(tensors[position] == nullptr, wanted.empty()) << use.tensor;
      if (wanted.empty()) continue;
      EXPECT_EQ(std::memcmp(tensors[position], wanted.data(), wanted.size()), 0) << use.tensor;
    }
  }
}

TEST(FlatLayout, a_view_is_refused_where_there_is_none) {
  const Layout flat = three_units().make();
  LayoutBuilder builder = three_units();
  builder.placement = ZC_PLACEMENT_PER_UNIT;
  const Layout per_unit = builder.make();
  const std::vector<const void*> none{nullptr};
  std::vector<const void*> tensors(2);
  const auto refused = [&](zc_status status, const Layout& layout, std::size_t unit, std::size_t capacity) {
    try {
      view_unit(layout, unit, none.data(), tensors.data(), capacity);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), status) << error.what();
    }
  };
  refused(ZC_UNSUPPORTED, per_unit, 0, 2);
  refused(ZC_ARGUMENT, flat, 3, 2);
  refused(ZC_ARGUMENT, flat, 0, 1);
  refused(ZC_ARGUMENT, flat, 0, 2);  // the buffer is NULL
}

TEST(FlatLayout, a_unit_belongs_to_one_rank_or_to_several_and_a_rank_may_own_nothing_of_it) {
  const Layout layout = three_units().make();
  const auto owned = [&](std::size_t block) {
    Indices counts;
    for (std::int32_t rank = 0; rank < 3; ++rank)
      counts.push_back(owned_in_block(layout.blocks[block], rank, 0, layout.blocks[block].real_count).count);
    return counts;
  };
  EXPECT_EQ(owned(0), (Indices{33, 0, 0}));
  EXPECT_EQ(owned(1), (Indices{16, 64, 20}));
  EXPECT_EQ(owned(2), (Indices{0, 0, 7}));
  EXPECT_EQ(owned_per_rank(layout), (Indices{5 + 17 + 16, 64, 20 + 7}));
  const std::vector<zc_piece>& last = layout.pieces[2][0];
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last[0].tensor_offset, 80u);
  EXPECT_EQ(last[0].shard_offset, 0u);
  EXPECT_EQ(last[1].tensor, 3u);
  EXPECT_EQ(last[1].shard_offset, 32u);
}

TEST(FlatLayout, bucket_runs_go_to_uneven_owners) {
  const Layout layout = three_units().make();
  ASSERT_EQ(layout.buckets.size(), 1u);
  Indices owners, counts;
  for (const BucketRun& run : layout.buckets[0].runs) {
    owners.push_back(static_cast<std::size_t>(run.owner));
    counts.push_back(run.count);
  }
  EXPECT_EQ(owners, (Indices{2, 0, 1, 2, 0, 0}));  // d, c in three runs, b, a
  EXPECT_EQ(counts, (Indices{7, 16, 64, 20, 17, 5}));
}

TEST(FlatLayout, every_buffer_is_cut_for_itself) {
  LayoutBuilder builder = three_units();
  builder.tensors.push_back({"ids", "v", 40, ZC_DTYPE_I64, ZC_DTYPE_NONE, true});
  builder.tensors.push_back({"more", "x", 1, ZC_DTYPE_I64, ZC_DTYPE_NONE, true});
  const Layout layout = builder.make();
  ASSERT_EQ(layout.buffers.size(), 2u);
  EXPECT_EQ(layout.buffers[0].shard_count, 64u);
  EXPECT_EQ(layout.buffers[1].shard_count, 16u);  // 48 elements, aligned to 8
  EXPECT_EQ(layout.blocks[layout.uses[5].block].cut_offset, 40u);
  EXPECT_EQ(layout.pieces[2][1].size(), 2u);
}

TEST(FlatLayout, units_of_empty_tensors_take_no_room_wherever_they_stand) {
  LayoutBuilder builder = three_units();
  builder.tensors.insert(builder.tensors.begin() + 2, {"none", "void", 0});
  builder.tensors.push_back({"neither", "end", 0});
  const Layout layout = builder.make();
  EXPECT_EQ(layout.units[1].gathered_bytes, 0u);
  EXPECT_EQ(layout.units[4].gathered_bytes, 0u);
  EXPECT_EQ(layout.buffers[0].shard_count, 64u);
  EXPECT_EQ(owned_per_rank(layout), owned_per_rank(three_units().make()));
  EXPECT_NO_THROW(partition_unit(layout, 2, 4, nullptr, nullptr));
  LayoutBuilder empty;
  empty.placement = ZC_PLACEMENT_FLAT;
  EXPECT_TRUE(empty.make().units.empty());
  empty.tensors = {{"none", "void", 0}};
  EXPECT_EQ(empty.make().buffers[0].shard_count, 0u);
}

TEST(FlatLayout, more_ranks_than_elements_leaves_shards_of_padding) {
  LayoutBuilder builder = one_unit({3}, 9);
  builder.placement = ZC_PLACEMENT_FLAT;
  const Layout layout = builder.make();
  EXPECT_EQ(owned_per_rank(layout), (Indices{3, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(layout.buffers[0].shard_count, 16u);
  EXPECT_EQ(layout.blocks[0].count, 3u);
  EXPECT_EQ(layout.blocks[0].padded_count, 9u * 16);
}

TEST(FlatLayout, persistence_does_not_count_padding_that_is_not_there) {
  LayoutBuilder builder;
  builder.ranks = 3;
  builder.tensors = {{"a", "small", 16}, {"b", "large", 17}};
  builder.persistent_bytes = 64;
  EXPECT_FALSE(builder.make().units[0].persistent);
  builder.placement = ZC_PLACEMENT_FLAT;
  EXPECT_TRUE(builder.make().units[0].persistent);
  EXPECT_FALSE(builder.make().units[1].persistent);
}

TEST(FlatLayout, placement_is_part_of_the_hash) {
  LayoutBuilder builder = three_units();
  const std::uint64_t flat = builder.make().hash;
  builder.placement = ZC_PLACEMENT_PER_UNIT;
  const std::uint64_t per_unit = builder.make().hash;
  EXPECT_NE(flat, per_unit);
  builder.placement = ZC_PLACEMENT_DEFAULT;
  EXPECT_EQ(builder.make().hash, per_unit);
  LayoutBuilder single = one_unit({64}, 2);  // cut in the same places under both
  const std::uint64_t before = single.make().hash;
  single.placement = ZC_PLACEMENT_FLAT;
  EXPECT_NE(single.make().hash, before);
}

TEST(FlatLayout, sizes_beyond_64_bits_are_refused) {
  LayoutBuilder builder = three_units();
  builder.tensors[0].count = builder.tensors[2].count = std::size_t{1} << 63;
  EXPECT_THROW(builder.make(), Error);
  builder.tensors[0].count = std::size_t{1} << 62;
  builder.tensors[2].count = 1;
  EXPECT_THROW(builder.make(), Error);
}

TEST(FlatPartition, cuts_a_unit_for_its_owners_alone_and_leaves_the_others_as_they_are) {
  const Layout layout = three_units().make();
  const std::vector<float> c(100, 5.0f);
  const void* full[] = {c.data()};
  std::vector<float> shard(64, -1.0f);
  void* shards[] = {shard.data()};
  partition_unit(layout, 0, 1, full, shards);
  std::vector<float> wanted(64, -1.0f);
  std::fill(wanted.begin() + 48, wanted.end(), 5.0f);
  EXPECT_EQ(shard, wanted);
  partition_unit(layout, 2, 1, full, shards);  // c[80..100), the gap up to w, and nothing of w
  std::fill(wanted.begin(), wanted.begin() + 20, 5.0f);
  std::fill(wanted.begin() + 20, wanted.begin() + 32, 0.0f);
  EXPECT_EQ(shard, wanted);
  EXPECT_NO_THROW(partition_unit(layout, 1, 0, nullptr, nullptr));
  EXPECT_NO_THROW(partition_unit(layout, 0, 2, nullptr, nullptr));
  EXPECT_THROW(partition_unit(layout, 0, 1, full, nullptr), Error);
  EXPECT_THROW(partition_unit(layout, 0, 1, nullptr, shards), Error);
}

TEST(FlatEstimate, counts_the_padding_of_the_buffer_and_what_each_rank_owns) {
  LayoutBuilder builder;
  builder.ranks = 2;
  builder.tensors = {{"a", "u", 5}, {"b", "v", 5}, {"c", "w", 5}};
  const auto estimate = [&](std::int32_t rank) { return estimate_layout(builder.make(), rank, {}); };
  EXPECT_EQ(estimate(0).parameter_bytes, 48u * 4);
  builder.placement = ZC_PLACEMENT_FLAT;  // starts 0, 16, 32; shards of 32
  EXPECT_EQ(estimate(0).parameter_bytes, 32u * 4);
  EXPECT_EQ(estimate(0).padding_bytes, 2u * 22 * 4);
  EXPECT_EQ(estimate(0).moment_bytes, 10u * 8);
  EXPECT_EQ(estimate(0).gather_elements, 2u * 5);
  EXPECT_EQ(estimate(0).reduce_elements, 10u);
  EXPECT_EQ(estimate(1).padding_bytes, 2u * 27 * 4);
  EXPECT_EQ(estimate(1).moment_bytes, 5u * 8);
  EXPECT_EQ(estimate(1).gather_elements, 2u * 10);
  EXPECT_EQ(estimate(1).reduce_elements, 5u);
  builder.persistent_bytes = 20;  // every unit, without padding
  EXPECT_EQ(estimate(0).gather_elements, 5u);
  EXPECT_EQ(estimate(1).gather_elements, 10u);
  builder.persistent_bytes = 0;
  builder.stage = ZC_STAGE_2;
  EXPECT_EQ(estimate(1).parameter_bytes, 64u * 4);
  EXPECT_EQ(estimate(1).padding_bytes, 49u * 4 + 27 * 4);
  EXPECT_EQ(estimate(1).gather_elements, 10u);
}

}  // namespace
}  // namespace zerocomm::shard
