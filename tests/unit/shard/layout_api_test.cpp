// layout.h and estimate.h as a C program sees them.
#include <zerocomm/estimate.h>
#include <zerocomm/layout.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace {

zc_tensor tensor(const char* name, const char* unit, size_t count) {
  zc_tensor row{};
  row.struct_size = sizeof row;
  row.name = name;
  row.unit = unit;
  row.count = count;
  row.dtype = ZC_DTYPE_F32;
  return row;
}

zc_layout_config config(int32_t ranks) {
  zc_layout_config made{};
  made.struct_size = sizeof made;
  made.ranks = ranks;
  made.stage = ZC_STAGE_3;
  return made;
}

zc_layout* small_layout(int32_t ranks = 2) {
  const zc_tensor tensors[] = {tensor("a", "u", 5), tensor("b", "v", 40)};
  const zc_layout_config my_config = config(ranks);
  zc_layout* layout = nullptr;
  EXPECT_EQ(zc_layout_create(tensors, 2, &my_config, &layout), ZC_OK) << zc_last_error();
  return layout;
}

TEST(LayoutApi, queries_answer_for_every_kind_of_thing) {
  zc_layout* layout = small_layout();
  zc_layout_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(zc_layout_get_info(layout, &info), ZC_OK);
  EXPECT_EQ(info.struct_size, sizeof info);
  EXPECT_EQ(info.ranks, 2);
  EXPECT_EQ(info.stage, ZC_STAGE_3);
  EXPECT_EQ(info.unit_count, 2u);
  EXPECT_EQ(info.stored_count, 45u);
  EXPECT_EQ(info.stored_bytes, 180u);
  EXPECT_EQ(info.padded_bytes, 384u);
  EXPECT_EQ(info.largest_unit_bytes, 256u);
  size_t unit = 9, use = 9, found = 9;
  ASSERT_EQ(zc_layout_find_unit(layout, "v", &unit), ZC_OK);
  EXPECT_EQ(unit, 1u);
  ASSERT_EQ(zc_layout_find_tensor(layout, "b", &found), ZC_OK);
  EXPECT_EQ(found, 1u);
  ASSERT_EQ(zc_layout_unit_use(layout, 1, 0, &use), ZC_OK);
  zc_unit_info unit_info{};
  unit_info.struct_size = sizeof unit_info;
  ASSERT_EQ(zc_layout_get_unit(layout, unit, &unit_info), ZC_OK);
  EXPECT_STREQ(unit_info.name, "v");
  zc_use_info use_info{};
  use_info.struct_size = sizeof use_info;
  ASSERT_EQ(zc_layout_get_use(layout, use, &use_info), ZC_OK);
  EXPECT_EQ(use_info.stored_tensor, 1u);
  EXPECT_EQ(use_info.bucket, 0);
  zc_buffer_info buffer{};
  buffer.struct_size = sizeof buffer;
  ASSERT_EQ(zc_layout_get_buffer(layout, 0, &buffer), ZC_OK);
  EXPECT_EQ(buffer.shard_count, 48u);
  EXPECT_EQ(buffer.frozen, 0);
  zc_bucket_info bucket{};
  bucket.struct_size = sizeof bucket;
  ASSERT_EQ(zc_layout_get_bucket(layout, 0, &bucket), ZC_OK);
  EXPECT_EQ(bucket.count, 45u);
  EXPECT_EQ(bucket.bytes, 256u);
  const zc_piece* pieces = nullptr;
  size_t piece_count = 0;
  ASSERT_EQ(zc_layout_pieces(layout, 1, 0, &pieces, &piece_count), ZC_OK);
  ASSERT_EQ(piece_count, 1u);
  EXPECT_EQ(pieces[0].tensor_offset, 32u);
  EXPECT_EQ(zc_layout_destroy(layout), ZC_OK);
}

