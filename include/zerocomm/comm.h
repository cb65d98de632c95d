/**
 * Communicators: a group of ranks, its deadline, its first error, its statistics.
 *
 * A communicator is created once and handed to each rank. Calls on one communicator are made in the
 * same order on all ranks; that is the application's duty, and a breach is answered with MISMATCH.
 * The first error that kills a communicator is recorded once for all its ranks: every rank that is
 * inside a call gets that record, every other at its next call.
 */
#ifndef ZEROCOMM_COMM_H
#define ZEROCOMM_COMM_H

#include <zerocomm/store.h>
#include <zerocomm/types.h>

ZC_BEGIN_DECLS

/** One rank's handle on a group of ranks. */
typedef struct zc_comm zc_comm;

/** What the processes of one communicator share and nobody else knows. Plain bytes: one process makes it, and the program sends
 *  it to the others as it likes. */
typedef struct zc_unique_id {
  char text[128];
} zc_unique_id;

/** Make a fresh id. Errors: SYSTEM. Threads: any. */
ZC_API ZC_NODISCARD zc_status zc_unique_id_create(zc_unique_id *id);

/** Options of a communicator. Zero in a member means its default. */
typedef struct zc_comm_config {
  size_t struct_size;
  int64_t
      deadline_ns; /**< longest wait of any call; default ZC_DEADLINE_MS, else 10 minutes; ZC_POLL: none waits. No other
                             negative value, here and in all options */
  int64_t
      spin_ns; /**< time to spin before sleeping; default ZC_SPIN_NS, else by ranks and cores; ZC_POLL: never. A rank that
                        has spun in vain offers its core to others for 0.1 ms; with ZC_POLL it sleeps at once */
  const char *topology; /**< which ranks share a node, as "a:0-3 b:4-7"; default: all on one node */
  /* Of zc_comm_create alone. */
  int32_t ranks; /**< number of ranks; default: what the launcher says */
  int32_t rank;  /**< this process's rank, where `ranks` is set */
  const zc_unique_id
      *id; /**< what the ranks share; default: the launcher's job. One id serves any number of communicators in turn */
  int64_t init_deadline_ns; /**< longest wait for all ranks to come; default ZC_INIT_DEADLINE_MS, else 60 s */
  /* Of all communicators again. */
  int32_t requests; /**< most requests of one rank in flight (request.h), 1 to 4096; default 64. About 400 bytes each
                               in shared memory. Same on all ranks */
  int32_t helper_thread; /**< non-zero: a thread of this rank advances its requests while no call does */
  zc_switch
      reproducible; /**< ZC_OFF: `algorithm` may name schedules that combine in an order of their own, also for types
                               and operations whose result depends on it. Same on all ranks */
  const zc_store *store; /**< of zc_comm_create: how the ranks find each other; default: ZC_RENDEZVOUS */
} zc_comm_config;

/**
 * Make a communicator whose ranks are processes of this host, one rank in this process. Collective.
 *
 * Who this rank is comes from `ranks`, `rank` and `id` of the config, else from the variables of zc run, torchrun, Slurm, Open
 * MPI or Hydra. Calls in one process for one job are matched by their order. The ranks find each other over a local socket, or
 * over TCP or `store`, and then again over a local socket: data goes through shared memory.
 *
 * Errors     All ranks that are there get the same: TIMEOUT names the ranks that did not come; PEER_LOST a rank that ended
 *            meanwhile; MISMATCH ranks that disagree about the number of ranks or the topology, or one rank twice;
 *            UNSUPPORTED ranks on several hosts. ARGUMENT: no launcher found, or two that disagree. NO_MEMORY. SYSTEM.
 * Threads    Any; threads of one process may be ranks too.
 * Memory     Shared memory without a name: 512 KiB of staging and about 70 KiB of control segment a rank, of which 64 are
 *            flight records; everything else when it is asked for.
 *            ZC_SHM_BYTES is the extent of address space it may grow to.
 * Result     *comm, once all ranks have theirs. From then on the end of a process without zc_comm_destroy is PEER_LOST
 *            for all others.
 */
ZC_API ZC_NODISCARD zc_status zc_comm_create(const zc_comm_config *config, zc_comm **comm);

/**
 * Make a communicator whose ranks are threads of this process.
 *
 * Shape      comms: room for `ranks` handles; handle r is rank r's. Each is then used by one thread at a time.
 * Errors     ARGUMENT: ranks not in 1..1024, topology text wrong (the text says where). NO_MEMORY.
 * Threads    Any one thread makes all the handles; no rank needs to take part.
 * Memory     One control segment of about 70 KiB a rank, of which 64 are flight records.
 */
ZC_API ZC_NODISCARD zc_status zc_comm_create_threads(int32_t ranks, const zc_comm_config *config, zc_comm **comms);

