/**
 * Element types, reduction operations, and small values shared by all headers.
 *
 * In option structs a zero always means "default". Every zero that has a meaning
 * of its own therefore has a named constant that is not zero (ZC_NONE, ZC_POLL).
 */
#ifndef ZEROCOMM_TYPES_H
#define ZEROCOMM_TYPES_H

#include <zerocomm/status.h>

#include <stddef.h>
#include <stdint.h>

ZC_BEGIN_DECLS

/** Type of an element. The numbers are part of the interface. */
typedef enum zc_dtype {
  ZC_DTYPE_NONE = 0, /**< not set: "the same as the input" where a second dtype may be given */
  ZC_DTYPE_F64 = 1,
  ZC_DTYPE_F32 = 2,
  ZC_DTYPE_F16 = 3,
  ZC_DTYPE_BF16 = 4,
  ZC_DTYPE_I64 = 5,
  ZC_DTYPE_I32 = 6,
  ZC_DTYPE_U8 = 7,
  ZC_DTYPE_I8 = 8,
  ZC_DTYPE_F8E4M3 = 9,             /**< bytes that are stored and moved, never computed with */
  ZC_DTYPE_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_dtype;

/**
 * Reduction over ranks.
 *
 * Sums start at the contribution of rank 0 and add ranks in order. 16-bit types
 * accumulate in f32 and are rounded once; AVG is the ordered sum, one division,
 * one rounding. Integers wrap; AVG of integers is UNSUPPORTED. MIN and MAX
 * propagate NaN and order -0 before +0.
 */
typedef enum zc_op {
  ZC_OP_NONE = 0, /**< not set: an error where an operation is needed */
  ZC_OP_SUM = 1,
  ZC_OP_AVG = 2,
  ZC_OP_MIN = 3,
  ZC_OP_MAX = 4,
  ZC_OP_PROD = 5,
  ZC_OP_PREMUL_SUM = 6,         /**< every contribution times options->premul, then SUM */
  ZC_OP_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_op;

/** A yes or no with a default. */
typedef enum zc_switch {
  ZC_SWITCH_DEFAULT = 0,
  ZC_ON = 1,
  ZC_OFF = 2,
  ZC_SWITCH_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_switch;

/** "No rank", "no root", "no limit": a value that no rank or byte count has. */
#define ZC_NONE (-1)

/** A deadline that has passed already: look once, never wait. Default (0) is the communicator's. */
#define ZC_POLL ((int64_t)-1)

/** A run of elements. */
typedef struct zc_span {
  size_t offset; /**< elements before the run */
  size_t count;  /**< elements in the run */
} zc_span;

/** Bytes of one element of `dtype`; 0 if `dtype` is none. */
ZC_API size_t zc_dtype_bytes(zc_dtype dtype);

/** Name such as "bf16"; "none" if `dtype` is none. */
ZC_API const char *zc_dtype_name(zc_dtype dtype);

/** Name such as "sum"; "none" if `op` is none. */
ZC_API const char *zc_op_name(zc_op op);

ZC_END_DECLS

#endif