TEST(LayoutApi, placement_and_flat_offsets_are_told) {
  zc_tensor tensors[] = {tensor("a", "u", 5), tensor("b", "v", 40), tensor("none", "v", 0), tensor("tie", "w", 40)};
  tensors[3].tied_to = "b";
  zc_layout_config my_config = config(2);
  for (const zc_placement placement : {ZC_PLACEMENT_DEFAULT, ZC_PLACEMENT_PER_UNIT, ZC_PLACEMENT_FLAT}) {
    const bool flat = placement == ZC_PLACEMENT_FLAT;
    my_config.placement = placement;
    zc_layout* layout = nullptr;
    ASSERT_EQ(zc_layout_create(tensors, 4, &my_config, &layout), ZC_OK) << zc_last_error();
    zc_layout_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(zc_layout_get_info(layout, &info), ZC_OK);
    EXPECT_EQ(info.placement, flat ? ZC_PLACEMENT_FLAT : ZC_PLACEMENT_PER_UNIT);
    const int64_t wanted[] = {0, 16, ZC_NONE, 16};
    for (size_t i = 0; i < 4; ++i) {
      zc_use_info use{};
      use.struct_size = sizeof use;
      ASSERT_EQ(zc_layout_get_use(layout, i, &use), ZC_OK);
      EXPECT_EQ(use.flat_offset, flat ? wanted[i] : ZC_NONE) << i;
    }
    zc_layout_destroy(layout);
  }
}

// The shards of all ranks in one array: every tensor is one run of it.
TEST(LayoutApi, flat_shards_end_to_end_hold_each_use_at_its_flat_offset) {
  const zc_tensor tensors[] = {tensor("a", "u", 5), tensor("b", "v", 40), tensor("c", "u", 3)};
  zc_layout_config my_config = config(3);
  my_config.placement = ZC_PLACEMENT_FLAT;
  zc_layout* layout = nullptr;
  ASSERT_EQ(zc_layout_create(tensors, 3, &my_config, &layout), ZC_OK) << zc_last_error();
  zc_buffer_info buffer{};
  buffer.struct_size = sizeof buffer;
  ASSERT_EQ(zc_layout_get_buffer(layout, 0, &buffer), ZC_OK);
  std::vector<float> a(5), b(40), c(3, 9.0f), all(3 * buffer.shard_count, -1.0f);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(100 + i);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(1 + i);
  const void* const full[2][2] = {{a.data(), c.data()}, {b.data(), nullptr}};
  for (int32_t rank = 0; rank < 3; ++rank) {
    void* shards[] = {all.data() + static_cast<size_t>(rank) * buffer.shard_count};
    for (size_t unit = 0; unit < 2; ++unit) ASSERT_EQ(zc_partition(layout, rank, unit, full[unit], shards), ZC_OK);
  }
  std::vector<float> wanted(all.size(), 0.0f);
  const std::vector<float>* const from[] = {&a, &b, &c};
  for (size_t i = 0; i < 3; ++i) {
    zc_use_info use{};
    use.struct_size = sizeof use;
    ASSERT_EQ(zc_layout_get_use(layout, i, &use), ZC_OK);
    std::copy(from[i]->begin(), from[i]->end(), wanted.begin() + static_cast<std::ptrdiff_t>(use.flat_offset));
  }
  EXPECT_EQ(all, wanted);
  zc_layout_destroy(layout);
}

TEST(LayoutApi, names_outlive_the_callers_strings) {
  zc_layout* layout = nullptr;
  {
    std::string name = "a name that does not fit into a small buffer", unit = "a unit of the same kind, even longer";
    const zc_tensor tensors[] = {tensor(name.c_str(), unit.c_str(), 5)};
    const zc_layout_config my_config = config(1);
    ASSERT_EQ(zc_layout_create(tensors, 1, &my_config, &layout), ZC_OK);
    name.assign(name.length(), 'x');
    unit.assign(unit.length(), 'x');
  }
  size_t found = 9;
  EXPECT_EQ(zc_layout_find_tensor(layout, "a name that does not fit into a small buffer", &found), ZC_OK);
  EXPECT_EQ(zc_layout_find_unit(layout, "a unit of the same kind, even longer", &found), ZC_OK);
  zc_layout_destroy(layout);
}

