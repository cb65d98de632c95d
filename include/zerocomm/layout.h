/**
 * Layouts: how a list of tensors becomes flat buffers, shards and buckets.
 *
 * A *tensor* is a named run of elements. A *use* is one appearance of a tensor (or of a slice of it)
 * in the order in which a forward pass touches parameters. A *unit* is the list of uses that is
 * fetched and released together (a layer). Tensors of equal storage dtype, gradient dtypes,
 * trainability and group share a *buffer*. A unit's part of a buffer is its *block*. Under per-unit
 * placement each block is padded and cut into one equal part per rank, and a rank's parts of all units
 * lie end to end; under flat placement the blocks lie end to end and the whole buffer is cut once. Under
 * both every rank has one contiguous *shard* per buffer. Trainable uses are grouped into *buckets*, in
 * reverse order of use, for the reduction of gradients.
 *
 * A layout is a pure value: it depends on its arguments alone, equals itself on every rank, holds no
 * tensor data, and never changes. It alone knows about padding; everything the caller sees is a
 * *piece*, a run of real elements of a named tensor.
 */
#ifndef ZEROCOMM_LAYOUT_H
#define ZEROCOMM_LAYOUT_H

#include <zerocomm/coll.h>

ZC_BEGIN_DECLS

/** An immutable layout. */
typedef struct zc_layout zc_layout;

