/**
 * The ZeRO engine: parameters, gradients and optimizer state of a layout, cut over the ranks of a communicator.
 *
 * One step of training, at every stage:
 *
 *     zc_zero_begin(z, "train", ZC_PHASE_ONLY)
 *       forward:   zc_zero_acquire(z, unit, tensors) ... zc_zero_release(z, unit)
 *       backward:  zc_zero_acquire ... zc_zero_grad_ready(z, use, gradient) ... zc_zero_release
 *     zc_zero_end(z)
 *     zc_zero_norm(z, &norm); zc_zero_scale(z, factor)
 *     zc_zero_update_begin(z); the optimizer works on zc_zero_pieces; zc_zero_cast(z); zc_zero_publish(z)
 *
 * Legal programs. Every rank publishes the same number of times, all changed or all unchanged. Between
 * publications a rank may run any number of passes without gradients, over any units in any order, but not
 * between its own update_begin and publish. Passes with gradients are the same in number and phase on all
 * ranks; inside one, every rank reports every trainable use once, ready or absent, in any order. With several
 * engines, update_begin and publish come in the same relative order on all ranks.
 *
 * Common to all functions:
 *   Errors   STATE: not legal now; the text says what is open. ARGUMENT. TIMEOUT, PEER_LOST, ABORTED: the
 *            communicator is dead; the shards that this rank owns stay readable until destroy. After MISMATCH
 *            inside a gradient pass the engine can only be destroyed; the communicator lives.
 *   Stream   Host memory: pass NULL.
 *   Memory   No buffer is allocated after zc_zero_create, but for the staging of zc_zero_load while it runs.
 */
#ifndef ZEROCOMM_ZERO_H
#define ZEROCOMM_ZERO_H

#include <zerocomm/comm.h>
#include <zerocomm/layout.h>
#include <zerocomm/mem.h>
#include <zerocomm/norm.h>

ZC_BEGIN_DECLS

typedef struct zc_zero zc_zero;

