/**
 * Schedules: what every rank does in a collective, as plain data.
 *
 * A schedule can be made from a catalogue of algorithms or read from text that somebody wrote, be proved, and be
 * counted, without a communicator. A schedule is an immutable value: it depends on its arguments alone. Chunks are
 * the unit of everything here; docs/schedules.md explains the rules and the text.
 */
#ifndef ZEROCOMM_SCHEDULE_H
#define ZEROCOMM_SCHEDULE_H

#include <zerocomm/export.h>
#include <zerocomm/status.h>
#include <zerocomm/types.h>

ZC_BEGIN_DECLS

/** An immutable schedule. */
typedef struct zc_schedule zc_schedule;

/** The collectives that have schedules. 0 means "not set" and is an error. */
typedef enum zc_collective {
  ZC_COLLECTIVE_NONE = 0,
  ZC_COLLECTIVE_ALL_REDUCE = 1,
  ZC_COLLECTIVE_REDUCE_SCATTER = 2,
  ZC_COLLECTIVE_ALL_GATHER = 3,
  ZC_COLLECTIVE_BROADCAST = 4,
  ZC_COLLECTIVE_BARRIER = 5,
  ZC_COLLECTIVE_REDUCE = 6,
  ZC_COLLECTIVE_ALL_TO_ALL = 7,
  ZC_COLLECTIVE_GATHER_TO_ROOT = 8,
  ZC_COLLECTIVE_SCATTER_FROM_ROOT = 9,
  ZC_COLLECTIVE_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_collective;

/** Name such as "all_gather"; "none" for anything that is no collective. */
ZC_API const char *zc_collective_name(zc_collective collective);

/** Which schedule to make. Zero in a member means its default. */
typedef struct zc_schedule_config {
  size_t struct_size;
  zc_collective collective; /**< needed */
  const char *algorithm;    /**< a name of the catalogue; NULL: "direct" */
  int32_t ranks;            /**< 1 to 1024; needed */
  int32_t root;             /**< of rooted collectives, else 0 */
  int32_t lanes;            /**< lists of steps that a rank works on side by side; default 1 */
  uint32_t chunks; /**< of the whole vector; default: the fewest. A multiple of lanes * blocks, where the vector
                                 has one block for broadcast and reduce, ranks * ranks blocks for all_to_all, else one
                                 block for each rank. A barrier has no chunks. */
} zc_schedule_config;

/**
 * Make a schedule of the catalogue.
 *
 * Errors     ARGUMENT: ranks, root, lanes or chunks that no schedule has. UNSUPPORTED: no such algorithm (the text
 *            lists those there are), an algorithm of one lane with more, or ranks * lanes beyond 1024.
 * Threads    Any. Keeps no pointer of the caller.
 */
ZC_API ZC_NODISCARD zc_status zc_schedule_create(const zc_schedule_config *config, zc_schedule **schedule);

/**
 * Read a schedule from text, as zc_schedule_text() writes it.
 *
 * What can be read need not be right: see zc_schedule_verify(). An algorithm that is no name of the catalogue is
 * what a schedule of one's own should carry; under a name of the catalogue it must cost what that algorithm costs.
 *
 * Errors     ARGUMENT: the text names the line.
 * Threads    Any. Keeps no pointer of the caller.
 */
ZC_API ZC_NODISCARD zc_status zc_schedule_parse(const char *text, zc_schedule **schedule);

/** Frees a schedule. NULL is allowed. */
ZC_API zc_status zc_schedule_destroy(zc_schedule *schedule);

/**
 * Write a schedule as text that zc_schedule_parse() reads back.
 *
 * Writes at most capacity_bytes including the closing NUL; *needed_bytes is what the whole text takes.
 * `text` may be NULL with capacity_bytes 0 to ask for the size.
 */
ZC_API zc_status zc_schedule_text(const zc_schedule *schedule, char *text, size_t capacity_bytes, size_t *needed_bytes);

/** What a schedule was made for. */
typedef struct zc_schedule_info {
  size_t struct_size; /**< set by the caller */
  zc_collective collective;
  int32_t ranks;
  int32_t root;
  int32_t lanes;
  uint32_t chunks;
  uint32_t scratch_chunks; /**< scratch on each rank, in chunks */
  uint32_t loss;           /**< most lossy encodings that a contribution may meet */
  size_t step_count;       /**< of all ranks and lanes */
  const char *algorithm;   /**< belongs to the schedule */
} zc_schedule_info;
ZC_API zc_status zc_schedule_get_info(const zc_schedule *schedule, zc_schedule_info *info);

/** What was found about one property. */
typedef enum zc_finding {
  ZC_FINDING_UNKNOWN = 0, /**< not asked: an earlier property is broken, or there is nothing to compare with */
  ZC_FINDING_HOLDS = 1,
  ZC_FINDING_BROKEN = 2,
  ZC_FINDING_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_finding;

/** The outcome of a proof. */
typedef struct zc_schedule_verdict {
  size_t struct_size;     /**< set by the caller */
  int32_t is_proved;      /**< non-zero: no property is broken */
  int32_t is_canonical;   /**< non-zero: proved, and every sum is ((x0 + x1) + x2) + ..., rounded once: the bits of all
                               other canonical schedules */
  zc_finding findings[9]; /**< V0 shape, V1 matching, V2 termination, V3 result, V4 agreement, V5 races, V6 stale
                               reads, V7 loss, V8 cost */
} zc_schedule_verdict;

/**
 * Prove that a schedule does what its collective promises, or find where it does not.
 *
 * Text       "ok, canonical", "ok", or one line for each broken property that names rank, lane and step. Written
 *            like that of zc_schedule_text().
 * Errors     A broken schedule is not an error: see verdict. UNSUPPORTED: beyond 256 ranks * lanes, or 2^22 ranks *
 *            (chunks + scratch).
 * Threads    Any; pure.
 */
ZC_API ZC_NODISCARD zc_status zc_schedule_verify(const zc_schedule *schedule, zc_schedule_verdict *verdict, char *text,
                                                 size_t capacity_bytes, size_t *needed_bytes);

/** How costs are counted. Zero in a member means its default. */
typedef struct zc_schedule_cost_config {
  size_t struct_size;
  size_t count;   /**< elements of the whole vector, cut evenly into blocks and chunks; 0: every chunk counts 1 */
  uint64_t alpha; /**< latency of a message, and ... */
  uint64_t beta;  /**< ... time per element: their ratio decides which path is the longest; default 1000 and 1 */
} zc_schedule_cost_config;

/** What one rank sends and receives, and how long the longest path through all ranks is. */
typedef struct zc_schedule_costs {
  size_t struct_size; /**< set by the caller */
  uint64_t messages_sent;
  uint64_t elements_sent; /**< chunks if count is 0 */
  uint64_t messages_received;
  uint64_t elements_received;
  uint64_t path_latencies; /**< the critical path takes path_latencies * alpha + path_elements * beta */
  uint64_t path_elements;
} zc_schedule_costs;

/**
 * Count what a schedule costs on ideal links.
 *
 * A message of n elements occupies the sending lane for n * beta and arrives alpha later; lanes share no links.
 *
 * Agreement  rank ZC_NONE gives the largest figure of any rank in each member.
 * Errors     ARGUMENT: no such rank, or a schedule that cannot run to its end. UNSUPPORTED: as zc_schedule_verify(). OVERFLOW:
 *            all steps one after the other would take more than 64 bits can count.
 * Threads    Any; pure.
 */
ZC_API ZC_NODISCARD zc_status zc_schedule_cost(const zc_schedule *schedule, int32_t rank,
                                               const zc_schedule_cost_config *config, zc_schedule_costs *costs);

/** One row of the catalogue. */
typedef struct zc_algorithm_info {
  size_t struct_size; /**< set by the caller */
  zc_collective collective;
  int32_t is_canonical; /**< non-zero: its results are canonical for any number of ranks */
  int32_t is_one_lane;  /**< non-zero: it has schedules of one lane only */
  const char *name;     /**< valid for ever */
} zc_algorithm_info;

/** How many rows the catalogue has. */
ZC_API size_t zc_schedule_algorithm_count(void);

/** Row `index` of the catalogue, ordered by collective. ARGUMENT: there is none. */
ZC_API zc_status zc_schedule_algorithm(size_t index, zc_algorithm_info *info);

ZC_END_DECLS

#endif
