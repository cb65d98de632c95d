/* Communication behind computation. Backpropagation finds gradients layer by layer, last layer first: each layer's sum
 * over ranks is begun as soon as its gradient is there, and a thread of the library carries it on while the next is
 * computed. zc run -n 4 -- overlap The results are compared with those of blocking calls, bit for bit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zerocomm/zerocomm.h>

#define CHECK(call) check((call), #call)
static void check(zc_status status, const char* call) {
  if (status == ZC_OK) return;
  fprintf(stderr, "%s\n  %s: %s\n", call, zc_status_name(status), zc_last_error());
  exit(1);
}

enum { LAYERS = 8, COUNT = 200000 };

/* Stands for a layer's backward pass: some work, and a gradient that depends on layer and rank. */
static void backward(float* gradient, int layer, int rank) {
  for (size_t i = 0; i < COUNT; ++i) {
    float x = (float)(i % 1000) * 0.001F + (float)rank;
    for (int k = 0; k < 8; ++k) x = 0.5F * x + (float)layer * 0.25F;
    gradient[i] = x;
  }
}

int main(void) {
  const zc_comm_config config = {.struct_size = sizeof config, .requests = LAYERS + 1, .helper_thread = 1};
  zc_comm* comm = NULL;
  int32_t rank = 0, ranks = 0;
  CHECK(zc_comm_create(&config, &comm));
  CHECK(zc_comm_rank(comm, &rank));
  CHECK(zc_comm_size(comm, &ranks));
  float *gradients = calloc((size_t)LAYERS * COUNT, sizeof(float)), *expected = calloc(COUNT, sizeof(float));
  float* shard = calloc(COUNT, sizeof(float));
  if (gradients == NULL || expected == NULL || shard == NULL) return 1;

  /* Each layer's request gets the layer's number as its tag: ranks may begin them in any order. */
  zc_request* requests[LAYERS] = {NULL};
  int over = 0; /* how many were over before the last gradient was there */
  for (int layer = LAYERS - 1; layer >= 0; --layer) {
    float* gradient = gradients + (size_t)layer * COUNT;
    backward(gradient, layer, rank);
    const zc_coll_options options = {.struct_size = sizeof options, .request = &requests[layer], .tag = layer};
    CHECK(zc_all_reduce(comm, gradient, gradient, COUNT, ZC_DTYPE_F32, ZC_OP_AVG, &options));
  }
  for (int layer = 0; layer < LAYERS; ++layer) {
    int32_t done = 0;
    CHECK(zc_request_test(&requests[layer], &done)); /* never waits; what is over becomes NULL */
    over += done;
  }

  /* A small sum that is begun last does not wait for the large ones before it. */
  float loss = (float)rank;
  zc_request* small = NULL;
  const zc_coll_options urgent = {.struct_size = sizeof urgent, .request = &small, .tag = LAYERS};
  CHECK(zc_all_reduce(comm, &loss, &loss, 1, ZC_DTYPE_F32, ZC_OP_SUM, &urgent));
  CHECK(zc_request_wait(&small));
  CHECK(zc_request_wait_all(requests, LAYERS)); /* those that are over are NULL and count as done */

  int same = loss == (float)(ranks * (ranks - 1) / 2);
  for (int layer = 0; layer < LAYERS; ++layer) {
    backward(expected, layer, rank);
    CHECK(zc_all_reduce(comm, expected, expected, COUNT, ZC_DTYPE_F32, ZC_OP_AVG, NULL));
    same = same && memcmp(expected, gradients + (size_t)layer * COUNT, COUNT * sizeof(float)) == 0;
  }

  /* Reduce-scatter, as ZeRO uses it: of what the layers hold now, every rank needs its part alone. */
  const size_t part = COUNT / (size_t)ranks;
  for (int layer = 0; layer < LAYERS; ++layer) {
    const zc_coll_options options = {.struct_size = sizeof options, .request = &requests[layer], .tag = layer};
    float* to = shard + (size_t)layer * (part / LAYERS);
    CHECK(zc_reduce_scatter(comm, gradients + (size_t)layer * COUNT, to, part / LAYERS, ZC_DTYPE_F32, ZC_OP_MAX,
                            &options));
  }
  CHECK(zc_request_wait_all(requests, LAYERS));
  for (int layer = 0; layer < LAYERS; ++layer) /* all ranks hold the same: the maximum is any of them */
    same = same && memcmp(shard + (size_t)layer * (part / LAYERS),
                          gradients + (size_t)layer * COUNT + (size_t)rank * (part / LAYERS),
                          part / LAYERS * sizeof(float)) == 0;

  if (rank == 0)
    printf("%d sums in flight, %d of them over before they were waited for; %s\n", LAYERS, over,
           same ? "the bits of blocking calls" : "OTHER RESULTS");
  free(gradients), free(expected), free(shard);
  CHECK(zc_comm_destroy(comm));
  return same ? 0 : 1;
}
