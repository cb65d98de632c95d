#include <stdio.h>
#include <zerocomm/zerocomm.h>

int main(void) {
  zc_comm* comm = NULL;
  float mine = 0.5F, sum = 0;
  if (zc_comm_create(NULL, &comm) != ZC_OK) return puts(zc_last_error()), 1;
  if (zc_all_reduce(comm, &mine, &sum, 1, ZC_DTYPE_F32, ZC_OP_SUM, NULL) != ZC_OK) return puts(zc_last_error()), 1;
  printf("the sum over all ranks is %g\n", sum);
  return zc_comm_destroy(comm) != ZC_OK;
}
