#include <pthread.h>
#include <stdio.h>
#include <zerocomm/zerocomm.h>

static void* run_rank(void* comm) {
  float mine = 0.5F, sum = 0;
  if (zc_all_reduce(comm, &mine, &sum, 1, ZC_DTYPE_F32, ZC_OP_SUM, NULL) != ZC_OK) puts(zc_last_error());
  printf("the sum over 4 ranks is %g\n", sum);
  return NULL;
}

int main(void) {
  zc_comm* comms[4];
  pthread_t threads[4];
  if (zc_comm_create_threads(4, NULL, comms) != ZC_OK) return puts(zc_last_error()), 1;
  for (int rank = 0; rank < 4; ++rank) pthread_create(&threads[rank], NULL, run_rank, comms[rank]);
  for (int rank = 0; rank < 4; ++rank) pthread_join(threads[rank], NULL), zc_comm_destroy(comms[rank]);
  return 0;
}
