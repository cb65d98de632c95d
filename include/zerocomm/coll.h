/**
 * Collectives on host memory.
 *
 * One function, two forms. Blocking (options->request is NULL): all ranks of a communicator call the same collectives in
 * the same order. With a request: the call returns at once, and any number may be in flight; it meets the other ranks'
 * call of the same tag and the same turn of that tag, whatever else is called in between (request.h).
 *
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
 *   Threads  One blocking collective at a time per communicator handle; a second thread gets STATE. Requests may be made
 *            by any thread; those of one tag are matched in the order in which they were made.
 *   Stream   options->stream must be NULL (host memory); a blocking call returns when the result is there.
 *   Memory   No allocation, but for a tag that was never used before (request.h).
 *   Result   Bitwise equal on all ranks and for every partition of the data: contributions are combined in
 *            rank order, 16-bit types in f32 with one rounding. With `reproducible` off that is promised for
 *            types and operations whose result does not depend on order, and for each algorithm between its own runs.
 */
#ifndef ZEROCOMM_COLL_H
#define ZEROCOMM_COLL_H

#include <zerocomm/comm.h>

ZC_BEGIN_DECLS

typedef struct zc_coll_options zc_coll_options;

/** Options of one collective. Zero in a member means its default. */
struct zc_coll_options {
  size_t struct_size;
  int64_t deadline_ns;         /**< default: the communicator's */
  void *stream;                /**< NULL: host memory, blocking. Others are UNSUPPORTED in this build */
  zc_dtype output_dtype;       /**< of the reductions; default: the input's. f32, f16 and bf16 combine freely */
  zc_traffic traffic;          /**< how to book the bytes; default: data */
  double premul;               /**< factor of ZC_OP_PREMUL_SUM; default 1; ZC_PREMUL_ZERO for a true zero */
  struct zc_request **request; /**< not NULL: return at once, with the request here, or NULL after a refusal */
  int64_t tag;                 /**< with a request, and of zc_send and zc_recv: which calls meet. Any number */
  const char *algorithm;       /**< name of a schedule that moves the data, such as "ring"; default: the native form.
                                    zc_schedule_algorithm lists them. Same on all ranks */
  const struct zc_schedule *schedule; /**< the caller's own schedule instead: verified, for this collective, ranks and
                                           root. Read until the call is over */
  zc_switch reproducible; /**< ZC_OFF: an algorithm may combine contributions in an order of its own; default: the
                               communicator's */
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

/**
 * Reduce across ranks; the root gets the result.
 *
 * Shape      send: count elements; recv: count elements on the root, ignored elsewhere.
 * In place   recv == send on the root (same output dtype).
 * Cost       direct: every rank reads its 1/p of p inputs and writes it to the root.
 */
ZC_API ZC_NODISCARD zc_status zc_reduce(zc_comm *comm, const void *send, void *recv, size_t count, zc_dtype dtype,
                                        zc_op op, int32_t root, const zc_coll_options *options);

/**
 * Every rank sends a block to every rank.
 *
 * Shape      send: count * ranks elements, block i goes to rank i; recv: count * ranks elements, block i comes from rank i.
 * In place   recv == send: blocks change places. Always through staging.
 * Cost       direct: (p-1) count elements moved per rank.
 */
ZC_API ZC_NODISCARD zc_status zc_all_to_all(zc_comm *comm, const void *send, void *recv, size_t count, zc_dtype dtype,
                                            const zc_coll_options *options);

/**
 * zc_all_to_all with blocks of different counts.
 *
 * Shape      send: sum of send_counts elements; recv: sum of recv_counts elements, both in rank order without gaps.
 *            What rank a sends to b is what b expects from a: else every rank returns MISMATCH that names the two, and no
 *            byte of data has moved.
 * In place   recv == send, where send_counts and recv_counts are equal.
 * Memory     The counts are read until the call is over; those of a request are copied.
 */
ZC_API ZC_NODISCARD zc_status zc_all_to_all_v(zc_comm *comm, const void *send, const size_t *send_counts, void *recv,
                                              const size_t *recv_counts, zc_dtype dtype,
                                              const zc_coll_options *options);

/**
 * The root gets the blocks of all ranks, in rank order.
 *
 * Shape      send: count elements; recv: count * ranks elements on the root, ignored elsewhere.
 * In place   on the root, send == recv + root * count elements.
 * Cost       direct: (p-1) count elements moved by the root.
 */
ZC_API ZC_NODISCARD zc_status zc_gather_to_root(zc_comm *comm, const void *send, void *recv, size_t count,
                                                zc_dtype dtype, int32_t root, const zc_coll_options *options);

/**
 * Every rank gets its block of the root's elements.
 *
 * Shape      send: count * ranks elements on the root, ignored elsewhere; recv: count elements.
 * In place   on the root, recv == send + root * count elements.
 * Cost       direct: count elements moved by every rank but the root.
 */
ZC_API ZC_NODISCARD zc_status zc_scatter_from_root(zc_comm *comm, const void *send, void *recv, size_t count,
                                                   zc_dtype dtype, int32_t root, const zc_coll_options *options);

/**
 * Send elements to one rank, which receives them with zc_recv. The n-th send of a tag meets the n-th receive of that tag from
 * this rank.
 *
 * Shape      send: count elements. A receive of another count or dtype is MISMATCH on both sides, and nothing moved.
 * Waits      Until the receiver has the elements; there is no buffering. If all requests of this rank are in use, for a free
 *            one first, within the same deadline. With a request: not at all.
 * Errors     ARGUMENT: to itself. TIMEOUT names peer and tag. Options: request, tag, deadline_ns and traffic alone.
 * Threads    Any, also beside a collective.
 */
ZC_API ZC_NODISCARD zc_status zc_send(zc_comm *comm, const void *send, size_t count, zc_dtype dtype, int32_t to,
                                      const zc_coll_options *options);

/** Receive what rank `from` sends; see zc_send. Shape: recv: count elements. */
ZC_API ZC_NODISCARD zc_status zc_recv(zc_comm *comm, void *recv, size_t count, zc_dtype dtype, int32_t from,
                                      const zc_coll_options *options);

/** No rank returns before every rank has called. */
ZC_API ZC_NODISCARD zc_status zc_barrier(zc_comm *comm, const zc_coll_options *options);

ZC_END_DECLS

#endif
