/**
 * The gradient part of the ZeRO engine alone: gradients of a layout, reduced in buckets into shards.
 *
 * For an optimizer with parameters and state of its own. One step:
 *
 *     zc_reducer_begin(r, ZC_PHASE_ONLY)
 *       backward:  zc_reducer_grad_ready(r, use, gradient, NULL) ...     in any order, from any thread
 *     zc_reducer_end(r)
 *     zc_reducer_norm(r, &norm); zc_reducer_scale(r, factor)             if wanted
 *     the optimizer reads zc_reducer_output or zc_reducer_pieces, until the next begin
 *
 * The layout says what is reduced and who owns what. Of its stage only this counts: in stage 0 every rank gets all
 * reduced gradients, in stages 1 to 3 its own shard. Sums have the same bits as those of an engine of that layout.
 *
 * Legal programs. Passes are the same in number and phase on all ranks; in each, every rank reports every trainable
 * use once, ready or absent, in any order. Several reducers, fetchers and engines may share a communicator; each is
 * created in the same order on all ranks.
 *
 * Common to all functions:
 *   Errors   STATE: not legal now; the text says what is open. ARGUMENT. TIMEOUT, PEER_LOST, ABORTED: the communicator
 *            is dead. After MISMATCH inside a pass the reducer can only be destroyed; the communicator lives.
 *   Stream   Host memory: pass NULL.
 *   Memory   No buffer is allocated after zc_reducer_create.
 */
#ifndef ZEROCOMM_REDUCER_H
#define ZEROCOMM_REDUCER_H

#include <zerocomm/zero.h>

ZC_BEGIN_DECLS

typedef struct zc_reducer zc_reducer;

/** Options of a reducer. Zero in a member means its default. Equal on all ranks but for deadline_ns and pre_reduce, or
 *  creation is MISMATCH. */
typedef struct zc_reducer_config {
  size_t struct_size;
  int32_t gradient_slots; /**< buckets in flight; default 2 */
  int32_t micro_steps;    /**< most passes in a step; default 1 */
  zc_accumulation accumulation;
  zc_absent absent;
  zc_launch launch;
  zc_slices slices;
  int32_t poison;              /**< non-zero: free slots are filled with NaN; default: ZC_POISON; ZC_NONE: never */
  double gradient_divisor;     /**< default: ranks times passes of the step */
  int64_t deadline_ns;         /**< default: the communicator's */
  zc_pre_reduce_fn pre_reduce; /**< sees every gradient before it is reduced; default: none */
  void *pre_reduce_context;
} zc_reducer_config;

/**
 * Make a reducer. Collective. All its memory is allocated here.
 *
 * Errors     ARGUMENT: the layout is for another number of ranks. MISMATCH: layout or options differ. UNSUPPORTED: shard
 *            gradients that are not f32. NO_MEMORY.
 * Memory     Reduced gradients in f32 and the slots: nothing for parameters. The layout may go before the reducer.
 */
ZC_API ZC_NODISCARD zc_status zc_reducer_create(zc_comm *comm, const zc_layout *layout, const zc_reducer_config *config,
                                                zc_reducer **reducer);

/** Detach, before the communicator. Local. NULL is allowed. */
ZC_API zc_status zc_reducer_destroy(zc_reducer *reducer);

/** Open a pass: ONLY, or FIRST, any MIDDLE, LAST. From here on the reduced gradients of the step before are replaced.
 *  ARGUMENT: EVAL. */
ZC_API ZC_NODISCARD zc_status zc_reducer_begin(zc_reducer *reducer, zc_phase phase);

/**
 * Hand over one use's gradient.
 *
 * Shape      gradient: the use's elements, in the tensor's gradient dtype; it stays where it is, unchanged, until end. NULL is
 *            allowed for an empty use.
 *            The parts of a tied tensor are added by the library, in the order in which the uses are listed.
 * Waits      Never for another rank.
 * Threads    Any, at any time inside the pass.
 */
