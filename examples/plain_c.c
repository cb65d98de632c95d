/* An own model, an own AdamW and an own training loop, with ZeRO stage 3 made by hand from three parts of the library:
 * a layout that cuts the tensors, zc_partition and zc_gather between tensors and shards, and plain collectives.
 *     zc run -n 4 -- plain_c
 * Every rank also trains alone on everybody's data, and the weights must be the same to the last bit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zerocomm/zerocomm.h>

#define CHECK(call) check((call), #call)
static void check(zc_status status, const char* call) {
  if (status == ZC_OK) return;
  fprintf(stderr, "%s\n  %s: %s\n", call, zc_status_name(status), zc_last_error());
  exit(1); /* the other ranks learn that this one has ended */
}

/* The model: y = w2 . relu(w1 x + b1) + b2, fitted to y = |x0 - x1| + x2 x3. Two units, four tensors. */
enum { INPUTS = 4, HIDDEN = 29, ROWS = 16, STEPS = 300, UNITS = 2, PER_UNIT = 2, TENSORS = UNITS * PER_UNIT };
static const char* const kNames[TENSORS] = {"w1", "b1", "w2", "b2"};
static const char* const kUnits[UNITS] = {"hidden", "output"};
static const size_t kCounts[TENSORS] = {HIDDEN * INPUTS, HIDDEN, HIDDEN, 1};

static float random_float(unsigned long long* state) { /* in [-1, 1) */
  *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (float)(*state >> 40) / 8388608.0F - 1.0F;
}

static float* zeros(size_t count) {
  float* memory = calloc(count + 1, sizeof *memory);
  if (memory == NULL) exit(1);
  return memory;
}

/* Loss of one rank's rows of one step, and the gradients of its mean. */
static float loss_and_gradients(float* const* w, float* const* g, int step, int rank) {
  unsigned long long state = (unsigned long long)(step * 1024 + rank + 1);
  float loss = 0;
  for (int t = 0; t < TENSORS; ++t) memset(g[t], 0, kCounts[t] * sizeof(float));
  for (int row = 0; row < ROWS; ++row) {
    float x[INPUTS], h[HIDDEN], y = w[3][0];
    for (int i = 0; i < INPUTS; ++i) x[i] = random_float(&state);
    for (int j = 0; j < HIDDEN; ++j) {
      float sum = w[1][j];
      for (int i = 0; i < INPUTS; ++i) sum += w[0][j * INPUTS + i] * x[i];
      h[j] = sum > 0 ? sum : 0;
      y += w[2][j] * h[j];
    }
    const float error = y - (fabsf(x[0] - x[1]) + x[2] * x[3]), dy = 2 * error / ROWS;
    loss += error * error / ROWS;
    g[3][0] += dy;
    for (int j = 0; j < HIDDEN; ++j) {
      g[2][j] += dy * h[j];
      if (h[j] <= 0) continue;
      g[1][j] += dy * w[2][j];
      for (int i = 0; i < INPUTS; ++i) g[0][j * INPUTS + i] += dy * w[2][j] * x[i];
    }
  }
  return loss;
}

/* AdamW on any run of elements: whole tensors, or a shard. The padding of a shard is zero and stays zero. */
static void adamw(float* w, const float* g, float* m, float* v, size_t count, int step) {
  float power1 = 1, power2 = 1;
  for (int i = 0; i <= step; ++i) power1 *= 0.9F, power2 *= 0.999F;
  for (size_t i = 0; i < count; ++i) {
    m[i] = 0.9F * m[i] + 0.1F * g[i];
    v[i] = 0.999F * v[i] + 0.001F * g[i] * g[i];
    w[i] -= 0.01F * (m[i] / (1 - power1) / (sqrtf(v[i] / (1 - power2)) + 1e-8F) + 0.001F * w[i]);
  }
}

static void initial_weights(float* const* w) {
  unsigned long long state = 7;
  for (int t = 0; t < TENSORS; ++t)
    for (size_t i = 0; i < kCounts[t]; ++i) w[t][i] = random_float(&state) * (t == 0 ? 0.7F : 0.2F);
}

/* What the ranks must come to, without a library: all gradients in rank order, one division, one AdamW. */
static void train_alone(float** w, int ranks) {
  float *g[TENSORS], *sum[TENSORS], *m[TENSORS], *v[TENSORS];
  for (int t = 0; t < TENSORS; ++t)
    g[t] = zeros(kCounts[t]), sum[t] = zeros(kCounts[t]), m[t] = zeros(kCounts[t]), v[t] = zeros(kCounts[t]);
  initial_weights(w);
  for (int step = 0; step < STEPS; ++step) {
    for (int rank = 0; rank < ranks; ++rank) {
      loss_and_gradients(w, g, step, rank);
      for (int t = 0; t < TENSORS; ++t)
        for (size_t i = 0; i < kCounts[t]; ++i) sum[t][i] = rank == 0 ? g[t][i] : sum[t][i] + g[t][i];
    }
    for (int t = 0; t < TENSORS; ++t) {
      for (size_t i = 0; i < kCounts[t]; ++i) sum[t][i] /= (float)ranks;
      adamw(w[t], sum[t], m[t], v[t], kCounts[t], step);
    }
  }
  for (int t = 0; t < TENSORS; ++t) free(g[t]), free(sum[t]), free(m[t]), free(v[t]);
}