/**
 * Make communicators of the ranks of one: those of one colour form a child. Collective over `comm`.
 *
 * Shape      color: 0 or more, or ZC_NONE to be in no child; key: any. The ranks of a child are numbered by key, and by their rank
 *            in `comm` where keys are equal.
 * config     Deadline and time to spin of the child (default: the parent's) and its topology, in ranks of the child, the same on
 *            all of them (default: the parent's nodes). `reproducible` and `helper_thread` are the child's own: a helper thread is
 *            not inherited. `requests`: the parent's number or 0. The other members are ARGUMENT.
 * Errors     All ranks of `comm` get the same, there is no child on any of them, and `comm` goes on: ARGUMENT and NO_MEMORY
 *            tell which rank failed and why; MISMATCH: some rank makes another call, or topologies of one colour differ.
 *            What ends `comm` itself, PEER_LOST, TIMEOUT or ABORTED, can come when some ranks have their child already;
 *            they get PEER_LOST from it when they use it.
 * Threads    As any collective of `comm`. Parent and children may be used at the same time by different threads.
 * Memory     A child of p ranks is as large as a communicator of p ranks. Of processes, it lies in the shared memory of the first
 *            communicator of the family, within its ZC_SHM_BYTES, and is given back when the last rank has destroyed it.
 * Cost       Four collectives of a few words each, counted as control.
 * Result     *child, or NULL. It is a communicator like any other: it may be split, may outlive `comm`, and is destroyed by
 *            zc_comm_destroy, in any order. It fails and is aborted by itself, but for the end of a process, which is
 *            PEER_LOST in every communicator that the process is in.
 */
ZC_API ZC_NODISCARD zc_status zc_comm_split(zc_comm *comm, int32_t color, int32_t key, const zc_comm_config *config,
                                            zc_comm **child);

/**
 * Detach one rank, after its windows and engines. NULL is allowed.
 *
 * Local: waits for nobody but ranks that are inside a collective's copies at this moment. Memory that others still
 * use is freed by the last of them. Ranks that wait for this one in a collective get PEER_LOST. Requests in flight end with
 * STATE on this rank; they still have to be waited for (request.h).
 */
ZC_API zc_status zc_comm_destroy(zc_comm *comm);

/** Rank of this handle, 0 .. size - 1. */
ZC_API zc_status zc_comm_rank(const zc_comm *comm, int32_t *rank);

/** Number of ranks. */
ZC_API zc_status zc_comm_size(const zc_comm *comm, int32_t *ranks);

/** Index of the node that a rank is on, by order of appearance in the topology text. */
ZC_API zc_status zc_comm_node(const zc_comm *comm, int32_t rank, int32_t *node);

/**
 * The status that killed the communicator, or ZC_OK. The text of the record becomes the last error.
 *
 * Threads    Always safe.
 */
ZC_API zc_status zc_comm_status(const zc_comm *comm);

/**
 * Kill the communicator: every rank's present or next call returns ABORTED, naming this rank.
 *
 * Local: a few stores and a wake per rank. Later errors do not replace the first.
 * Threads    Always safe, also in a signal handler.
 */
ZC_API zc_status zc_comm_abort(zc_comm *comm);

/** What was chosen for a communicator. The caller sets struct_size. */
typedef struct zc_comm_info {
  size_t struct_size;
  int32_t ranks, rank, nodes;
  int64_t deadline_ns;
  int64_t spin_ns;
  int32_t reproducible;     /**< results do not depend on schedule, bucket, partition */
  const char *transport;    /**< "threads" or "shared memory" */
  const char *schedule;     /**< of the reductions: "direct" */
  const char *private_copy; /**< how a rank gets at large buffers that it cannot map, when they are only copied: "none
                                 needed", "process_vm_readv", or "staging" and why. Stays as long as the communicator */
  uint64_t strangers;       /**< callers that rank 0 turned away while the ranks met: none of them */
} zc_comm_info;
ZC_API zc_status zc_comm_get_info(const zc_comm *comm, zc_comm_info *info);

/** One entry of the flight recorder. */
typedef struct zc_flight_record {
  size_t struct_size;
  uint64_t number;  /**< counts all records of the rank, from 1 */
  int64_t begin_ns; /**< monotonic time */
  int64_t end_ns;   /**< 0: not ended */
  zc_status status; /**< with which it ended */
  uint64_t value;   /**< number of the call, or the value of a note */
  char what[128];   /**< "zc_all_reduce(count 5, f32, sum)", or the label of a note */
} zc_flight_record;

/**
 * Read what a rank did: `back` 0 is its youngest record, 1 the one before. The last 1024 are kept, in memory that outlives the
 * rank's process.
 *
 * Errors     AGAIN: there is none so far back, or it is being written at this moment.
 * Threads    Always safe; also on a communicator that has failed.
 */
ZC_API zc_status zc_comm_flight(const zc_comm *comm, int32_t rank, uint64_t back, zc_flight_record *record);

