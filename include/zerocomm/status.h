/**
 * Status codes, the text of the last error, and the log callback.
 *
 * Every function of the library returns a zc_status. Its results are there only
 * when that status is ZC_OK; what an output buffer holds after an error is a
 * column of the table below, the single list of codes, from which the
 * enumeration, the names and the functions of this header follow.
 */
#ifndef ZEROCOMM_STATUS_H
#define ZEROCOMM_STATUS_H

#include <zerocomm/export.h>

#include <stdint.h>

ZC_BEGIN_DECLS

/** What an error ends. */
typedef enum zc_scope {
  ZC_SCOPE_NONE = 0,               /**< no error */
  ZC_SCOPE_CALL = 1,               /**< nothing happened; fix the arguments and call again */
  ZC_SCOPE_REQUEST = 2,            /**< this operation failed; its communicator lives */
  ZC_SCOPE_COMM = 3,               /**< the communicator is dead; only abort, dump and destroy are legal */
  ZC_SCOPE_PROCESS = 4,            /**< the process is short of something, or the library is wrong */
  ZC_SCOPE_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_scope;

/**
 * The list of statuses.
 *
 * Columns: name, number, scope, are output buffers defined afterwards (0 or 1),
 * is the communicator usable afterwards (0 or 1), meaning.
 */
#define ZC_STATUS_LIST(X)                                                                         \
  X(OK, 0, NONE, 1, 1, "done")                                                                    \
  X(AGAIN, 1, CALL, 1, 1, "a fixed table is full, or the result is not ready; call again later")  \
  X(ARGUMENT, 10, CALL, 1, 1, "an argument is wrong; nothing happened")                           \
  X(UNSUPPORTED, 11, CALL, 1, 1, "the request is legal but cannot be had here; nothing happened") \
  X(MISMATCH, 12, CALL, 1, 1, "ranks disagree about the same call; no byte was moved")            \
  X(ALIGNMENT, 13, CALL, 1, 1, "an address or offset is not aligned as it must be")               \
  X(OVERFLOW, 14, CALL, 1, 1, "a size does not fit the numbers that must hold it")                \
  X(STATE, 15, CALL, 1, 1, "the call is not legal in the present state of the object")            \
  X(BUDGET, 16, CALL, 1, 1, "the byte budget does not allow it; the text says what is needed")    \
  X(CANCELED, 20, REQUEST, 0, 1, "the operation was canceled")                                    \
  X(TIMEOUT, 30, COMM, 0, 0, "a deadline passed; the text names the ranks that did not come")     \
  X(PEER_LOST, 31, COMM, 0, 0, "a rank ended; the text names it")                                 \
  X(TRANSPORT, 32, COMM, 0, 0, "a link failed")                                                   \
  X(DEVICE, 33, COMM, 0, 0, "a device failed")                                                    \
  X(ABORTED, 34, COMM, 0, 0, "a rank called abort")                                               \
  X(NO_MEMORY, 40, PROCESS, 1, 1, "memory ran out; the text says how many bytes were wanted")     \
  X(SYSTEM, 41, PROCESS, 0, 0, "the operating system refused; the text says what and why")        \
  X(INTERNAL, 42, PROCESS, 0, 0, "a defect of the library")                                       \
  X(FORKED, 43, PROCESS, 1, 0, "a child made by fork used an object of its parent")

/** Outcome of a call. */
typedef enum zc_status {
#define ZC_STATUS_ENUMERATOR(name, number, scope, defined, usable, meaning) ZC_##name = number,
  ZC_STATUS_LIST(ZC_STATUS_ENUMERATOR)
#undef ZC_STATUS_ENUMERATOR
      ZC_STATUS_FORCE_INT_ = 0x7fffffff /**< not a status: fixes the size of the type */
} zc_status;

/** Name of a status, such as "MISMATCH"; "UNKNOWN" for a number that is none. Never NULL. */
ZC_API const char *zc_status_name(zc_status status);

/** One sentence about a status. Never NULL. */
ZC_API const char *zc_status_text(zc_status status);

/** What a status ends. ZC_SCOPE_PROCESS for a number that is none. */
ZC_API zc_scope zc_status_scope(zc_status status);

/** 1 if the output buffers of a call that returned this status hold what its contract says
 *  (for an error: they were left as they were), else 0. */
ZC_API int zc_status_buffers_defined(zc_status status);

/** 1 if the communicator may be used after a call that returned this status, else 0. */
ZC_API int zc_status_comm_usable(zc_status status);

/**
 * Text of the last error of this thread.
 *
 * Says what was asked, what was found, and on which rank. The text stands until
 * the next call of this thread that fails; a call that succeeds leaves it alone.
 *
 * Threads    Each thread has its own text.
 */
ZC_API const char *zc_last_error(void);

/** Severity of a log line. */
typedef enum zc_log_level {
  ZC_LOG_OFF = 0,
  ZC_LOG_ERROR = 1,
  ZC_LOG_WARN = 2,
  ZC_LOG_INFO = 3,
  ZC_LOG_DEBUG = 4,
  ZC_LOG_LEVEL_FORCE_INT_ = 0x7fffffff /**< not a value: fixes the size of the type */
} zc_log_level;

/** Receives one log line without a line end. May be called from any thread, never under a lock. */
typedef void (*zc_log_fn)(void *context, zc_log_level level, const char *line);

/**
 * Set where log lines go.
 *
 * The library is silent until this is called. `callback == NULL` makes it silent again.
 *
 * Threads    Any thread; lines in flight may still reach the previous callback.
 */
ZC_API zc_status zc_log_set(zc_log_fn callback, void *context, zc_log_level level);

ZC_END_DECLS

#endif
