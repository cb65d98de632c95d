// The kernels for processors with AVX2 and F16C.
#define ZC_LEVEL avx2
#include "device/level_kernels.hpp"
