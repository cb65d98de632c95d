/* A trainer with an optimizer and parameter storage of its own: gradients come reduced from a zc_reducer, parameters
 * are gathered by a zc_fetcher from shards that this program owns. Fits y = w0 x0 + w1 x1 + b on thread ranks. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <zerocomm/zerocomm.h>

#define RANKS 3
#define CHECK(call)                             \
  do {                                          \
    if ((call) != ZC_OK) {                      \
      fprintf(stderr, "%s\n", zc_last_error()); \
      exit(1);                                  \
    }                                           \
  } while (0)

/* Before the sum over ranks: no gradient of one rank is larger than 8 in any element. */
static void clip(void* context, const zc_gradient_piece* piece) {
  float* gradient = piece->data;
  (void)context;
  for (size_t i = 0; i < piece->count; ++i) {
    if (gradient[i] > 8) gradient[i] = 8;
    if (gradient[i] < -8) gradient[i] = -8;
  }
}

static zc_layout* make_layout(void) {
  zc_tensor tensors[2] = {
      {.struct_size = sizeof(zc_tensor), .name = "w", .unit = "u0", .count = 2, .dtype = ZC_DTYPE_F32},
      {.struct_size = sizeof(zc_tensor), .name = "b", .unit = "u1", .count = 1, .dtype = ZC_DTYPE_F32}};
  zc_layout_config config = {.struct_size = sizeof config, .ranks = RANKS, .stage = ZC_STAGE_3};
  zc_layout* layout = NULL;
  CHECK(zc_layout_create(tensors, 2, &config, &layout));
  return layout;
}

static void* run_rank(void* argument) {
  zc_comm* comm = argument;
  int32_t rank = 0;
  CHECK(zc_comm_rank(comm, &rank));
  zc_layout* layout = make_layout();
  zc_reducer_config reducing = {.struct_size = sizeof reducing, .pre_reduce = clip};
  zc_reducer* reducer = NULL;
  zc_fetcher* fetcher = NULL;
  CHECK(zc_reducer_create(comm, layout, &reducing, &reducer));
  CHECK(zc_fetcher_create(comm, layout, NULL, &fetcher));

  /* Both know the same layout: one shard of parameters, one of gradients, element by element. */
  void* shard = NULL;
  float* gradient = NULL;
  size_t count = 0;
  CHECK(zc_fetcher_shard(fetcher, 0, &shard, &count));
  CHECK(zc_reducer_output(reducer, 0, &gradient, &count));
  float* parameter = shard;

  float w[2] = {0, 0}, b = 0;
  for (int step = 0; step < 400; ++step) {
    /* Forward: get the parameters unit by unit. */
    const void* tensors[1];
    CHECK(zc_fetcher_begin(fetcher, "train"));
    CHECK(zc_fetcher_acquire(fetcher, 0, tensors, 1, NULL));
    w[0] = ((const float*)tensors[0])[0], w[1] = ((const float*)tensors[0])[1];
    CHECK(zc_fetcher_release(fetcher, 0, NULL));
    CHECK(zc_fetcher_acquire(fetcher, 1, tensors, 1, NULL));
    b = *(const float*)tensors[0];
    CHECK(zc_fetcher_release(fetcher, 1, NULL));
    CHECK(zc_fetcher_end(fetcher));

    /* Backward: every rank has samples of its own; the truth is y = 2 x0 - 3 x1 + 0.5. */
    float x0 = (float)((step + rank) % 5 - 2), x1 = (float)((step * 2 + rank) % 3 - 1);
    float error = (w[0] * x0 + w[1] * x1 + b) - (2 * x0 - 3 * x1 + 0.5F);
    float grad_w[2] = {error * x0, error * x1}, grad_b = error;
    CHECK(zc_reducer_begin(reducer, ZC_PHASE_ONLY));
    CHECK(zc_reducer_grad_ready(reducer, 1, &grad_b, NULL));
    CHECK(zc_reducer_grad_ready(reducer, 0, grad_w, NULL));
    CHECK(zc_reducer_end(reducer));

    /* The optimizer, on what this rank owns. */
    CHECK(zc_fetcher_update_begin(fetcher));
    for (size_t i = 0; i < count; ++i) parameter[i] -= 0.1F * gradient[i];
    CHECK(zc_fetcher_publish(fetcher, NULL));
  }
  if (rank == 0) printf("w = (%.3f, %.3f), b = %.3f\n", (double)w[0], (double)w[1], (double)b);
  int right = w[0] > 1.99F && w[0] < 2.01F && w[1] > -3.01F && w[1] < -2.99F && b > 0.49F && b < 0.51F;
  CHECK(zc_reducer_destroy(reducer));
  CHECK(zc_fetcher_destroy(fetcher));
  CHECK(zc_layout_destroy(layout));
  return right ? NULL : argument;
}

int main(void) {
  zc_comm* comms[RANKS];
  pthread_t threads[RANKS];
  int failed = 0;
  CHECK(zc_comm_create_threads(RANKS, NULL, comms));
  for (int rank = 0; rank < RANKS; ++rank) pthread_create(&threads[rank], NULL, run_rank, comms[rank]);
  for (int rank = 0; rank < RANKS; ++rank) {
    void* wrong = NULL;
    pthread_join(threads[rank], &wrong);
    failed += wrong != NULL;
  }
  for (int rank = 0; rank < RANKS; ++rank) zc_comm_destroy(comms[rank]);
  return failed;
}
