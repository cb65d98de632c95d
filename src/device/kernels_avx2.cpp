// The kernels for processors with AVX2 and F16C.
#define ZC_LEVEL avx2
#include "device/level_kernels.hpp"

namespace zerocomm::device::avx2 {

constinit const LevelKernels kKernels = all_kernels();

}  // namespace zerocomm::device::avx2
