/**
 * Collectives on host memory.
 *
 * All ranks of a communicator call the same collectives in the same order with agreeing arguments.
 * Operation, dtypes, op, root, counts and in-place use are compared before any byte moves, always:
 * if they differ, every rank returns MISMATCH with both sides in the text, and the communicator lives.
 *
 * In place means pointer equality at the documented address, and nothing else may overlap: buffers are
 * disjoint, exactly in place, or empty (then pointers are ignored and may be NULL). Out of place, inputs
 * are never written.
 *
 * Common to all:
 *   Errors   ARGUMENT (also for an option that has no meaning for the call), UNSUPPORTED, STATE: found before the
 *            call is announced; nothing happened, but the other ranks wait for this one until their deadline.
 *            MISMATCH. TIMEOUT, PEER_LOST, ABORTED: the communicator is dead, outputs are undefined.
 *   Threads  One collective at a time per communicator handle; a second thread gets STATE.
 *   Stream   options->stream must be NULL (host memory); the call returns when the result is there.
 *   Memory   No allocation.
 *   Result   Bitwise equal on all ranks and for every partition of the data: contributions are combined in
 *            rank order, 16-bit types in f32 with one rounding.
 */
#ifndef ZEROCOMM_COLL_H
#define ZEROCOMM_COLL_H

#include <zerocomm/comm.h>

ZC_BEGIN_DECLS

typedef struct zc_coll_options zc_coll_options;

/** Options of one collective. Zero in a member means its default. */
struct zc_coll_options {
  size_t struct_size;
  int64_t deadline_ns;   /**< default: the communicator's */
  void *stream;          /**< NULL: host memory, blocking. Others are UNSUPPORTED in this build */
  zc_dtype output_dtype; /**< of the two reductions; default: the input's. f32, f16 and bf16 combine freely */
  zc_traffic traffic;    /**< how to book the bytes; default: data */
  double premul;         /**< factor of ZC_OP_PREMUL_SUM; default 1; ZC_PREMUL_ZERO for a true zero */
};

/** Named zero for premul. */
#define ZC_PREMUL_ZERO (-0.0)

/**
 * Reduce across ranks; every rank gets the whole result.
 *
 * Shape      send, recv: count elements.
 * In place   recv == send (same output dtype).
 * Cost       direct: every rank reads its 1/p of p inputs and writes it to p outputs: 2 (p-1)/p count elements moved.
 */
ZC_API ZC_NODISCARD zc_status zc_all_reduce(zc_comm *comm, const void *send, void *recv, size_t count, zc_dtype dtype,
                                            zc_op op, const zc_coll_options *options);

/**
 * Reduce across ranks; rank r gets block r of the result.
 *
 * Shape      send: count * ranks elements, rank-major; recv: count elements.
 * In place   recv == send + rank * count elements (same output dtype); other blocks of send stay untouched.
 * Cost       direct: (p-1) count elements moved per rank.
 */
ZC_API ZC_NODISCARD zc_status zc_reduce_scatter(zc_comm *comm, const void *send, void *recv, size_t count,
                                                zc_dtype dtype, zc_op op, const zc_coll_options *options);

/**
 * zc_reduce_scatter with blocks of different counts.
 *
 * Shape      send: sum of counts elements; recv: counts[rank] elements. `counts` has one entry per rank, any may be 0.
 * In place   recv == send + counts[0] + .. + counts[rank - 1] elements.
 */
ZC_API ZC_NODISCARD zc_status zc_reduce_scatter_v(zc_comm *comm, const void *send, void *recv, const size_t *counts,
                                                  zc_dtype dtype, zc_op op, const zc_coll_options *options);

/**
 * Every rank gets the blocks of all ranks, in rank order.
 *
 * Shape      send: count elements; recv: count * ranks elements.
 * In place   send == recv + rank * count elements.
 * Cost       direct: (p-1) count elements moved per rank.
 */
ZC_API ZC_NODISCARD zc_status zc_all_gather(zc_comm *comm, const void *send, void *recv, size_t count, zc_dtype dtype,
                                            const zc_coll_options *options);

/**
 * zc_all_gather with blocks of different counts.
 *
 * Shape      send: counts[rank] elements; recv: sum of counts elements.
 * In place   send == recv + counts[0] + .. + counts[rank - 1] elements.
 */
ZC_API ZC_NODISCARD zc_status zc_all_gather_v(zc_comm *comm, const void *send, void *recv, const size_t *counts,
                                              zc_dtype dtype, const zc_coll_options *options);

/**
 * Every rank gets the root's elements.
 *
 * Shape      buffer: count elements, input on the root, output elsewhere.
 * Cost       direct: count elements moved by every rank but the root.
 */
ZC_API ZC_NODISCARD zc_status zc_broadcast(zc_comm *comm, void *buffer, size_t count, zc_dtype dtype, int32_t root,
                                           const zc_coll_options *options);

/** No rank returns before every rank has called. */
ZC_API ZC_NODISCARD zc_status zc_barrier(zc_comm *comm, const zc_coll_options *options);

ZC_END_DECLS

#endif