/* The layout: four f32 tensors in two units. All of one dtype, so there is one buffer, and one shard per rank. */
static zc_layout* make_layout(int32_t ranks) {
  zc_tensor tensors[TENSORS];
  for (int t = 0; t < TENSORS; ++t)
    tensors[t] = (zc_tensor){.struct_size = sizeof(zc_tensor),
                             .name = kNames[t],
                             .unit = kUnits[t / PER_UNIT],
                             .count = kCounts[t],
                             .dtype = ZC_DTYPE_F32};
  const zc_layout_config config = {.struct_size = sizeof config, .ranks = ranks, .stage = ZC_STAGE_3};
  zc_layout* layout = NULL;
  CHECK(zc_layout_create(tensors, TENSORS, &config, &layout));
  return layout;
}

int main(void) {
  zc_comm* comm = NULL;
  int32_t rank = 0, ranks = 0;
  CHECK(zc_comm_create(NULL, &comm));
  CHECK(zc_comm_rank(comm, &rank));
  CHECK(zc_comm_size(comm, &ranks));
  zc_layout* layout = make_layout(ranks);
  zc_buffer_info buffer = {.struct_size = sizeof buffer};
  CHECK(zc_layout_get_buffer(layout, 0, &buffer));
  const size_t shard_count = buffer.shard_count;

  /* What stays between steps is a shard of each: 1/ranks of weights, gradients and moments. */
  float *shard = zeros(shard_count), *m = zeros(shard_count), *v = zeros(shard_count), *g_shard = zeros(shard_count);
  float *w[TENSORS], *g[TENSORS], *send = zeros(shard_count * (size_t)ranks), *losses = zeros((size_t)ranks);
  for (int t = 0; t < TENSORS; ++t) w[t] = zeros(kCounts[t]), g[t] = zeros(kCounts[t]);
  initial_weights(w);
  for (size_t u = 0; u < UNITS; ++u)
    CHECK(zc_partition(layout, rank, u, (const void* const*)&w[u * PER_UNIT], (void* const[]){shard}));

  float first = 0, last = 0;
  for (int step = 0; step < STEPS; ++step) {
    for (size_t u = 0; u < UNITS; ++u) /* shards of all ranks -> tensors */
      CHECK(zc_gather(comm, layout, u, (const void* const[]){shard}, (void* const*)&w[u * PER_UNIT], NULL));
    const float loss = loss_and_gradients(w, g, step, rank);

    for (int32_t r = 0; r < ranks; ++r) /* gradients -> what each rank owns of them, rank after rank */
      for (size_t u = 0; u < UNITS; ++u)
        CHECK(zc_partition(layout, r, u, (const void* const*)&g[u * PER_UNIT],
                           (void* const[]){send + (size_t)r * shard_count}));
    CHECK(zc_reduce_scatter(comm, send, g_shard, shard_count, ZC_DTYPE_F32, ZC_OP_AVG, NULL));
    adamw(shard, g_shard, m, v, shard_count, step);

    CHECK(zc_all_gather(comm, &loss, losses, 1, ZC_DTYPE_F32, NULL));
    last = 0;
    for (int32_t r = 0; r < ranks; ++r) last += losses[r] / (float)ranks;
    if (step == 0) first = last;
  }
  for (size_t u = 0; u < UNITS; ++u)
    CHECK(zc_gather(comm, layout, u, (const void* const[]){shard}, (void* const*)&w[u * PER_UNIT], NULL));

  float* alone[TENSORS];
  int32_t same = 1;
  for (int t = 0; t < TENSORS; ++t) alone[t] = zeros(kCounts[t]);
  train_alone(alone, ranks);
  for (int t = 0; t < TENSORS; ++t) same = same && memcmp(w[t], alone[t], kCounts[t] * sizeof(float)) == 0;
  CHECK(zc_all_reduce(comm, &same, &same, 1, ZC_DTYPE_I32, ZC_OP_MIN, NULL)); /* in place */
  if (rank == 0)
    printf("loss %.4f -> %.4f with %d ranks; one rank alone gets %s\n", first, last, ranks,
           same ? "the same weights to the bit" : "OTHER WEIGHTS");

  for (int t = 0; t < TENSORS; ++t) free(w[t]), free(g[t]), free(alone[t]);
  free(shard), free(m), free(v), free(g_shard), free(send), free(losses);
  CHECK(zc_layout_destroy(layout));
  CHECK(zc_comm_destroy(comm));
  return same && last < first / 10 ? 0 : 1;
}