ZC_API ZC_NODISCARD zc_status zc_reducer_grad_ready(zc_reducer *reducer, size_t use, const void *gradient,
                                                    void *stream);

/** Say that a use has no gradient in this pass: zeros. Threads: any. */
ZC_API ZC_NODISCARD zc_status zc_reducer_grad_absent(zc_reducer *reducer, size_t use);

/**
 * Close the pass. Collective; returns when every bucket is reduced into all shards.
 *
 * Errors     ARGUMENT: gradients are missing and zc_reducer_config.absent does not make them zeros; the pass stays open.
 *            MISMATCH: a rank runs another phase. TIMEOUT names bucket, rank and tensors.
 */
ZC_API ZC_NODISCARD zc_status zc_reducer_end(zc_reducer *reducer);

/**
 * This rank's reduced gradients of one buffer, as one array.
 *
 * Shape      *count: zc_buffer_info.shard_count elements, where zc_layout_pieces says what is what; in stage 0 those of all
 *            ranks. Elements that belong to no tensor are zero.
 * Errors     ARGUMENT: the buffer is frozen.
 * Memory     The reducer's; written by others between begin and end of a pass, and the caller's to change after it.
 */
ZC_API zc_status zc_reducer_output(const zc_reducer *reducer, size_t buffer, float **gradients, size_t *count);

/**
 * The same as runs of real elements, of all buffers: those that this rank owns, or in stage 0 all.
 *
 * state_offset runs from 0 to *state_count without gaps. parameter and master are NULL.
 * Memory     The array belongs to the reducer.
 */
ZC_API zc_status zc_reducer_pieces(const zc_reducer *reducer, const zc_zero_piece **pieces, size_t *piece_count,
                                   size_t *state_count);

/** Norm of all reduced gradients after a step's last pass, as zc_zero_norm. Collective; control traffic. */
ZC_API ZC_NODISCARD zc_status zc_reducer_norm(zc_reducer *reducer, zc_norm *norm);

/** Multiply this rank's reduced gradients by (float)factor. Local. */
ZC_API ZC_NODISCARD zc_status zc_reducer_scale(zc_reducer *reducer, double factor);

/** Which uses keep a bucket from being complete on a rank, in the present pass; as zc_zero_blockers. Threads: always safe. */
ZC_API zc_status zc_reducer_blockers(const zc_reducer *reducer, size_t bucket, int32_t rank, size_t *uses,
                                     size_t capacity, size_t *count);

/** Counters of a reducer since creation. The caller sets struct_size. */
typedef struct zc_reducer_stats {
  size_t struct_size;
  uint64_t buckets_reduced;
  uint64_t buckets_before_end;        /**< reduced before this rank called end */
  uint64_t buckets_padding_bytes;     /**< padding carried by the buckets of one pass */
  uint64_t slices_own, slices_helped; /**< slices this rank reduced: of its own shard, of others' */
  uint64_t slot_peak_bytes;           /**< most bytes of slots in use at once */
  uint64_t reduce_logical_bytes;      /**< gradients that the reductions made this rank receive, without padding */
} zc_reducer_stats;
ZC_API zc_status zc_reducer_get_stats(const zc_reducer *reducer, zc_reducer_stats *stats);

/** Bytes that a reducer holds on this rank: a breakdown of what zc_comm_ledger counts too. The caller sets struct_size. */
typedef struct zc_reducer_ledger {
  size_t struct_size;
  size_t gradient_bytes; /**< reduced gradients, and local sums where passes are added up first */
  size_t slot_bytes;
  size_t control_bytes; /**< words of the reducer's window */
  size_t total_bytes;
} zc_reducer_ledger;
ZC_API zc_status zc_reducer_get_ledger(const zc_reducer *reducer, zc_reducer_ledger *ledger);

ZC_END_DECLS

#endif