TEST(LayoutApi, wrong_indices_are_refused_and_outputs_stay) {
  zc_layout* layout = small_layout();
  zc_unit_info unit{};
  unit.struct_size = sizeof unit;
  unit.use_count = 77;
  size_t index = 77;
  const zc_piece* pieces = nullptr;
  EXPECT_EQ(zc_layout_get_unit(layout, 2, &unit), ZC_ARGUMENT);
  EXPECT_EQ(unit.use_count, 77u);
  EXPECT_EQ(zc_layout_find_unit(layout, "w", &index), ZC_ARGUMENT);
  EXPECT_NE(std::string(zc_last_error()).find("'w'"), std::string::npos);
  EXPECT_EQ(zc_layout_find_unit(layout, nullptr, &index), ZC_ARGUMENT);
  EXPECT_EQ(zc_layout_find_tensor(nullptr, "a", &index), ZC_ARGUMENT);
  EXPECT_EQ(zc_layout_unit_use(layout, 0, 1, &index), ZC_ARGUMENT);
  EXPECT_EQ(zc_layout_pieces(layout, 2, 0, &pieces, &index), ZC_ARGUMENT);
  EXPECT_EQ(zc_layout_pieces(layout, -1, 0, &pieces, &index), ZC_ARGUMENT);
  EXPECT_EQ(zc_layout_pieces(layout, 0, 1, &pieces, &index), ZC_ARGUMENT);
  EXPECT_EQ(zc_layout_pieces(layout, 0, 0, nullptr, &index), ZC_ARGUMENT);
  EXPECT_EQ(index, 77u);
  unit.struct_size = 0;
  EXPECT_EQ(zc_layout_get_unit(layout, 0, &unit), ZC_ARGUMENT);
  EXPECT_EQ(zc_layout_get_unit(layout, 0, nullptr), ZC_ARGUMENT);
  EXPECT_EQ(zc_layout_destroy(layout), ZC_OK);
  EXPECT_EQ(zc_layout_destroy(nullptr), ZC_OK);
}

TEST(LayoutApi, create_refuses_what_is_missing) {
  const zc_tensor good = tensor("a", "u", 5);
  zc_layout_config my_config = config(1);
  zc_layout* layout = nullptr;
  EXPECT_EQ(zc_layout_create(&good, 1, nullptr, &layout), ZC_ARGUMENT);
  EXPECT_EQ(zc_layout_create(&good, 1, &my_config, nullptr), ZC_ARGUMENT);
  EXPECT_EQ(zc_layout_create(nullptr, 1, &my_config, &layout), ZC_ARGUMENT);
  my_config.use_count = 1;
  EXPECT_EQ(zc_layout_create(&good, 1, &my_config, &layout), ZC_ARGUMENT);
  my_config.use_count = 0;
  zc_tensor unsized_tensor = good;
  unsized_tensor.struct_size = 0;
  EXPECT_EQ(zc_layout_create(&unsized_tensor, 1, &my_config, &layout), ZC_ARGUMENT);
  EXPECT_EQ(layout, nullptr);
}

