/**
 * What this build of the library has, what it finds on this host, and what it would choose.
 */
#ifndef ZEROCOMM_INFO_H
#define ZEROCOMM_INFO_H

#include <zerocomm/export.h>
#include <zerocomm/status.h>

ZC_BEGIN_DECLS

/** Receives one fact: "host", "usable cores", "2", "affinity 4, quota 2". `why` may be empty, never NULL. */
typedef void (*zc_info_fn)(void *context, const char *section, const char *name, const char *value, const char *why);

/**
 * Tell everything that `zc info` prints: sections "build", "host", "launch" and "variables", in that order.
 *
 * Nothing is kept and nothing is changed. A fact that cannot be had says so in its value.
 *
 * Errors     ARGUMENT: callback is NULL.
 * Threads    Any.
 */
ZC_API zc_status zc_info(zc_info_fn callback, void *context);

ZC_END_DECLS

#endif
