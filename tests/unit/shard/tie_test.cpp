// Tied tensors: one storage, several uses.
#include "unit/shard/layout_builder.hpp"

#include <gtest/gtest.h>

namespace zerocomm::shard {
namespace {

using Indices = std::vector<std::size_t>;

LayoutBuilder tied() {
  LayoutBuilder builder;
  builder.ranks = 2;
  builder.tensors = {{"wte", "embedding", 40}, {"w", "layer", 10}, {"head", "head", 40}};
  builder.tensors[2].tied_to = "wte";
  return builder;
}

TEST(Ties, storage_stands_in_the_unit_of_the_owner) {
  const Layout layout = tied().make();
  EXPECT_EQ(layout.buffers[0].count, 50u);
  EXPECT_EQ(layout.uses[2].stored, 0u);
  EXPECT_EQ(layout.uses[2].block, layout.uses[0].block);
  EXPECT_EQ(layout.uses[2].bucket, layout.uses[0].bucket);
  EXPECT_EQ(layout.units[2].gathered_bytes, 0u);
  EXPECT_TRUE(layout.units[2].blocks.empty());
}

TEST(Ties, a_unit_needs_the_units_of_its_owners) {
  const Layout layout = tied().make();
  EXPECT_EQ(layout.units[0].needs, (Indices{0}));
  EXPECT_EQ(layout.units[2].needs, (Indices{0}));
}

TEST(Ties, a_unit_that_stores_something_needs_itself_first) {
  LayoutBuilder builder = tied();
  builder.tensors.push_back({"bias", "head", 3});
  EXPECT_EQ(builder.make().units[2].needs, (Indices{2, 0}));
}

TEST(Ties, gradients_of_the_owner_come_first_then_those_of_its_ties_in_order) {
  LayoutBuilder builder = tied();
  builder.tensors.push_back({"again", "last", 40});
  builder.tensors.back().tied_to = "wte";
  const Layout layout = builder.make();
  EXPECT_EQ(layout.uses[0].parts, (Indices{0, 2, 3}));
  EXPECT_EQ(layout.uses[1].parts, (Indices{1}));
  EXPECT_TRUE(layout.uses[2].parts.empty());
}

TEST(Ties, a_tie_that_is_used_before_its_owner_still_comes_second) {
  LayoutBuilder builder = tied();
  builder.uses = {{2, {0, 40}, "head"}, {1, {0, 10}, "layer"}, {0, {0, 40}, "embedding"}};
  const Layout layout = builder.make();
  EXPECT_EQ(layout.uses[2].parts, (Indices{2, 0}));
  EXPECT_EQ(layout.uses[0].stored, 2u);
}

TEST(Ties, sliced_ties_find_their_slices) {
  LayoutBuilder builder = tied();
  builder.uses = {{0, {0, 30}, "a"}, {0, {30, 10}, "b"}, {1, {0, 10}, "layer"}, {2, {30, 10}, "c"}, {2, {0, 30}, "d"}};
  const Layout layout = builder.make();
  EXPECT_EQ(layout.uses[3].stored, 1u);
  EXPECT_EQ(layout.uses[4].stored, 0u);
  EXPECT_EQ(layout.units[3].needs, (Indices{1}));
}

TEST(Ties, only_the_owner_is_in_a_bucket_and_in_pieces) {
  const Layout layout = tied().make();
  ASSERT_EQ(layout.buckets.size(), 1u);
  EXPECT_EQ(layout.buckets[0].uses, (Indices{1, 0}));
  for (const auto& buffers : layout.pieces)
    for (const zc_piece& piece : buffers[0]) EXPECT_NE(piece.tensor, 2u);
}

}  // namespace
}  // namespace zerocomm::shard
