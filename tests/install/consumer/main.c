/* Two ranks of one process add up a number each, by the installed library. */
#include <zerocomm/zerocomm.h>

#include <pthread.h>
#include <stdio.h>

static void* run(void* argument) {
  zc_comm* comm = argument;
  int32_t rank = 0;
  float mine, sum = 0;
  if (zc_comm_rank(comm, &rank) != ZC_OK) return NULL;
  mine = (float)(rank + 1);
  if (zc_all_reduce(comm, &mine, &sum, 1, ZC_DTYPE_F32, ZC_OP_SUM, NULL) != ZC_OK) return puts(zc_last_error()), NULL;
  return sum == 3.0F ? argument : NULL;
}

int main(void) {
  zc_comm* comms[2];
  pthread_t other;
  void *good = NULL, *other_good = NULL;
  if (zc_version() != ZC_VERSION) return puts("headers and library are of two versions"), 1;
  if (zc_comm_create_threads(2, NULL, comms) != ZC_OK) return puts(zc_last_error()), 1;
  if (pthread_create(&other, NULL, run, comms[1]) != 0) return puts("no thread"), 1;
  good = run(comms[0]);
  if (pthread_join(other, &other_good) != 0) return 1;
  zc_comm_destroy(comms[0]);
  zc_comm_destroy(comms[1]);
  return good != NULL && other_good != NULL ? 0 : 1;
}
