/**
 * The parameter part of the ZeRO engine alone: parameters in per-rank shards, gathered unit by unit, ahead of their use.
 *
 * A reader's pass, and an owner's change of its shard:
 *
 *     zc_fetcher_begin(f, "generate")
 *       zc_fetcher_acquire(f, unit, tensors, capacity, NULL) ... zc_fetcher_release(f, unit, NULL) ...
 *     zc_fetcher_end(f)
 *
 *     zc_fetcher_update_begin(f); write zc_fetcher_shard, as zc_layout_pieces says or with zc_partition; zc_fetcher_publish(f)
 *
 * The first values come like all others: update_begin, write, publish. Before that, parameters are what the shards hold
 * at creation: zeros, unless they are the caller's.
 *
 * The layout says who owns what; its stage does not count: parameters are cut and gathered as in stage 3. Buckets and
 * gradients have no part in it.
 *
 * Legal programs. Every rank publishes the same number of times, all changed or all unchanged. Between publications a
 * rank may run any number of passes, over any units in any order, but not between its own update_begin and publish.
 * With several fetchers or engines, update_begin and publish come in the same relative order on all ranks, and each is
 * created in the same order.
 *
 * Common to all functions:
 *   Errors   STATE: not legal now; the text says what is open. ARGUMENT. TIMEOUT, PEER_LOST, ABORTED: the
 *            communicator is dead; the shards that this rank owns stay readable until destroy.
 *   Stream   Host memory: pass NULL.
 *   Memory   No buffer is allocated after zc_fetcher_create.
 */
#ifndef ZEROCOMM_FETCHER_H
#define ZEROCOMM_FETCHER_H

#include <zerocomm/zero.h>

ZC_BEGIN_DECLS

typedef struct zc_fetcher zc_fetcher;

/** Options of a fetcher. Zero in a member means its default. Equal on all ranks but for deadline_ns, gather_allocator and the
 *  addresses in shards, or creation is MISMATCH. */
typedef struct zc_fetcher_config {
  size_t struct_size;
  size_t
      budget_bytes; /**< gathered units and prefetch; default: what keeps every unit gathered. BUDGET at creation says
                               what the least is */
  size_t max_held_bytes; /**< gathered bytes of units held at once (nested, tied); default: the most that one unit
                               needs. Exceeding it later is BUDGET at once, never a wait */
  int32_t prefetch;      /**< units to fetch ahead, from the recorded order of the pass; default: as the budget allows;
                               ZC_NONE: none */
  int32_t drop_released; /**< non-zero: a released unit is dropped at once, and fetched again at its next use */
  int32_t poison;        /**< non-zero: dropped units are filled with NaN; default: ZC_POISON; ZC_NONE: never */
  int64_t deadline_ns;   /**< default: the communicator's */
  void *const *shards; /**< by buffer: this rank's shard, zc_buffer_info.shard_count elements (NULL where that is 0), in
                               memory that zc_window_create takes, until every rank has destroyed its fetcher; default: the
                               library allocates them, zeroed */
  zc_allocator gather_allocator; /**< where gathered units lie, all in one piece; default: memory of the library */
  int32_t shared_views;          /**< as in zc_zero_config; not with shards of the caller */
} zc_fetcher_config;

/**
 * Make a fetcher. Collective. All its memory is allocated here.
 *
 * Errors     ARGUMENT: the layout is for another number of ranks, or a shard is missing. MISMATCH: layout or options differ.
 *            BUDGET: the budget does not hold one unit set of max_held_bytes; the text has the least. NO_MEMORY: on all ranks
 *            if gather_allocator of one gives none, with that rank and the bytes. UNSUPPORTED: shared_views with another
 *            placement than flat, or with shards of the caller; ARGUMENT: with an option about gathered units.
 * Memory     Shards and gathered units: nothing for gradients. The layout may go before the fetcher.
 */
ZC_API ZC_NODISCARD zc_status zc_fetcher_create(zc_comm *comm, const zc_layout *layout, const zc_fetcher_config *config,
                                                zc_fetcher **fetcher);

/** Detach, before the communicator. Local: shards of the library that others may still read are freed by the last rank.
 *  NULL is allowed. */
ZC_API zc_status zc_fetcher_destroy(zc_fetcher *fetcher);

