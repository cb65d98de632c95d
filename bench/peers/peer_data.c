/* Element i of a source is 1 + i % 7 + rank + iteration % 5. All vectors have the period 7, so they are written and
 * compared in tiles of a multiple of it, at the speed of memcpy and memcmp. */
#include "peer_data.h"

#include <stdint.h>
#include <string.h>

enum { PERIOD = 7, TILE = PERIOD * 1024, SALTS = 5 };

/* Elements of the form scale * (i % 7) + base. */
typedef struct tile {
  size_t element_bytes;
  union {
    float f32[TILE];
    double f64[TILE];
    int32_t i32[TILE];
    int64_t i64[TILE];
  } at;
} tile;

size_t peer_dtype_bytes(peer_dtype dtype) { return dtype == PEER_F64 || dtype == PEER_I64 ? 8 : 4; }

static int is_reduction(peer_op op) {
  return op == PEER_ALL_REDUCE || op == PEER_REDUCE_SCATTER || op == PEER_REDUCE_SCATTER_BY_ALL_REDUCE ||
         op == PEER_REDUCE;
}

size_t peer_source_count(const peer_call* call) {
  if (call->op == PEER_BARRIER) return 0;
  return call->op == PEER_ALL_GATHER ? call->part : call->count;
}

size_t peer_source_offset(const peer_call* call, int rank) {
  return call->op == PEER_ALL_GATHER ? (size_t)rank * call->part : 0;
}

size_t peer_result_count(const peer_call* call) { return call->op == PEER_BARRIER ? 0 : call->count; }

/* Makes as much of a tile as a vector of `count` elements uses. */
static void make_tile(tile* made, peer_dtype dtype, size_t count, int64_t scale, int64_t base) {
  const size_t used = count < TILE - PERIOD ? count + PERIOD : TILE;
  made->element_bytes = peer_dtype_bytes(dtype);
  for (size_t i = 0; i < used; ++i) {
    const int64_t value = scale * (int64_t)(i % PERIOD) + base;
    if (dtype == PEER_F32) made->at.f32[i] = (float)value;
    if (dtype == PEER_F64) made->at.f64[i] = (double)value;
    if (dtype == PEER_I32) made->at.i32[i] = (int32_t)value;
    if (dtype == PEER_I64) made->at.i64[i] = value;
  }
}

/* Goes over `count` elements, of which the first is number `first` of its vector: writes them, or compares them. */
static int go_over(char* memory, size_t count, size_t first, const tile* pattern, int write) {
  const char* from = (const char*)&pattern->at;
  size_t phase = first % PERIOD;
  int same = 1;
  while (count > 0) {
    const size_t now = count < TILE - phase ? count : TILE - phase;
    const size_t bytes = now * pattern->element_bytes;
    if (write)
      memcpy(memory, from + phase * pattern->element_bytes, bytes);
    else
      same &= memcmp(memory, from + phase * pattern->element_bytes, bytes) == 0;
    memory += bytes;
    count -= now;
    phase = 0;
  }
  return same;
}

static int64_t base_of(int rank, int iteration) { return 1 + rank + iteration % SALTS; }

void peer_write_source(const peer_call* call, int rank, int iteration) {
  static tile pattern;
  const size_t count = peer_source_count(call);
  char* source = call->source;
  if (count == 0 || (call->op == PEER_BROADCAST && rank != 0)) return;
  if (source == NULL) source = (char*)call->result + peer_source_offset(call, rank) * peer_dtype_bytes(call->dtype);
  make_tile(&pattern, call->dtype, count, 1, base_of(rank, iteration));
  go_over(source, count, 0, &pattern, 1);
}

/* The own part of a vector to which every rank sent its own. */
static int parts_are_exact(const peer_call* call, int rank, int ranks, int iteration, tile* pattern) {
  const size_t bytes = call->part * peer_dtype_bytes(call->dtype);
  const size_t first = call->op == PEER_ALL_TO_ALL ? (size_t)rank * call->part : 0;
  int exact = 1;
  for (int from = 0; from < ranks; ++from) {
    make_tile(pattern, call->dtype, call->part, 1, base_of(from, iteration));
    exact &= go_over((char*)call->result + (size_t)from * bytes, call->part, first, pattern, 0);
  }
  return exact;
}

int peer_result_is_exact(const peer_call* call, int rank, int ranks, int iteration) {
  static tile pattern;
  char* result = call->result;
  size_t count = call->count, first = 0;
  if (call->op == PEER_BARRIER || (call->op == PEER_REDUCE && rank != 0)) return 1;
  if (call->op == PEER_ALL_GATHER || call->op == PEER_ALL_TO_ALL)
    return parts_are_exact(call, rank, ranks, iteration, &pattern);
  if (call->op == PEER_REDUCE_SCATTER || call->op == PEER_REDUCE_SCATTER_BY_ALL_REDUCE) {
    count = call->part;
    first = (size_t)rank * call->part;
  }
  if (call->op == PEER_REDUCE_SCATTER_BY_ALL_REDUCE) result += first * peer_dtype_bytes(call->dtype);
  if (is_reduction(call->op)) {
    int64_t base = 0;
    for (int from = 0; from < ranks; ++from) base += base_of(from, iteration);
    make_tile(&pattern, call->dtype, count, ranks, base);
  } else {
    make_tile(&pattern, call->dtype, count, 1, base_of(0, iteration));
  }
  return go_over(result, count, first, &pattern, 0);
}
