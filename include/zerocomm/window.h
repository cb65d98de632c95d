/**
 * Windows: memory of every rank that the others can reach, and words to signal with.
 *
 * Each rank brings bytes of its own choosing and the same number of 64-bit words. Word 0 is the rank's
 * *generation*: it only rises, and says which version of the bytes may be read. All words are atomic and
 * sequentially consistent; writes and additions wake whoever waits.
 */
#ifndef ZEROCOMM_WINDOW_H
#define ZEROCOMM_WINDOW_H

#include <zerocomm/coll.h>

ZC_BEGIN_DECLS

typedef struct zc_window zc_window;

/** What this rank brings. Zero in a member means its default. */
typedef struct zc_window_config {
  size_t struct_size;
  size_t bytes; /**< of this rank; may differ between ranks and be 0 */
  void *memory; /**< `bytes` bytes that stay until every rank has destroyed its window: of thread ranks any memory, of
                          processes memory of zc_mem_alloc; default: the library allocates them, zeroed, and frees
                          them with the last user */
  size_t word_count;  /**< words of every rank, equal on all; default 1 */
  int32_t contiguous; /**< non-zero, on all ranks: the parts of all ranks lie end to end, in rank order, in one mapping;
                           the library allocates them */
  const int32_t
      *descriptor; /**< instead of `memory`: a memfd of the caller, sealed with F_SEAL_SHRINK, of which the window is
                                  the `bytes` bytes at descriptor_offset_bytes; every rank maps them. The caller may
                                  close it afterwards */
  uint64_t descriptor_offset_bytes;
} zc_window_config;

/**
 * Make a window. Collective.
 *
 * Errors     As a collective; MISMATCH if word_count differs; NO_MEMORY on all ranks if one cannot get its memory.
 */
ZC_API ZC_NODISCARD zc_status zc_window_create(zc_comm *comm, const zc_window_config *config, zc_window **window);

/** Detach, before the communicator. Local: memory of the library stays until the last rank has detached. NULL is allowed. */
ZC_API zc_status zc_window_destroy(zc_window *window);

/** Address and bytes of a rank's part, for direct access; *memory is NULL if it has none. UNSUPPORTED if it cannot be mapped. */
ZC_API zc_status zc_window_ptr(zc_window *window, int32_t rank, void **memory, size_t *bytes);

/**
 * All parts of a contiguous window, once every rank has come: an all-gather without a copy. Collective, blocking.
 *
 * Shape      *all: address of rank 0's part; the parts of all ranks lie there end to end. *bytes: of all of them.
 * Agreement  MISMATCH unless all ranks name the same window.
 * Waits      Until all ranks have called. What a rank wrote to its part before its call is seen after it.
 * Errors     As a collective; UNSUPPORTED: the window is not contiguous. Options: deadline_ns alone.
 * Threads    As a collective on the window's communicator.
 * Memory     To be read until the owners write again, which they do when they know that nobody reads any more: behind a barrier,
 *            or another call that all ranks have entered.
 * Cost       A barrier. No byte is moved, and none is counted.
 */
ZC_API ZC_NODISCARD zc_status zc_window_view(zc_window *window, const void **all, size_t *bytes,
                                             const zc_coll_options *options);

/** Announce generation `generation` of this rank's bytes: writes made before are seen by whoever waits for it. STATE if it
 *  would fall. Threads: any. */
ZC_API zc_status zc_window_signal(zc_window *window, uint64_t generation);

/** Wait until `rank` has announced `generation` or a later one. TIMEOUT names the rank; AGAIN with ZC_POLL. The two callbacks of
 *  the options are for zc_comm_wait: ARGUMENT here. */
ZC_API zc_status zc_window_wait(zc_window *window, int32_t rank, uint64_t generation, const zc_wait_options *options);

/**
 * Copy bytes of a rank's part, once it has announced `generation` (0: at once).
 *
 * Errors     ARGUMENT: outside the part. TIMEOUT names the rank; nothing was copied.
 * Threads    Any. The owner keeps the bytes unchanged until it knows that its readers are done.
 * Cost       `bytes` moved, booked to this rank.
 */
ZC_API ZC_NODISCARD zc_status zc_window_read(zc_window *window, int32_t rank, size_t offset_bytes, void *destination,
                                             size_t bytes, uint64_t generation, const zc_wait_options *options);

/** Read a word of a rank. */
ZC_API zc_status zc_window_load(zc_window *window, int32_t rank, size_t word, uint64_t *value);

/** Write a word of a rank and wake whoever waits. */
ZC_API zc_status zc_window_store(zc_window *window, int32_t rank, size_t word, uint64_t value);

/** Add to a word of a rank; *before (may be NULL) is what it held. */
ZC_API zc_status zc_window_add(zc_window *window, int32_t rank, size_t word, uint64_t delta, uint64_t *before);

/** Replace `expected` by `desired`; *before is what the word held: equal to `expected` if it was replaced. Wakes nobody. */
ZC_API zc_status zc_window_compare_swap(zc_window *window, int32_t rank, size_t word, uint64_t expected,
                                        uint64_t desired, uint64_t *before);

/** One reduction over windows. Zero in a member means its default. */
typedef struct zc_window_reduction {
  size_t struct_size;
  const int64_t *source_bytes; /**< per rank: offset in its part, or ZC_NONE for a contribution of zeros */
  size_t count;                /**< elements */
  zc_dtype dtype;              /**< of the contributions */
  zc_dtype output_dtype;       /**< default: dtype */
  double divisor;              /**< true division after the sum; default: none */
  int32_t accumulate;          /**< non-zero: the sum is added to what the destination holds, before the division */
  int32_t destination;         /**< needed: a rank, or ZC_NONE for the same offset on every rank */
  size_t destination_bytes;    /**< offset in the destination's part of `to` */
  zc_window *to;               /**< window of the destination; default: the window of the sources */
} zc_window_reduction;

/**
 * Sum one run of elements over all ranks' parts, in rank order, and store it in a window.
 *
 * One-sided: the caller knows that the sources are complete and that nobody else touches the destination. The
 * destination may be exactly one of the sources (in place), with the same element size; other overlap is not detected.
 *
 * Cost       Reads from and writes to other ranks are booked to this rank.
 */
ZC_API ZC_NODISCARD zc_status zc_window_reduce(zc_window *window, const zc_window_reduction *reduction);

ZC_END_DECLS

#endif
