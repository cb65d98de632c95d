/**
 * Exact sums of squares: norms that depend on no order, split, shard or rank count.
 */
#ifndef ZEROCOMM_NORM_H
#define ZEROCOMM_NORM_H

#include <zerocomm/types.h>

ZC_BEGIN_DECLS

/** Words of a zc_exact_sum. */
#define ZC_EXACT_SUM_WORDS 22

/**
 * A fixed-point number wide enough for any count of squares of f32, f16 and bf16, and two counts for infinities and NaNs.
 *
 * Start from zeros. To add over ranks, sum the words as ZC_DTYPE_I64 with ZC_OP_SUM: integers are exact.
 */
typedef struct zc_exact_sum {
  int64_t words[ZC_EXACT_SUM_WORDS];
} zc_exact_sum;

/** A norm and what it was made of. The caller sets struct_size. */
typedef struct zc_norm {
  size_t struct_size;
  double norm;                  /**< square root of sum_squares */
  double sum_squares;           /**< exact sum, rounded once */
  int64_t nan_count, inf_count; /**< elements; with any, norm is NaN or infinite */
} zc_norm;

/** Add the squares of `count` elements of f32, f16 or bf16. UNSUPPORTED: another dtype. Pure. */
ZC_API ZC_NODISCARD zc_status zc_exact_sum_add_squares(zc_exact_sum *sum, const void *elements, size_t count,
                                                       zc_dtype dtype);

/** Round a sum, once. Pure. */
ZC_API ZC_NODISCARD zc_status zc_exact_sum_round(const zc_exact_sum *sum, zc_norm *norm);

ZC_END_DECLS

#endif