/** Put a note into this rank's flight recorder: what it is about to do. The first 16 characters of the label count. Error texts
 *  of others quote it if this rank ends. Threads: always safe. */
ZC_API zc_status zc_comm_note(zc_comm *comm, const char *label, uint64_t value);

/** What carries bytes from one rank to another. */
typedef enum zc_link {
  ZC_LINK_SELF = 0,    /**< a rank's own memory */
  ZC_LINK_THREAD = 1,  /**< another rank of the same process */
  ZC_LINK_HOST = 2,    /**< another process of the same node */
  ZC_LINK_NETWORK = 3, /**< another node (also where the topology text only says so) */
  ZC_LINK_COUNT_ = 4,
  ZC_LINK_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_link;

/** What the bytes of a call are for. */
typedef enum zc_traffic {
  ZC_TRAFFIC_DEFAULT = 0,            /**< data */
  ZC_TRAFFIC_DATA = 1,               /**< parameters and gradients */
  ZC_TRAFFIC_CONTROL = 2,            /**< norm, loss, agreement */
  ZC_TRAFFIC_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_traffic;

/** Room for kinds of link in zc_stats. */
#define ZC_LINK_ROOM 8

/** Counters of one rank since its communicator was made or they were reset. The caller sets struct_size. */
typedef struct zc_stats {
  size_t struct_size;
  uint64_t logical_bytes;         /**< data that the definition of each call makes this rank receive from others */
  uint64_t control_logical_bytes; /**< the same for control traffic */
  uint64_t
      moved_bytes[ZC_LINK_ROOM]; /**< by zc_link: data moved by this rank, counted where a peer's memory is touched */
  uint64_t control_moved_bytes[ZC_LINK_ROOM]; /**< the same for control traffic */
  uint64_t collectives;                       /**< collectives that completed */
  uint64_t mismatches;                        /**< calls that ended in MISMATCH */
  uint64_t sleeps;                            /**< waits that went to sleep */
} zc_stats;

/** Read the counters of this rank. Threads: always safe; counters of a running call may be partial. */
ZC_API zc_status zc_comm_stats(const zc_comm *comm, zc_stats *stats);

/** Set the counters of this rank to zero. */
ZC_API zc_status zc_comm_stats_reset(zc_comm *comm);

/** Bytes that this rank's communicator, windows and zc_mem_alloc hold now, those of its engines included. The caller sets
 *  struct_size. */
typedef struct zc_ledger {
  size_t struct_size;
  size_t control_bytes; /**< control segment (booked to rank 0) and words of windows; of processes also this rank's
                             staging, and a page for each allocation */
  size_t window_bytes;  /**< window memory that the library allocated */
  size_t memory_bytes;  /**< zc_mem_alloc */
  size_t total_bytes;   /**< the sum */
} zc_ledger;
ZC_API zc_status zc_comm_ledger(const zc_comm *comm, zc_ledger *ledger);

/** Options of one wait. Zero in a member means its default. */
typedef struct zc_wait_options {
  size_t struct_size;
  int64_t deadline_ns; /**< default: the communicator's; ZC_POLL: look once, AGAIN if not ready */
  /** Names who is waited for, for the error text: writes a rank (or ZC_NONE) and a short text. Gets the context of `ready`. May
   *  be NULL. */
  void (*blame)(void *context, int32_t *rank, char *text, size_t capacity_bytes);
  const char *label; /**< what is waited for, for the error text */
  /** Called when the deadline has passed: how many nanoseconds more to wait; 0 or less: none. May be NULL. */
  int64_t (*extend_ns)(void *context);
} zc_wait_options;

/** 1 if the wait is over, 0 if not, a negative zc_status to end it with that error. */
typedef int (*zc_ready_fn)(void *context);

/**
 * Wait until `ready` says so: spin, then sleep. Looks again when a word of any window of this communicator is written or added
 * to, by any rank.
 *
 * While it waits it makes progress for all engines of the process. When the deadline passes the communicator
 * dies with TIMEOUT, and the text names whom `blame` names.
 *
 * Errors     TIMEOUT, the communicator's first error, or what `ready` returned.
 * Threads    Any number of threads of a rank may wait at once. `ready` is called without any lock of the library.
 */
ZC_API zc_status zc_comm_wait(zc_comm *comm, zc_ready_fn ready, void *context, const zc_wait_options *options);

/** Does some work if there is any, without waiting; called by every call that waits, from any thread. */
typedef void (*zc_progress_fn)(void *context);
typedef struct zc_progress zc_progress;

/** Have `progress` called while any call of this process waits; work for it is announced by windows of `comm`. */
ZC_API zc_status zc_progress_add(zc_comm *comm, zc_progress_fn progress, void *context, zc_progress **handle);

/** Stop it; returns when no call of it runs. NULL is allowed. Must not be called from the function itself. */
ZC_API zc_status zc_progress_remove(zc_progress *handle);

ZC_END_DECLS

#endif
