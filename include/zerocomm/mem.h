/**
 * Memory that other ranks can reach.
 */
#ifndef ZEROCOMM_MEM_H
#define ZEROCOMM_MEM_H

#include <zerocomm/comm.h>

ZC_BEGIN_DECLS

/**
 * Allocate zeroed memory that may be given to zc_window_create, aligned to 4096 bytes.
 *
 * Errors     NO_MEMORY: the text says how many bytes were wanted.
 * Threads    Any.
 */
ZC_API ZC_NODISCARD zc_status zc_mem_alloc(zc_comm *comm, size_t bytes, void **memory);

/**
 * Where the library takes memory that only this rank uses, if not from itself. Both functions or none.
 *
 * allocate   `bytes` (never 0) bytes at a multiple of alignment_bytes, a power of two; any content. NULL: there are none.
 * deallocate What allocate gave, with the same `bytes`, once.
 * Threads    Called by the thread that creates or destroys the object that the memory is for, under no lock.
 */
typedef struct zc_allocator {
  void *(*allocate)(void *context, size_t bytes, size_t alignment_bytes);
  void (*deallocate)(void *context, void *memory, size_t bytes);
  void *context;
} zc_allocator;

/** Free memory of zc_mem_alloc. Windows over it must be gone on all ranks. NULL is allowed. */
ZC_API zc_status zc_mem_free(zc_comm *comm, void *memory);

/**
 * Convert elements, one rounding each, to nearest even.
 *
 * Shape      source, destination: count elements of f64, f32, f16 or bf16; disjoint, or equal with equal dtypes.
 * Errors     UNSUPPORTED: another dtype.
 * Threads    Any; pure.
 */
ZC_API ZC_NODISCARD zc_status zc_cast(const void *source, zc_dtype source_dtype, void *destination,
                                      zc_dtype destination_dtype, size_t count);

/**
 * Combine arrays of this rank, in the order given: what a reduction over ranks does, without ranks.
 *
 * Shape      inputs: input_count arrays of count elements, NULL for zeros; output: count elements, apart from the inputs or
 *            exactly one of them.
 * accumulate Non-zero: the result is added to what output holds.
 * Errors     ARGUMENT; UNSUPPORTED as for zc_all_reduce, and for PREMUL_SUM.
 * Threads    Any; pure.
 */
ZC_API ZC_NODISCARD zc_status zc_reduce_local(const void *const *inputs, size_t input_count, void *output, size_t count,
                                              zc_dtype dtype, zc_dtype output_dtype, zc_op op, int32_t accumulate);

ZC_END_DECLS

#endif