/** Open a pass, which is local to this rank. Passes of one name share a recorded order for prefetching. Pins the generation
 *  that this rank published last, and fetches ahead what the pass is known to need first. */
ZC_API ZC_NODISCARD zc_status zc_fetcher_begin(zc_fetcher *fetcher, const char *pass);

/**
 * Get a unit's parameters.
 *
 * Shape      tensors[i]: address of the unit's use i, valid until release, NULL for an empty one; tensor_capacity: room.
 * Waits      Only for owners that have not published the pinned generation; deadline.
 * Errors     BUDGET: as zc_zero_acquire.
 * Threads    Any, at any time. A unit may be acquired several times; it is released as often.
 */
ZC_API ZC_NODISCARD zc_status zc_fetcher_acquire(zc_fetcher *fetcher, size_t unit, const void **tensors,
                                                 size_t tensor_capacity, void *stream);

/** Give a unit back. Fetches ahead, in this call, if there is room and the owners have published. Threads: any. */
ZC_API zc_status zc_fetcher_release(zc_fetcher *fetcher, size_t unit, void *stream);

/** Fetch a unit ahead by hand. AGAIN: no room, or its owners have not published; nothing happened. Threads: any. */
ZC_API ZC_NODISCARD zc_status zc_fetcher_prefetch(zc_fetcher *fetcher, size_t unit);

/** Close the pass. Local. */
ZC_API ZC_NODISCARD zc_status zc_fetcher_end(zc_fetcher *fetcher);

/** This rank's shard of one buffer: zc_buffer_info.shard_count elements. Written between update_begin and publish alone.
 *  The shards of a rank are what zc_partition writes. */
ZC_API zc_status zc_fetcher_shard(const zc_fetcher *fetcher, size_t buffer, void **shard, size_t *count);

/** Open the update: waits until no rank reads the generation that is about to be overwritten. Then the shard may be written. */
ZC_API ZC_NODISCARD zc_status zc_fetcher_update_begin(zc_fetcher *fetcher);

/** Announce the new values. Local. */
ZC_API ZC_NODISCARD zc_status zc_fetcher_publish(zc_fetcher *fetcher, void *stream);

/** Announce that nothing changed. Legal with or without update_begin; waits for nobody. */
ZC_API ZC_NODISCARD zc_status zc_fetcher_publish_unchanged(zc_fetcher *fetcher);

/** Counters of a fetcher since creation. The caller sets struct_size. */
typedef struct zc_fetcher_stats {
  size_t struct_size;
  uint64_t hits;                 /**< acquires that found the unit gathered ahead or kept */
  uint64_t late_hits;            /**< acquires that waited for a fetch already under way */
  uint64_t misses;               /**< acquires that had to fetch */
  uint64_t prefetches;           /**< units fetched ahead */
  uint64_t prefetches_wasted;    /**< of those, dropped unused */
  uint64_t evictions;            /**< units dropped to make room */
  uint64_t gathered_peak_bytes;  /**< most bytes of gathered units, persistent ones included */
  uint64_t budget_bytes;         /**< budget in force */
  uint64_t generation;           /**< last published */
  uint64_t gather_logical_bytes; /**< parameters that the fetches made this rank receive, without padding */
  uint64_t views;                /**< acquires that gave out addresses in the shards of all ranks (shared_views) */
} zc_fetcher_stats;
ZC_API zc_status zc_fetcher_get_stats(const zc_fetcher *fetcher, zc_fetcher_stats *stats);

/** Bytes that a fetcher holds on this rank: a breakdown of what zc_comm_ledger counts too. The caller sets struct_size. */
typedef struct zc_fetcher_ledger {
  size_t struct_size;
  size_t parameter_bytes; /**< shards */
  size_t gather_bytes;    /**< gathered units: the budget */
  size_t control_bytes;   /**< words of the fetcher's window */
  size_t total_bytes;
  size_t caller_parameter_bytes; /**< shards in memory of the caller: in no other figure */
  size_t caller_gather_bytes;    /**< gathered units in memory of the caller: in the budget, in no other figure */
} zc_fetcher_ledger;
ZC_API zc_status zc_fetcher_get_ledger(const zc_fetcher *fetcher, zc_fetcher_ledger *ledger);

ZC_END_DECLS

#endif
