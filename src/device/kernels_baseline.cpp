// The kernels for any processor of the architecture.
#define ZC_LEVEL baseline
#include "device/level_kernels.hpp"
