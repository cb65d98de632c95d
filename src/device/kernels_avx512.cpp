// The kernels for processors with AVX-512 F, BW, DQ and VL.
#define ZC_LEVEL avx512
#include "device/level_kernels.hpp"

namespace zerocomm::device::avx512 {

constinit const LevelKernels kKernels = all_kernels();

}  // namespace zerocomm::device::avx512
