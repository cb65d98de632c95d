// The kernels for any processor of the architecture.
#define ZC_LEVEL baseline
#include "device/level_kernels.hpp"

namespace zerocomm::device::baseline {

constinit const LevelKernels kKernels = all_kernels();

}  // namespace zerocomm::device::baseline