/** Role of a pass in a step. It must be said: the library guesses no accumulation boundary. */
typedef enum zc_phase {
  ZC_PHASE_NONE = 0,  /**< not set: an error */
  ZC_PHASE_EVAL = 1,  /**< no gradients; local to this rank */
  ZC_PHASE_ONLY = 2,  /**< the only gradient pass of its step */
  ZC_PHASE_FIRST = 3, /**< the first of several */
  ZC_PHASE_MIDDLE = 4,
  ZC_PHASE_LAST = 5,
  ZC_PHASE_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_phase;

/** How the gradients of several passes of one step are combined. Bits agree over stages within one order. */
typedef enum zc_accumulation {
  ZC_ACCUMULATION_DEFAULT = 0,   /**< reduce_each */
  ZC_ACCUMULATE_REDUCE_EACH = 1, /**< every pass is reduced and added to the shards */
  ZC_ACCUMULATE_FIRST = 2, /**< passes are added up locally in f32; the last one reduces. Needs a full local copy */
  ZC_ACCUMULATION_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_accumulation;

/** What a gradient that was never reported means at the end of a pass. */
typedef enum zc_absent {
  ZC_ABSENT_DEFAULT = 0,            /**< error */
  ZC_ABSENT_ERROR = 1,              /**< ARGUMENT, naming tensor and rank; the pass stays open */
  ZC_ABSENT_ZERO = 2,               /**< zeros */
  ZC_ABSENT_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_absent;

/** When a complete bucket is handed to the reduction. */
typedef enum zc_launch {
  ZC_LAUNCH_DEFAULT = 0, /**< when complete */
  ZC_LAUNCH_COMPLETE = 1,
  ZC_LAUNCH_END = 2,                /**< all in zc_zero_end */
  ZC_LAUNCH_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_launch;

/** Who reduces which slice of a bucket. The bits do not depend on it. */
typedef enum zc_slices {
  ZC_SLICES_DEFAULT = 0,            /**< claimed */
  ZC_SLICES_CLAIMED = 1,            /**< whoever is inside the library takes the next slice */
  ZC_SLICES_STATIC = 2,             /**< every rank reduces what it owns: traffic per rank is the formula's */
  ZC_SLICES_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_slices;

/** One gradient of this rank on its way into the reduction: real elements of one stored use. */
typedef struct zc_gradient_piece {
  size_t struct_size;   /**< set by the library */
  size_t use;           /**< of a tied tensor: the use that stores it; its parts are added up already */
  size_t tensor;        /**< of that use */
  size_t tensor_offset; /**< first element in the tensor */
  size_t count;         /**< elements, at least 1 */
  zc_dtype dtype;       /**< gradient dtype; F32 where passes are added up first */
  void *data;           /**< the copy in the library's memory: read and written at will */
} zc_gradient_piece;

/**
 * What a caller does to a gradient before it is summed over ranks: clipping, noise, quantisation.
 *
 * Called      Once for every piece of every pass that reduces, on every rank, when the piece is in its slot and before
 *             any other rank can see it. With ZC_ACCUMULATE_FIRST that is once in a step, for the sum of its passes.
 *             Not for a piece that no part was reported ready of: that one brings zeros.
 * Memory      The caller's gradient stays as it is, unless it was written to zc_zero_grad_buffer: that is the slot.
 * Threads     Any thread of the process that is inside the library, under no lock; for several pieces at once.
 *             It must not call this library, nor throw: others may wait for it.
 */
typedef void (*zc_pre_reduce_fn)(void *context, const zc_gradient_piece *piece);

/** Options of an engine. Zero in a member means its default. Equal on all ranks but for deadline_ns, pre_reduce and
 *  gather_allocator, or creation is MISMATCH. Members about gathered units have no effect in stages 0 to 2, where nothing
 *  is gathered. */
typedef struct zc_zero_config {
  size_t struct_size;
  size_t budget_bytes;   /**< gathered units, prefetch, gradient slots; default: what keeps every unit gathered.
                               Persistent units are inside it. BUDGET at creation says what the least is */
  size_t max_held_bytes; /**< gathered bytes of units held at once (nested, tied); default: the most that one unit
                               needs. Exceeding it later is BUDGET at once, never a wait */
  int32_t
      gradient_slots;  /**< buckets in flight, stages 0, 2, 3; default 2. In stage 1 every bucket has room of its own */
  int32_t micro_steps; /**< most gradient passes in a step; default 1 */
  zc_accumulation accumulation;
  zc_absent absent;
  zc_launch launch;
  zc_slices slices;
  int32_t prefetch;      /**< units to fetch ahead, from the recorded order of the pass; default: as the budget
                               allows; ZC_NONE: none */
  int32_t drop_released; /**< non-zero: a released unit is dropped at once, and fetched again at its next use */
  int32_t poison; /**< non-zero: dropped units and free slots are filled with NaN; default: ZC_POISON; ZC_NONE: never */
  double gradient_divisor;     /**< default: ranks times gradient passes of the step */
  int64_t deadline_ns;         /**< default: the communicator's */
  zc_pre_reduce_fn pre_reduce; /**< default: none */
  void *pre_reduce_context;
  zc_allocator gather_allocator; /**< where gathered units lie, all in one piece; default: memory of the library */
  int32_t
      shared_views; /**< non-zero, in stage 3 with ZC_PLACEMENT_FLAT: nothing is gathered. acquire gives out addresses in
                             the shards of all ranks, which are one run of shared memory: to be read, never written */
} zc_zero_config;

/**
 * Make an engine. Collective. All its memory is allocated here.
 *
 * Errors     ARGUMENT: the layout is for another number of ranks. MISMATCH: layout or options differ. BUDGET: the
 *            budget does not hold one unit set of max_held_bytes plus the gradient slots; the text has the least.
 *            UNSUPPORTED: shard gradients that are not f32; shared_views elsewhere than in stage 3 with flat placement.
 *            ARGUMENT: shared_views with an option about gathered units. NO_MEMORY: on all ranks if gather_allocator of
 *            one gives none, with that rank and the bytes.
 */
ZC_API ZC_NODISCARD zc_status zc_zero_create(zc_comm *comm, const zc_layout *layout, const zc_zero_config *config,
                                             zc_zero **zero);

/** Detach, before the communicator. Local: shards that others may still read are freed by the last rank. NULL is allowed. */
ZC_API zc_status zc_zero_destroy(zc_zero *zero);

/**
 * Load one unit's values. Collective, in the same order on all ranks, outside passes: before the first publish, or between
 * update_begin and publish.
 *
 * Shape      full[i]: elements of the unit's use i (ties are ignored and may be NULL).
 * root       ZC_NONE: every rank brings the values, and they are compared: MISMATCH names two ranks and the tensor.
 *            A rank: its values are broadcast; full may be NULL elsewhere.
 * dtype      NONE: values are in storage dtypes. F32: all float tensors are given as f32; 16-bit storage gets
 *            them rounded once, masters get them exactly.
 * Cost       One tensor in flight at a time through the engine's staging of at most 1 MiB.
 */
ZC_API ZC_NODISCARD zc_status zc_zero_load(zc_zero *zero, size_t unit, const void *const *full, zc_dtype dtype,
                                           int32_t root);

/**
 * Open a pass. Passes of one name share a recorded order for prefetching. Pins the generation that this rank published last.
 *
 * In stage 3 it fetches ahead what the pass is known to need first, as release does, in this call.
 */
ZC_API ZC_NODISCARD zc_status zc_zero_begin(zc_zero *zero, const char *pass, zc_phase phase);

/**
 * Get a unit's parameters.
 *
 * Shape      tensors[i]: address of the unit's use i, valid until release, NULL for an empty one; tensor_capacity: room.
 * Waits      Only for owners that have not published the pinned generation; deadline.
 * Errors     BUDGET: more would be held than max_held_bytes, or what is held leaves no room in one piece. The latter never
 *            happens while nothing else is held, nor while k units hold h bytes and the budget for gathered units is at least
 *            h + (k + 1) times the bytes of this one.
 * Threads    Any, at any time. A unit may be acquired several times; it is released as often.
 * Cost       Copies what others own, unless it is there already; with shared_views none.
 */
ZC_API ZC_NODISCARD zc_status zc_zero_acquire(zc_zero *zero, size_t unit, const void **tensors, size_t tensor_capacity,
                                              void *stream);

/** Give a unit back. Fetches ahead, in this call, if there is room and the owners have published. Threads: any. */
ZC_API zc_status zc_zero_release(zc_zero *zero, size_t unit, void *stream);

/** Fetch a unit ahead by hand. AGAIN: no room, or its owners have not published; nothing happened. Threads: any. */
ZC_API zc_status zc_zero_prefetch(zc_zero *zero, size_t unit);

/**
 * Hand over one use's gradient.
 *
 * Shape      gradient: the use's elements, in the tensor's gradient dtype; it stays where it is, unchanged, until end. NULL is
 *            allowed for an empty use.
 *            The parts of a tied tensor are added by the library, in the order in which the uses are listed.
 * Waits      Never for another rank.
 * Threads    Any, at any time inside the pass.
 */
ZC_API ZC_NODISCARD zc_status zc_zero_grad_ready(zc_zero *zero, size_t use, const void *gradient, void *stream);

/** Say that a use has no gradient in this pass: zeros. Threads: any. */
ZC_API ZC_NODISCARD zc_status zc_zero_grad_absent(zc_zero *zero, size_t use);

/**
 * Where a use's gradient can be written so that nothing needs to be copied.
 *
 * Stage 1 only (its gradient buffer is full size), for untied uses, unless passes are added up first; otherwise UNSUPPORTED.
 * Pass the same address to zc_zero_grad_ready.
 */
ZC_API zc_status zc_zero_grad_buffer(zc_zero *zero, size_t use, void **gradient);

/**
 * Close the pass. After a gradient pass it is collective and returns when every bucket is reduced into all shards.
 *
 * Errors     MISMATCH: a rank runs another phase, or published another way. TIMEOUT names bucket, rank and tensors.
 */
ZC_API ZC_NODISCARD zc_status zc_zero_end(zc_zero *zero);

/**
 * Norm of all gradients after a step's last pass. Collective; control traffic.
 *
 * Result     The sum of squares is exact before its one rounding: equal bits for every stage, rank count and layout.
 */
ZC_API ZC_NODISCARD zc_status zc_zero_norm(zc_zero *zero, zc_norm *norm);

/** Multiply this rank's reduced gradients by (float)factor. Local. */
ZC_API ZC_NODISCARD zc_status zc_zero_scale(zc_zero *zero, double factor);

/** Open the update: waits until no rank reads the generation that is about to be overwritten. Then the shard may be written. */
ZC_API ZC_NODISCARD zc_status zc_zero_update_begin(zc_zero *zero);

/** Round f32 masters into 16-bit parameters, once. Between update_begin and publish. Local. */
ZC_API ZC_NODISCARD zc_status zc_zero_cast(zc_zero *zero);

/** Announce the new values. Stages 1 and 2: collective, brings every rank's replica up to date. */
ZC_API ZC_NODISCARD zc_status zc_zero_publish(zc_zero *zero, void *stream);

/** Announce that nothing changed (a skipped step). Legal with or without update_begin; waits for nobody. */
ZC_API ZC_NODISCARD zc_status zc_zero_publish_unchanged(zc_zero *zero);

/** What of a tensor's state is meant. */
typedef enum zc_state {
  ZC_STATE_NONE = 0,
  ZC_STATE_PARAMETER = 1,          /**< in storage dtype */
  ZC_STATE_MASTER = 2,             /**< in f32; of f32 parameters: the parameters */
  ZC_STATE_GRADIENT = 3,           /**< reduced, in the shard gradient dtype */
  ZC_STATE_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_state;

/** A run of elements that this rank updates: everything the optimizer needs, without padding. */
typedef struct zc_zero_piece {
  size_t tensor;        /**< untied, trainable */
  size_t tensor_offset; /**< first element in the tensor */
  size_t count;         /**< elements */
  size_t buffer;
  size_t state_offset; /**< first element in the caller's moments */
  void *parameter;     /**< storage dtype; written by zc_zero_cast where there is a master */
  float *master;       /**< what the optimizer updates; the parameter itself if that is f32 */
  float *gradient;     /**< reduced gradient */
} zc_zero_piece;

/**
 * The pieces that this rank updates: its shard, or in stage 0 everything.
 *
 * state_offset runs from 0 to *state_count without gaps: moments are arrays of state_count elements.
 * Memory     The array belongs to the engine.
 */
ZC_API zc_status zc_zero_pieces(const zc_zero *zero, const zc_zero_piece **pieces, size_t *piece_count,
                                size_t *state_count);

/**
 * This rank's shard of one state and buffer as one contiguous array of zc_buffer_info.shard_count elements.
 *
 * UNSUPPORTED where the shard is not apart from the replica: parameters in stages 0 to 2 (flat placement: in stage 0), gradients in stage 0 and
 * in stage 1 when they are reduced in place. zc_zero_pieces works everywhere.
 */
ZC_API zc_status zc_zero_state(const zc_zero *zero, zc_state state, size_t buffer, void **shard, size_t *count);

/**
 * Copy one whole tensor to this rank: PARAMETER or MASTER, of the generation this rank published last.
 *
 * Local to the caller (one-sided); its bytes count as moved data. Not between update_begin and publish; update_begin of
 * this rank is STATE while it runs.
 * Shape      destination: the tensor's elements, in storage dtype or f32.
 */
ZC_API ZC_NODISCARD zc_status zc_zero_export(zc_zero *zero, size_t tensor, zc_state state, void *destination);

/**
 * Which uses keep a bucket from being complete on a rank, in the present pass.
 *
 * Writes at most `capacity` use indices; *count is how many there are. A snapshot.
 * Threads    Always safe.
 */
ZC_API zc_status zc_zero_blockers(const zc_zero *zero, size_t bucket, int32_t rank, size_t *uses, size_t capacity,
                                  size_t *count);

/** Counters of an engine since creation. The caller sets struct_size. */
typedef struct zc_zero_stats {
  size_t struct_size;
  uint64_t hits;              /**< acquires that found the unit gathered ahead or kept */
  uint64_t late_hits;         /**< acquires that waited for a fetch already under way */
  uint64_t misses;            /**< acquires that had to fetch */
  uint64_t prefetches;        /**< units fetched ahead */
  uint64_t prefetches_wasted; /**< of those, dropped unused */
  uint64_t evictions;         /**< units dropped to make room */
  uint64_t buckets_reduced;
  uint64_t buckets_before_end;        /**< reduced before this rank called end */
  uint64_t buckets_padding_bytes;     /**< padding carried by the buckets of one pass */
  uint64_t slices_own, slices_helped; /**< slices this rank reduced: of its own shard, of others' */
  uint64_t gathered_peak_bytes;       /**< most bytes of gathered units (stage 3), persistent ones included */
  uint64_t budget_bytes;              /**< budget in force */
  uint64_t budget_peak_bytes;         /**< most of it in use at once */
  uint64_t generation;                /**< last published */
  uint64_t
      gather_logical_bytes; /**< parameters that the fetches and publications made this rank receive, without padding */
  uint64_t reduce_logical_bytes; /**< gradients that the reductions made this rank receive, without padding */
  uint64_t views;                /**< acquires that gave out addresses in the shards of all ranks (shared_views) */
} zc_zero_stats;
ZC_API zc_status zc_zero_get_stats(const zc_zero *zero, zc_zero_stats *stats);

/** Bytes that an engine holds on this rank: a breakdown of what zc_comm_ledger counts too. The caller sets struct_size. */
typedef struct zc_zero_ledger {
  size_t struct_size;
  size_t parameter_bytes; /**< replicas or shards */
  size_t gradient_bytes;  /**< reduced gradients, stage 1's full buffer, local accumulators */
  size_t master_bytes;
  size_t slot_bytes;    /**< gradient slots: inside the budget */
  size_t gather_bytes;  /**< gathered units: inside the budget */
  size_t control_bytes; /**< words of the engine's window */
  size_t total_bytes;
  size_t caller_gather_bytes; /**< gathered units in memory of the caller: in the budget, in no other figure */
} zc_zero_ledger;
ZC_API zc_status zc_zero_get_ledger(const zc_zero *zero, zc_zero_ledger *ledger);

ZC_END_DECLS

#endif
