// Sizes and names of element types and operations.
#include <zerocomm/types.h>

namespace {

struct DtypeRow {
  zc_dtype dtype;
  size_t bytes;
  const char* name;
};
constexpr DtypeRow kDtypes[] = {
    {ZC_DTYPE_F64, 8, "f64"},   {ZC_DTYPE_F32, 4, "f32"}, {ZC_DTYPE_F16, 2, "f16"},
    {ZC_DTYPE_BF16, 2, "bf16"}, {ZC_DTYPE_I64, 8, "i64"}, {ZC_DTYPE_I32, 4, "i32"},
    {ZC_DTYPE_U8, 1, "u8"},     {ZC_DTYPE_I8, 1, "i8"},   {ZC_DTYPE_F8E4M3, 1, "f8e4m3"},
};

struct OpRow {
  zc_op op;
  const char* name;
};
constexpr OpRow kOps[] = {
    {ZC_OP_SUM, "sum"}, {ZC_OP_AVG, "avg"},   {ZC_OP_MIN, "min"},
    {ZC_OP_MAX, "max"}, {ZC_OP_PROD, "prod"}, {ZC_OP_PREMUL_SUM, "premul_sum"},
};

}  // namespace

size_t zc_dtype_bytes(zc_dtype dtype) {
  for (const DtypeRow& row : kDtypes)
    if (row.dtype == dtype) return row.bytes;
  return 0;
}

const char* zc_dtype_name(zc_dtype dtype) {
  for (const DtypeRow& row : kDtypes)
    if (row.dtype == dtype) return row.name;
  return "none";
}

const char* zc_op_name(zc_op op) {
  for (const OpRow& row : kOps)
    if (row.op == op) return row.name;
  return "none";
}