/** ZeRO stage: which state is cut over the ranks. 0 means "not set" and is an error. */
typedef enum zc_stage {
  ZC_STAGE_NONE = 0,
  ZC_STAGE_1 = 1,                  /**< optimizer state is cut */
  ZC_STAGE_2 = 2,                  /**< and gradients */
  ZC_STAGE_3 = 3,                  /**< and parameters */
  ZC_STAGE_0 = -1,                 /**< nothing is cut: plain data parallelism */
  ZC_STAGE_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_stage;

/** How buffers are cut over ranks. */
typedef enum zc_placement {
  ZC_PLACEMENT_DEFAULT = 0,            /**< per unit */
  ZC_PLACEMENT_PER_UNIT = 1,           /**< every unit is cut over all ranks: a fetch uses every rank's link */
  ZC_PLACEMENT_FLAT = 2,               /**< one cut over the whole buffer: in the shards of all ranks laid end to end,
                                            each unit is contiguous too, and belongs to one rank or to several */
  ZC_PLACEMENT_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_placement;

/** One tensor, as the framework knows it. Zero in a member means its default. */
typedef struct zc_tensor {
  size_t struct_size;      /**< sizeof(zc_tensor) of the caller */
  const char *name;        /**< unique, not empty */
  const char *unit;        /**< unit of the tensor; may be NULL when config->uses is given */
  size_t count;            /**< elements; 0 is legal, the tensor is then always available */
  zc_dtype dtype;          /**< storage */
  zc_dtype gradient_dtype; /**< what the framework hands over; default: `dtype` */
  int32_t frozen;          /**< non-zero: fetched as any other, but no gradient, bucket or optimizer state */
  int32_t group;           /**< the caller's parameter group; tensors of two groups never share a buffer */
  const char *tied_to;     /**< name of an earlier, untied tensor whose storage this one is, or NULL */
} zc_tensor;

/** One appearance of (a slice of) a tensor in the order of use; for tensors that span units. */
typedef struct zc_use {
  size_t struct_size;
  size_t tensor;    /**< index into the tensors */
  size_t offset;    /**< first element */
  size_t count;     /**< elements */
  const char *unit; /**< unit that this slice belongs to */
} zc_use;

/** What a layout depends on besides its tensors. Zero in a member means its default. */
typedef struct zc_layout_config {
  size_t struct_size;
  int32_t ranks;                 /**< at least 1; needed */
  zc_stage stage;                /**< needed */
  zc_placement placement;        /**< default: per unit */
  size_t alignment_bytes;        /**< start of every tensor and every shard; a power of two; default 64 */
  size_t bucket_bytes;           /**< a bucket is closed before it would grow beyond this; default 25 MiB;
                                   a larger tensor is a bucket of its own */
  size_t persistent_bytes;       /**< units of at most this many bytes stay gathered in stage 3; default: none */
  zc_dtype shard_gradient_dtype; /**< reduced gradients; default f32 (float tensors) */
  const zc_use *uses;            /**< order of use; NULL: every tensor once, whole, in the order given */
  size_t use_count;
} zc_layout_config;

/**
 * Make a layout.
 *
 * Without config->uses, use i is tensor i. Names of units may come back later in the list (a nested
 * unit); the order of units is that of first appearance.
 *
 * Errors     ARGUMENT (the text names the tensor): duplicate or empty name, unknown dtype, tie to a later,
 *            tied or unlike tensor, use outside its tensor, uses that do not cover a tensor exactly once,
 *            ranks < 1, stage not set, alignment not a power of two. UNSUPPORTED: a trainable tensor that is
 *            not f32, f16 or bf16. OVERFLOW: sizes beyond 64 bits.
 * Threads    Any. Keeps no pointer of the caller.
 * Cost       O(tensors + uses + pieces).
 */
ZC_API ZC_NODISCARD zc_status zc_layout_create(const zc_tensor *tensors, size_t tensor_count,
                                               const zc_layout_config *config, zc_layout **layout);

/** Frees a layout. NULL is allowed. Engines keep what they need: the layout may go before them. */
ZC_API zc_status zc_layout_destroy(zc_layout *layout);

/** Sizes of a layout. */
typedef struct zc_layout_info {
  size_t struct_size; /**< set by the caller */
  int32_t ranks;
  zc_stage stage;
  size_t tensor_count, use_count, unit_count, buffer_count, bucket_count;
  uint64_t hash;             /**< equal layouts have equal hashes */
  size_t stored_count;       /**< elements of all untied tensors */
  size_t trainable_count;    /**< of those, elements that are trained */
  size_t stored_bytes;       /**< bytes of all untied tensors, without padding */
  size_t padded_bytes;       /**< bytes of the shards of all ranks, with padding */
  size_t largest_unit_bytes; /**< bytes that the largest unit needs when gathered */
  size_t largest_bucket_bytes;
  zc_placement placement; /**< never the default's zero: PER_UNIT or FLAT */
} zc_layout_info;
ZC_API zc_status zc_layout_get_info(const zc_layout *layout, zc_layout_info *info);

/** One unit. Strings live as long as the layout. */
typedef struct zc_unit_info {
  size_t struct_size;
  const char *name;
  size_t use_count;      /**< uses of the unit, in order; see zc_layout_unit_use */
  size_t gathered_bytes; /**< memory of the unit when gathered, alignment included; per unit also the padding of
                            its blocks, which flat placement has not */
  int32_t persistent;    /**< stays gathered in stage 3 */
} zc_unit_info;
ZC_API zc_status zc_layout_get_unit(const zc_layout *layout, size_t unit, zc_unit_info *info);

/** Index of the unit with this name. ARGUMENT if there is none. */
ZC_API zc_status zc_layout_find_unit(const zc_layout *layout, const char *name, size_t *unit);

/** Index of the tensor with this name. ARGUMENT if there is none. */
ZC_API zc_status zc_layout_find_tensor(const zc_layout *layout, const char *name, size_t *tensor);

/** Index of use number `position` of a unit. */
ZC_API zc_status zc_layout_unit_use(const zc_layout *layout, size_t unit, size_t position, size_t *use);

/** One use. */
typedef struct zc_use_info {
  size_t struct_size;
  size_t tensor;        /**< the tensor that was listed */
  size_t stored_tensor; /**< the tensor that owns the storage: another one for a tie */
  size_t unit;
  size_t position;     /**< place among the uses of the unit */
  size_t buffer;       /**< of the storage */
  int64_t bucket;      /**< of the storage's gradient; ZC_NONE if frozen or empty */
  zc_span in_tensor;   /**< slice of the tensor */
  int64_t flat_offset; /**< flat placement: where the first element of the storage lies in the ranks' shards of the
                            buffer laid end to end (rank r's begins at r * shard_count), all others behind it;
                            ZC_NONE if empty, or per unit */
} zc_use_info;
ZC_API zc_status zc_layout_get_use(const zc_layout *layout, size_t use, zc_use_info *info);

/** One buffer: the tensors of one kind. */
typedef struct zc_buffer_info {
  size_t struct_size;
  zc_dtype dtype;                /**< storage */
  zc_dtype gradient_dtype;       /**< as handed over and as sent; NONE if frozen */
  zc_dtype shard_gradient_dtype; /**< as reduced; NONE if frozen */
  int32_t frozen;
  int32_t group;
  size_t count;       /**< real elements over all ranks */
  size_t shard_count; /**< elements of one rank's shard, padding included; equal on all ranks */
} zc_buffer_info;
ZC_API zc_status zc_layout_get_buffer(const zc_layout *layout, size_t buffer, zc_buffer_info *info);

/** One bucket. */
typedef struct zc_bucket_info {
  size_t struct_size;
  size_t buffer;
  size_t use_count; /**< stored uses whose gradients it carries */
  size_t count;     /**< real elements */
  size_t bytes;     /**< of its slot: gradient dtype, padding included */
} zc_bucket_info;
ZC_API zc_status zc_layout_get_bucket(const zc_layout *layout, size_t bucket, zc_bucket_info *info);

/** A run of real elements of a tensor inside one rank's shard. */
typedef struct zc_piece {
  size_t tensor;        /**< untied */
  size_t tensor_offset; /**< first element in the tensor */
  size_t shard_offset;  /**< first element in the rank's shard of the buffer */
  size_t count;         /**< elements, at least 1 */
} zc_piece;

/**
 * The pieces of one rank's shard of one buffer, by rising shard_offset.
 *
 * Elements of the shard that no piece covers are padding. In stage 0 nothing is cut for storage, but
 * the pieces still say which rank would own what.
 *
 * Memory     The array belongs to the layout.
 */
ZC_API zc_status zc_layout_pieces(const zc_layout *layout, int32_t rank, size_t buffer, const zc_piece **pieces,
                                  size_t *piece_count);

/** Form of a printed layout. */
typedef enum zc_text_form {
  ZC_TEXT_DEFAULT = 0,
  ZC_TEXT_PLAIN = 1,
  ZC_TEXT_JSON = 2,
  ZC_TEXT_FORM_FORCE_INT_ = 0x7fffffff
} zc_text_form;

/**
 * Print a layout: units, buffers, buckets, ranges of every rank, padding, bytes.
 *
 * Writes at most capacity_bytes including the closing NUL; *needed_bytes is what the whole text takes.
 * `text` may be NULL with capacity_bytes 0 to ask for the size.
 */
ZC_API zc_status zc_layout_print(const zc_layout *layout, zc_text_form form, char *text, size_t capacity_bytes,
                                 size_t *needed_bytes);

/**
 * Cut one unit: copy what `rank` owns of it into the rank's shards.
 *
 * Shape      full[i]: the elements of the unit's use i (ignored for ties, may be NULL when nothing of it is
 *            owned); shards[b]: the whole shard of buffer b (may be NULL when the rank owns nothing of the unit
 *            in it, not even padding).
 * In place   No: full and shards must not overlap.
 * Padding    Zero-filled: once all units are cut, the whole shard is written.
 * Errors     ARGUMENT: rank, unit or a needed pointer is wrong; nothing was written.
 * Threads    Any; pure.
 */
ZC_API ZC_NODISCARD zc_status zc_partition(const zc_layout *layout, int32_t rank, size_t unit, const void *const *full,
                                           void *const *shards);

/**
 * Gather one unit from the shards of all ranks.
 *
 * Shape      As zc_partition, in the other direction: every rank gets all elements of the unit.
 * Agreement  Layout and unit equal on all ranks: MISMATCH otherwise.
 * Errors     ARGUMENT; what zc_all_gather_v returns.
 * Threads    As a collective on `comm`.
 * Stream     options->stream must be NULL: host memory.
 * Cost       One zc_all_gather_v per stored use of the unit, into the caller's tensors: no staging.
 */
ZC_API ZC_NODISCARD zc_status zc_gather(zc_comm *comm, const zc_layout *layout, size_t unit, const void *const *shards,
                                        void *const *full, const zc_coll_options *options);

/**
 * Where the tensors of one unit lie in whole flat buffers: zc_gather without a copy.
 *
 * Shape      buffers[b]: the shards of all ranks of buffer b end to end (zc_window_view of a contiguous window of them); may be
 *            NULL where the unit has nothing. tensors[i]: address of the unit's use i, also of a tie; NULL for an empty one.
 *            tensor_capacity: room.
 * Errors     UNSUPPORTED: the placement is not flat. ARGUMENT: unit, room or a needed buffer is wrong; nothing was written.
 * Threads    Any; pure.
 */
ZC_API ZC_NODISCARD zc_status zc_layout_view(const zc_layout *layout, size_t unit, const void *const *buffers,
                                             const void **tensors, size_t tensor_capacity);

ZC_END_DECLS

#endif
