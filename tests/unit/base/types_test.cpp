// Element types and operations.
#include <zerocomm/types.h>

#include <gtest/gtest.h>

namespace {

TEST(Types, have_bytes_and_names) {
  struct Row {
    zc_dtype dtype;
    std::size_t bytes;
    const char* name;
  };
  for (const Row& row : {Row{ZC_DTYPE_F64, 8, "f64"},
                         {ZC_DTYPE_F32, 4, "f32"},
                         {ZC_DTYPE_F16, 2, "f16"},
                         {ZC_DTYPE_BF16, 2, "bf16"},
                         {ZC_DTYPE_I64, 8, "i64"},
                         {ZC_DTYPE_I32, 4, "i32"},
                         {ZC_DTYPE_U8, 1, "u8"},
                         {ZC_DTYPE_I8, 1, "i8"},
                         {ZC_DTYPE_F8E4M3, 1, "f8e4m3"},
                         {ZC_DTYPE_NONE, 0, "none"},
                         {static_cast<zc_dtype>(15), 0, "none"}}) {
    EXPECT_EQ(zc_dtype_bytes(row.dtype), row.bytes) << row.name;
    EXPECT_STREQ(zc_dtype_name(row.dtype), row.name);
  }
}

TEST(Types, operations_have_names) {
  const char* const names[] = {"none", "sum", "avg", "min", "max", "prod", "premul_sum", "none"};
  for (int op = 0; op < 8; ++op) EXPECT_STREQ(zc_op_name(static_cast<zc_op>(op)), names[op]);
}

}  // namespace
