/* The rank side of zc bench, without the library that is measured: the socket, the requests, the data, the clock.
 * A peer program connects, tells its library by a table of functions, and lets peer_serve() answer until the driver is
 * done. C99, and C++ for the peer that is written in it. docs/bench.md has the lines that are spoken. */
#ifndef ZC_BENCH_PEER_H
#define ZC_BENCH_PEER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum peer_op {
  PEER_ALL_REDUCE,
  PEER_REDUCE_SCATTER,
  PEER_REDUCE_SCATTER_BY_ALL_REDUCE, /* an all-reduce of which only the own part is looked at */
  PEER_ALL_GATHER,
  PEER_BROADCAST,
  PEER_REDUCE,
  PEER_ALL_TO_ALL,
  PEER_BARRIER
} peer_op;

typedef enum peer_dtype { PEER_F32, PEER_F64, PEER_I32, PEER_I64 } peer_dtype;

/* What to measure. Sums are meant, and rank 0 is the root. Elements lie at
 *
 *                               source   result                    in place, the source is
 *   all_reduce                  count    count                     result
 *   reduce_scatter              count    part                      result, all of it
 *     ... by_all_reduce         count    part, at rank * part      result, all of it
 *   all_gather                  part     count                     result + rank * part
 *   broadcast                   -        count                     result, whatever the placement
 *   reduce                      count    count, at the root        result
 *   all_to_all                  count    count                     result
 *
 * `result` has room for count elements always: some libraries work there. */
typedef struct peer_call {
  peer_op op;
  peer_dtype dtype;
  size_t count; /* elements of the whole vector */
  size_t part;  /* count / ranks */
  int in_place; /* source is NULL */
  void* source;
  void* result;
} peer_call;

/* The measured library. The functions return NULL, or what is wrong. */
typedef struct peer_library {
  const char* version; /* name and version */
  int rank;
  int ranks;
  void* state; /* for the functions */
  /* Before a run. What it returns is why the library cannot do that, the same on every rank. */
  const char* (*prepare)(void* state, const peer_call* call);
  const char* (*run)(void* state, const peer_call* call);
  const char* (*barrier)(void* state);
  /* After a run, with memory that is about to go. May be NULL. */
  void (*forget)(void* state);
} peer_library;

typedef struct peer_options {
  const char* socket_name;
  const char* group;
  int ranks; /* 0 unless asked for */
} peer_options;

/* Reads --socket and --group, and --ranks where the program starts its own ranks. Returns 0, or ends the program. */
void peer_read_options(int argc, char** argv, int with_ranks, peer_options* options);

/* The socket of the driver, or -1 after a line on stderr. Also has this process ended with the one that started it. */
int peer_connect(const char* socket_name);

typedef enum peer_ending {
  PEER_QUIT, /* the driver said so */
  PEER_GONE, /* the driver has vanished */
  PEER_FAILED
} peer_ending;

/* Answers the driver until one of the above; sleeps while nothing is asked. */
peer_ending peer_serve(int driver, const char* group, const peer_library* library);

#ifdef __cplusplus
}
#endif
#endif
