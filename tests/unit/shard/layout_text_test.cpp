// Printed layouts, word by word.
#include "unit/shard/layout_builder.hpp"

#include "shard/layout_text.hpp"

#include <gtest/gtest.h>

namespace zerocomm::shard {
namespace {

LayoutBuilder sample() {
  LayoutBuilder builder;
  builder.ranks = 2;
  builder.persistent_bytes = 128;
  builder.tensors = {{"wte", "first", 20},
                     {"none", "first", 0},
                     {"ids", "second", 3, ZC_DTYPE_I64, ZC_DTYPE_NONE, true},
                     {"head", "second", 20}};
  builder.tensors[3].tied_to = "wte";
  return builder;
}

// The hash is checked elsewhere; here it would only be a number to copy.
std::string without_hash(std::string text, const std::string& before) {
  const std::size_t start = text.find(before) + before.size();
  return text.replace(start, 16, "HASH");
}

TEST(LayoutText, plain_text_lists_units_buffers_buckets_and_every_rank) {
  EXPECT_EQ(without_hash(layout_plain(sample().make()), "hash "),
            "layout: stage 3 over 2 ranks, aligned to 64 bytes, hash HASH\n"
            "  4 tensors (1 tied), 23 elements, of which 20 are trained\n"
            "  104 bytes of parameters, 256 with padding; the largest unit has 128, the largest bucket 128\n"
            "units, in order of first use\n"
            "  0  first: 2 uses, 128 bytes gathered, persistent\n"
            "      wte: 20 elements, block 0 at 0, bucket 0\n"
            "      none: empty\n"
            "  1  second: 2 uses, 128 bytes gathered, persistent\n"
            "      needs unit first\n"
            "      ids: 3 elements, block 1 at 0, frozen\n"
            "      head: 20 elements, stored as wte, bucket 0\n"
            "buffers\n"
            "  0  f32, f32 gradients reduced to f32, group 0: 20 elements, 16 per rank\n"
            "  1  i64, frozen, group 0: 3 elements, 8 per rank\n"
            "buckets, in the order in which a backward pass completes them\n"
            "  0  buffer 0: 20 elements, 128 bytes\n"
            "      wte at 0\n"
            "rank 0\n"
            "  buffer 0: 16 elements and 0 of padding, 64 bytes\n"
            "      [0..16) wte[0..16)\n"
            "  buffer 1: 3 elements and 5 of padding, 64 bytes\n"
            "      [0..3) ids\n"
            "rank 1\n"
            "  buffer 0: 4 elements and 12 of padding, 64 bytes\n"
            "      [0..4) wte[16..20)\n"
            "  buffer 1: 0 elements and 8 of padding, 64 bytes\n");
}

TEST(LayoutText, json_holds_the_same_as_indices) {
  EXPECT_EQ(
      without_hash(layout_json(sample().make()), "\"hash\":\""),
      R"({"format":"zc.layout","version":1,"ranks":2,"stage":3,"alignment_bytes":64,"bucket_bytes":26214400,"persistent_bytes":128,"hash":"HASH",
"totals":{"stored_count":23,"trainable_count":20,"stored_bytes":104,"padded_bytes":256,"tied_tensors":1,"largest_unit_bytes":128,"largest_bucket_bytes":128},
"tensors":[
{"name":"wte","count":20,"dtype":"f32","trainable":true,"group":0},
{"name":"none","count":0,"dtype":"f32","trainable":true,"group":0},
{"name":"ids","count":3,"dtype":"i64","trainable":false,"group":0},
{"name":"head","count":20,"dtype":"f32","trainable":true,"group":0,"tied_to":0}],
"units":[
{"name":"first","gathered_bytes":128,"persistent":true,"uses":[0,1],"blocks":[0],"needs":[0]},
{"name":"second","gathered_bytes":128,"persistent":true,"uses":[2,3],"blocks":[1],"needs":[1,0]}],
"uses":[
{"tensor":0,"offset":0,"count":20,"stored":0,"block":0,"block_offset":0,"bucket":0,"bucket_offset":0},
{"tensor":1,"offset":0,"count":0,"stored":1,"block":0,"block_offset":32},
{"tensor":2,"offset":0,"count":3,"stored":2,"block":1,"block_offset":0},
{"tensor":3,"offset":0,"count":20,"stored":0,"block":0,"block_offset":0,"bucket":0,"bucket_offset":0}],
"buffers":[
{"dtype":"f32","gradient_dtype":"f32","shard_gradient_dtype":"f32","trainable":true,"group":0,"count":20,"shard_count":16},
{"dtype":"i64","gradient_dtype":"none","shard_gradient_dtype":"none","trainable":false,"group":0,"count":3,"shard_count":8}],
"blocks":[
{"unit":0,"buffer":0,"count":32,"shard_count":16,"shard_offset":0,"unit_offset_bytes":0},
{"unit":1,"buffer":1,"count":16,"shard_count":8,"shard_offset":0,"unit_offset_bytes":0}],
"buckets":[
{"buffer":0,"count":20,"bytes":128,"uses":[0]}],
"shards":[
[
{"count":16,"padding":0,"pieces":[[0,0,0,16]]},
{"count":3,"padding":5,"pieces":[[2,0,0,3]]}],
[
{"count":4,"padding":12,"pieces":[[0,16,0,4]]},
{"count":0,"padding":8,"pieces":[]}]]}
)");
}

// As above, but that "more" brings a second block to buffer 0: it begins at 32, and 37 elements need shards of 32.
LayoutBuilder flat_sample() {
  LayoutBuilder builder = sample();
  builder.placement = ZC_PLACEMENT_FLAT;
  builder.persistent_bytes = 0;
  builder.tensors.push_back({"more", "second", 5});
  return builder;
}

TEST(LayoutText, flat_plain_text_says_so_and_tells_the_place_in_the_buffer) {
  EXPECT_EQ(without_hash(layout_plain(flat_sample().make()), "hash "),
            "layout: stage 3 over 2 ranks, flat, aligned to 64 bytes, hash HASH\n"
            "  5 tensors (1 tied), 28 elements, of which 25 are trained\n"
            "  124 bytes of parameters, 384 with padding; the largest unit has 84, the largest bucket 192\n"
            "units, in order of first use\n"
            "  0  first: 2 uses, 80 bytes gathered\n"
            "      wte: 20 elements, block 0 at 0, buffer 0 at 0, bucket 0\n"
            "      none: empty\n"
            "  1  second: 3 uses, 84 bytes gathered\n"
            "      needs unit first\n"
            "      ids: 3 elements, block 1 at 0, buffer 1 at 0, frozen\n"
            "      head: 20 elements, stored as wte, bucket 0\n"
            "      more: 5 elements, block 2 at 0, buffer 0 at 32, bucket 0\n"
            "buffers\n"
            "  0  f32, f32 gradients reduced to f32, group 0: 25 elements, 32 per rank\n"
            "  1  i64, frozen, group 0: 3 elements, 8 per rank\n"
            "buckets, in the order in which a backward pass completes them\n"
            "  0  buffer 0: 25 elements, 192 bytes\n"
            "      more at 0\n"
            "      wte at 16\n"
            "rank 0\n"
            "  buffer 0: 20 elements and 12 of padding, 128 bytes\n"
            "      [0..20) wte\n"
            "  buffer 1: 3 elements and 5 of padding, 64 bytes\n"
            "      [0..3) ids\n"
            "rank 1\n"
            "  buffer 0: 5 elements and 27 of padding, 128 bytes\n"
            "      [0..5) more\n"
            "  buffer 1: 0 elements and 8 of padding, 64 bytes\n");
}

TEST(LayoutText, flat_json_names_the_placement_and_the_offsets_of_blocks_in_their_buffers) {
  const std::string text = layout_json(flat_sample().make());
  EXPECT_NE(text.find(R"("stage":3,"placement":"flat","alignment_bytes":64,)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("blocks":[
{"unit":0,"buffer":0,"count":20,"flat_offset":0,"unit_offset_bytes":0},
{"unit":1,"buffer":1,"count":3,"flat_offset":0,"unit_offset_bytes":0},
{"unit":1,"buffer":0,"count":5,"flat_offset":32,"unit_offset_bytes":64}],
)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("shards":[
[
{"count":20,"padding":12,"pieces":[[0,0,0,20]]},
{"count":3,"padding":5,"pieces":[[2,0,0,3]]}],
[
{"count":5,"padding":27,"pieces":[[4,0,0,5]]},
{"count":0,"padding":8,"pieces":[]}]]}
)"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace zerocomm::shard
