/* The data of zc bench's peers: small whole numbers, so that every sum is exact, that tell ranks, places and iterations
 * apart. Used by peer_serve() alone. */
#ifndef ZC_BENCH_PEER_DATA_H
#define ZC_BENCH_PEER_DATA_H

#include "peer.h"

size_t peer_dtype_bytes(peer_dtype dtype);

/* Elements that a rank sends, and where result holds them if they are in place. Unused: NULL. */
size_t peer_source_count(const peer_call* call);
size_t peer_source_offset(const peer_call* call, int rank);
/* Elements of the buffer `result`, whatever is looked at of them. */
size_t peer_result_count(const peer_call* call);

/* Writes the whole source of one iteration. */
void peer_write_source(const peer_call* call, int rank, int iteration);
/* Reads the whole result of one iteration: 1 if it is exact, 0 if not. */
int peer_result_is_exact(const peer_call* call, int rank, int ranks, int iteration);

#endif