// A caller built with a newer header: its structs are longer, and lie further apart.
TEST(LayoutApi, longer_structs_are_read_while_their_new_members_are_zero) {
  struct NewerTensor {
    zc_tensor known;
    std::int64_t added;
  };
  NewerTensor tensors[] = {{tensor("a", "u", 5), 0}, {tensor("b", "u", 7), 0}};
  for (NewerTensor& row : tensors) row.known.struct_size = sizeof row;
  const zc_layout_config my_config = config(1);
  zc_layout* layout = nullptr;
  ASSERT_EQ(zc_layout_create(&tensors[0].known, 2, &my_config, &layout), ZC_OK) << zc_last_error();
  size_t found = 0;
  EXPECT_EQ(zc_layout_find_tensor(layout, "b", &found), ZC_OK);
  zc_layout_destroy(layout);
  layout = nullptr;
  tensors[1].added = 1;
  EXPECT_EQ(zc_layout_create(&tensors[0].known, 2, &my_config, &layout), ZC_ARGUMENT);
  tensors[1].added = 0;
  tensors[1].known.struct_size = sizeof(zc_tensor);
  EXPECT_EQ(zc_layout_create(&tensors[0].known, 2, &my_config, &layout), ZC_ARGUMENT);
  EXPECT_EQ(layout, nullptr);
}

TEST(LayoutApi, printing_tells_the_room_it_needs_and_never_writes_beyond_it) {
  zc_layout* layout = small_layout();
  for (const zc_text_form form : {ZC_TEXT_DEFAULT, ZC_TEXT_PLAIN, ZC_TEXT_JSON}) {
    size_t needed = 0;
    ASSERT_EQ(zc_layout_print(layout, form, nullptr, 0, &needed), ZC_OK);
    std::vector<char> text(needed + 1, '#');
    ASSERT_EQ(zc_layout_print(layout, form, text.data(), needed, nullptr), ZC_OK);
    EXPECT_EQ(std::strlen(text.data()) + 1, needed);
    EXPECT_EQ(text[needed], '#');
    std::vector<char> small(11, '#');
    ASSERT_EQ(zc_layout_print(layout, form, small.data(), 10, &needed), ZC_OK);
    EXPECT_EQ(std::strlen(small.data()), 9u);
    EXPECT_EQ(std::memcmp(small.data(), text.data(), 9), 0);
    EXPECT_EQ(small[10], '#');
  }
  size_t needed = 0;
  EXPECT_EQ(zc_layout_print(layout, static_cast<zc_text_form>(3), nullptr, 0, &needed), ZC_ARGUMENT);
  EXPECT_EQ(zc_layout_print(layout, ZC_TEXT_PLAIN, nullptr, 5, &needed), ZC_ARGUMENT);
  zc_layout_destroy(layout);
}

TEST(LayoutApi, partition_copies_and_estimate_adds_up) {
  zc_layout* layout = small_layout();
  std::vector<float> b(40), shard(48, -1.0f);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i);
  const void* full[] = {b.data()};
  void* shards[] = {shard.data()};
  ASSERT_EQ(zc_partition(layout, 1, 1, full, shards), ZC_OK) << zc_last_error();
  EXPECT_EQ(shard[15], -1.0f);
  EXPECT_EQ(shard[16], 32.0f);
  EXPECT_EQ(shard[23], 39.0f);
  EXPECT_EQ(shard[24], 0.0f);
  EXPECT_EQ(zc_partition(layout, 2, 1, full, shards), ZC_ARGUMENT);
  zc_estimate estimate{};
  estimate.struct_size = sizeof estimate;
  ASSERT_EQ(zc_estimate_layout(layout, 0, nullptr, &estimate), ZC_OK);
  EXPECT_EQ(estimate.state_bytes, 48u * 8 + 37 * 8);
  EXPECT_EQ(zc_estimate_layout(nullptr, 0, nullptr, &estimate), ZC_ARGUMENT);
  EXPECT_EQ(zc_estimate_layout(layout, 2, nullptr, &estimate), ZC_ARGUMENT);
  ASSERT_EQ(zc_estimate_count(100, 4, ZC_STAGE_1, ZC_DTYPE_BF16, nullptr, &estimate), ZC_OK);
  EXPECT_EQ(estimate.state_bytes, 400u + 16 * 25);
  zc_layout_destroy(layout);
}

}  // namespace
