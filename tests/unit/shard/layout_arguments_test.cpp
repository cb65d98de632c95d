// What a layout refuses, and that the text says why.
#include "unit/shard/layout_builder.hpp"

#include "base/check.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>

namespace zerocomm::shard {
namespace {

LayoutBuilder sound() {
  LayoutBuilder builder;
  builder.ranks = 2;
  builder.tensors = {{"alpha", "u", 8}, {"beta", "u", 8}, {"gamma", "v", 8}};
  return builder;
}

void expect_refused(const LayoutBuilder& builder, zc_status status, const std::string& text) {
  try {
    builder.make();
    ADD_FAILURE() << "accepted; expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

struct Refusal {
  const char* name;
  zc_status status;
  const char* text;
  std::function<void(LayoutBuilder&)> spoil;
};

void PrintTo(const Refusal& row, std::ostream* out) { *out << row.name; }

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, names_what_is_wrong) {
  LayoutBuilder builder = sound();
  ASSERT_NO_THROW(builder.make());
  GetParam().spoil(builder);
  expect_refused(builder, GetParam().status, GetParam().text);
}

const Refusal kRefusals[] = {
    {"no_ranks", ZC_ARGUMENT, "ranks is 0", [](LayoutBuilder& b) { b.ranks = 0; }},
    {"too_many_ranks", ZC_UNSUPPORTED, "at most", [](LayoutBuilder& b) { b.ranks = 2'000'000; }},
    {"no_stage", ZC_ARGUMENT, "stage is not set", [](LayoutBuilder& b) { b.stage = ZC_STAGE_NONE; }},
    {"unknown_stage", ZC_ARGUMENT, "stage -3", [](LayoutBuilder& b) { b.stage = static_cast<zc_stage>(-3); }},
    {"unknown_placement", ZC_ARGUMENT, "placement 3 does not exist",
     [](LayoutBuilder& b) { b.placement = static_cast<zc_placement>(3); }},
    {"alignment", ZC_ARGUMENT, "alignment_bytes is 48", [](LayoutBuilder& b) { b.alignment_bytes = 48; }},
    {"unknown_reduced", ZC_ARGUMENT, "shard_gradient_dtype 15",
     [](LayoutBuilder& b) { b.shard_gradient_dtype = static_cast<zc_dtype>(15); }},
    {"integer_reduced", ZC_UNSUPPORTED, "shard_gradient_dtype is i32",
     [](LayoutBuilder& b) { b.shard_gradient_dtype = ZC_DTYPE_I32; }},
    {"empty_name", ZC_ARGUMENT, "tensor 1 has no name", [](LayoutBuilder& b) { b.tensors[1].name.clear(); }},
    {"duplicate_name", ZC_ARGUMENT, "'alpha'", [](LayoutBuilder& b) { b.tensors[2].name = "alpha"; }},
    {"no_unit", ZC_ARGUMENT, "'beta' has a use without a unit", [](LayoutBuilder& b) { b.tensors[1].unit.clear(); }},
    {"unknown_dtype", ZC_ARGUMENT, "'beta' has dtype 15",
     [](LayoutBuilder& b) { b.tensors[1].dtype = static_cast<zc_dtype>(15); }},
    {"unknown_gradient", ZC_ARGUMENT, "'beta' has gradient dtype 15",
     [](LayoutBuilder& b) { b.tensors[1].gradient_dtype = static_cast<zc_dtype>(15); }},
    {"trained_integers", ZC_UNSUPPORTED, "'beta' is i64 and trainable",
     [](LayoutBuilder& b) { b.tensors[1].dtype = ZC_DTYPE_I64; }},
    {"trained_f64", ZC_UNSUPPORTED, "'beta' is f64", [](LayoutBuilder& b) { b.tensors[1].dtype = ZC_DTYPE_F64; }},
    {"trained_f8", ZC_UNSUPPORTED, "'beta' is f8e4m3", [](LayoutBuilder& b) { b.tensors[1].dtype = ZC_DTYPE_F8E4M3; }},
    {"integer_gradient", ZC_UNSUPPORTED, "'beta' has u8 gradients",
     [](LayoutBuilder& b) { b.tensors[1].gradient_dtype = ZC_DTYPE_U8; }},
    {"tie_forward", ZC_ARGUMENT, "'alpha' is tied to 'gamma', which does not come before it",
     [](LayoutBuilder& b) { b.tensors[0].tied_to = "gamma"; }},
    {"tie_to_itself", ZC_ARGUMENT, "does not come before it", [](LayoutBuilder& b) { b.tensors[0].tied_to = "alpha"; }},
    {"tie_to_a_tie", ZC_ARGUMENT, "'gamma' is tied to 'beta', which is itself tied to 'alpha'",
     [](LayoutBuilder& b) {
       b.tensors[1].tied_to = "alpha";
       b.tensors[2].tied_to = "beta";
     }},
    {"tie_of_another_count", ZC_ARGUMENT, "another element count",
     [](LayoutBuilder& b) {
       b.tensors[2].tied_to = "alpha";
       b.tensors[2].count = 9;
     }},
    {"tie_of_another_dtype", ZC_ARGUMENT, "another dtype",
     [](LayoutBuilder& b) {
       b.tensors[2].tied_to = "alpha";
       b.tensors[2].dtype = ZC_DTYPE_BF16;
     }},
    {"tie_that_is_frozen", ZC_ARGUMENT, "another frozen mark",
     [](LayoutBuilder& b) {
       b.tensors[2].tied_to = "alpha";
       b.tensors[2].frozen = true;
     }},
    {"tie_of_another_gradient", ZC_ARGUMENT, "another gradient dtype",
     [](LayoutBuilder& b) {
       b.tensors[2].tied_to = "alpha";
       b.tensors[2].gradient_dtype = ZC_DTYPE_BF16;
     }},
    {"tie_of_another_group", ZC_ARGUMENT, "another group",
     [](LayoutBuilder& b) {
       b.tensors[2].tied_to = "alpha";
       b.tensors[2].group = 3;
     }},
    {"use_of_no_tensor", ZC_ARGUMENT, "tensor 3; there are 3",
     [](LayoutBuilder& b) {
       b.uses = {{3, {0, 8}, "u"}};
     }},
    {"use_outside", ZC_ARGUMENT, "of tensor 'alpha', which has 8",
     [](LayoutBuilder& b) {
       b.uses = {{0, {1, 8}, "u"}};
     }},
    {"use_far_outside", ZC_ARGUMENT, "of tensor 'alpha', which has 8",
     [](LayoutBuilder& b) {
       b.uses = {{0, {static_cast<std::size_t>(-4), 8}, "u"}};
     }},
    {"tensor_without_use", ZC_ARGUMENT, "'beta' has no use",
     [](LayoutBuilder& b) {
       b.uses = {{0, {0, 8}, "u"}, {2, {0, 8}, "u"}};
     }},
    {"gap", ZC_ARGUMENT, "'alpha' cover element 3 not at all",
     [](LayoutBuilder& b) {
       b.uses = {{0, {0, 3}, "u"}, {0, {4, 4}, "u"}, {1, {0, 8}, "u"}, {2, {0, 8}, "u"}};
     }},
    {"missing_tail", ZC_ARGUMENT, "'alpha' cover element 7 not at all",
     [](LayoutBuilder& b) {
       b.uses = {{0, {0, 7}, "u"}, {1, {0, 8}, "u"}, {2, {0, 8}, "u"}};
     }},
    {"overlap", ZC_ARGUMENT, "'alpha' cover element 4 twice",
     [](LayoutBuilder& b) {
       b.uses = {{0, {0, 5}, "u"}, {0, {4, 4}, "u"}, {1, {0, 8}, "u"}, {2, {0, 8}, "u"}};
     }},
    {"tie_sliced_otherwise", ZC_ARGUMENT, "'gamma' is tied to 'alpha' but is not sliced like it",
     [](LayoutBuilder& b) {
       b.tensors[2].tied_to = "alpha";
       b.uses = {{0, {0, 8}, "u"}, {1, {0, 8}, "u"}, {2, {0, 4}, "v"}, {2, {4, 4}, "v"}};
     }},
    {"tie_sliced_elsewhere", ZC_ARGUMENT, "'gamma' is tied to 'alpha' but is not sliced like it",
     [](LayoutBuilder& b) {
       b.tensors[2].tied_to = "alpha";
       b.uses = {{0, {0, 4}, "u"}, {0, {4, 4}, "u"}, {1, {0, 8}, "u"}, {2, {0, 2}, "v"}, {2, {2, 6}, "v"}};
     }},
    {"beyond_64_bits", ZC_OVERFLOW, "64 bits",
     [](LayoutBuilder& b) { b.tensors[0].count = b.tensors[1].count = std::size_t{1} << 63; }},
    {"bytes_beyond_64_bits", ZC_OVERFLOW, "64 bits",
     [](LayoutBuilder& b) { b.tensors[0].count = std::size_t{1} << 62; }},
    {"huge_alignment", ZC_OVERFLOW, "64 bits", [](LayoutBuilder& b) { b.alignment_bytes = std::size_t{1} << 63; }},
};

INSTANTIATE_TEST_SUITE_P(LayoutArguments, Refused, testing::ValuesIn(kRefusals),
                         [](const testing::TestParamInfo<Refusal>& row) { return std::string(row.param.name); });

TEST(LayoutArguments, frozen_tensors_may_be_of_any_dtype) {
  LayoutBuilder builder = sound();
  for (const zc_dtype dtype : {ZC_DTYPE_F64, ZC_DTYPE_I64, ZC_DTYPE_I32, ZC_DTYPE_U8, ZC_DTYPE_I8, ZC_DTYPE_F8E4M3}) {
    builder.tensors[1].dtype = dtype;
    builder.tensors[1].frozen = true;
    EXPECT_EQ(builder.make().buffers[1].dtype, dtype);
  }
}

TEST(LayoutArguments, a_layout_that_would_fill_the_memory_is_refused) {
  LayoutBuilder builder;
  builder.ranks = 1'000'000;
  for (std::size_t i = 0; i < 100; ++i)
    builder.tensors.push_back({numbered_name('t', i), numbered_name('u', i), 1 << 30});
  expect_refused(builder, ZC_UNSUPPORTED, "runs");
}

}  // namespace
}  // namespace zerocomm::shard
