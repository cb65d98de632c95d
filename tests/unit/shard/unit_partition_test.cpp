// Cutting units into shards: identity after concatenation, zero padding, refusals without a trace.
#include "unit/shard/layout_builder.hpp"

#include "base/check.hpp"
#include "shard/unit_partition.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace zerocomm::shard {
namespace {

constexpr float kPoison = -77.0f;

std::vector<float> shard_of(const Layout& layout, std::int32_t rank, const std::vector<std::vector<float>>& full) {
  std::vector<float> shard(layout.buffers[0].shard_count, kPoison);
  void* shards[] = {shard.data()};
  for (std::size_t u = 0; u < layout.units.size(); ++u) {
    std::vector<const void*> pointers;
    for (const std::size_t i : layout.units[u].uses)
      pointers.push_back(full[layout.uses[i].tensor].data() + layout.uses[i].in_tensor.offset);
    partition_unit(layout, rank, u, pointers.data(), shards);
  }
  return shard;
}

// Tensors put together again from the shards of all ranks by the published pieces.
std::vector<std::vector<float>> joined(const Layout& layout, const std::vector<std::vector<float>>& shards) {
  std::vector<std::vector<float>> full;
  for (const Tensor& tensor : layout.tensors) full.emplace_back(tensor.count, kPoison);
  for (std::size_t r = 0; r < shards.size(); ++r)
    for (const zc_piece& piece : layout.pieces[r][0])
      std::copy_n(shards[r].begin() + static_cast<std::ptrdiff_t>(piece.shard_offset), piece.count,
                  full[piece.tensor].begin() + static_cast<std::ptrdiff_t>(piece.tensor_offset));
  return full;
}

std::vector<std::vector<float>> numbered(const std::vector<std::size_t>& counts) {
  std::vector<std::vector<float>> full;
  float next = 1;
  for (const std::size_t count : counts) {
    full.emplace_back(count);
    for (float& value : full.back()) value = next++;
  }
  return full;
}

TEST(UnitPartition, cutting_for_two_then_three_then_two_ranks_gives_the_same_bits) {
  std::vector<std::vector<float>> full = numbered({57});
  const std::vector<std::vector<float>> start = full;
  for (const std::int32_t ranks : {2, 3, 2}) {
    const Layout layout = one_unit({57}, ranks).make();
    std::vector<std::vector<float>> shards;
    for (std::int32_t r = 0; r < ranks; ++r) shards.push_back(shard_of(layout, r, full));
    full = joined(layout, shards);
    EXPECT_EQ(full, start);
  }
}

TEST(UnitPartition, padding_is_zero_and_no_real_element_is_lost) {
  const Layout layout = one_unit({7, 3}, 3).make();
  const std::vector<std::vector<float>> full = numbered({7, 3});
  float total = 0;
  for (std::int32_t r = 0; r < 3; ++r) {
    const std::vector<float> shard = shard_of(layout, r, full);
    total = std::accumulate(shard.begin(), shard.end(), total);
  }
  EXPECT_EQ(total, 55.0f);
}

TEST(UnitPartition, other_units_of_the_shard_stay_as_they_are) {
  LayoutBuilder builder;
  builder.ranks = 2;
  builder.tensors = {{"a", "u", 32}, {"b", "v", 32}};
  const Layout layout = builder.make();
  std::vector<float> shard(layout.buffers[0].shard_count, kPoison);
  const std::vector<float> b(32, 5.0f);
  const void* full[] = {b.data()};
  void* shards[] = {shard.data()};
  partition_unit(layout, 1, 1, full, shards);
  EXPECT_EQ(std::vector<float>(shard.begin(), shard.begin() + 16), std::vector<float>(16, kPoison));
  EXPECT_EQ(std::vector<float>(shard.begin() + 16, shard.end()), std::vector<float>(16, 5.0f));
}

TEST(UnitPartition, nothing_that_is_not_owned_needs_a_pointer) {
  LayoutBuilder builder = one_unit({16, 16, 0}, 2);
  builder.tensors.push_back({"tie", "unit", 16});
  builder.tensors.back().tied_to = "t1";
  const Layout layout = builder.make();
  const std::vector<float> values(16, 2.0f);
  std::vector<float> shard(16, kPoison);
  void* shards[] = {shard.data()};
  const void* full[] = {nullptr, values.data(), nullptr, nullptr};
  partition_unit(layout, 1, 0, full, shards);
  EXPECT_EQ(shard, values);
}

TEST(UnitPartition, a_missing_pointer_is_refused_before_a_byte_is_written) {
  const Layout layout = one_unit({16, 16}, 1).make();
  const std::vector<float> values(16, 2.0f);
  std::vector<float> shard(32, kPoison);
  void* shards[] = {shard.data()};
  const void* full[] = {values.data(), nullptr};
  void* no_shards[] = {nullptr};
  const void* both[] = {values.data(), values.data()};
  EXPECT_THROW(partition_unit(layout, 0, 0, full, shards), Error);
  EXPECT_THROW(partition_unit(layout, 0, 0, nullptr, shards), Error);
  EXPECT_THROW(partition_unit(layout, 0, 0, both, no_shards), Error);
  EXPECT_THROW(partition_unit(layout, 0, 0, both, nullptr), Error);
  EXPECT_THROW(partition_unit(layout, 1, 0, both, shards), Error);
  EXPECT_THROW(partition_unit(layout, -1, 0, both, shards), Error);
  EXPECT_THROW(partition_unit(layout, 0, 1, both, shards), Error);
  EXPECT_EQ(shard, std::vector<float>(32, kPoison));
}

TEST(UnitPartition, dtypes_of_one_unit_go_to_their_own_shards) {
  LayoutBuilder builder;
  builder.ranks = 1;
  builder.tensors = {{"a", "u", 3, ZC_DTYPE_BF16}, {"b", "u", 2, ZC_DTYPE_I64, ZC_DTYPE_NONE, true}};
  const Layout layout = builder.make();
  const std::uint16_t a[] = {1, 2, 3};
  const std::int64_t b[] = {-4, 5};
  std::vector<std::uint16_t> first(layout.buffers[0].shard_count, 9);
  std::vector<std::int64_t> second(layout.buffers[1].shard_count, 9);
  const void* full[] = {a, b};
  void* shards[] = {first.data(), second.data()};
  partition_unit(layout, 0, 0, full, shards);
  std::vector<std::uint16_t> want_first(layout.buffers[0].shard_count, 0);
  std::vector<std::int64_t> want_second(layout.buffers[1].shard_count, 0);
  std::copy(std::begin(a), std::end(a), want_first.begin());
  std::copy(std::begin(b), std::end(b), want_second.begin());
  EXPECT_EQ(first, want_first);
  EXPECT_EQ(second, want_second);
}

TEST(UnitPartition, a_unit_of_empty_tensors_needs_nothing) {
  const Layout layout = one_unit({0}, 2).make();
  EXPECT_NO_THROW(partition_unit(layout, 0, 0, nullptr, nullptr));
}

}  // namespace
}  // namespace zerocomm::shard
