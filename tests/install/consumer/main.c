/* Calls the installed library and checks that it answers. */
#include <zerocomm/types.h>

#include <string.h>

int main(void) { return strcmp(zc_status_name(ZC_MISMATCH), "MISMATCH") != 0 || zc_dtype_bytes(ZC_DTYPE_BF16) != 2; }
