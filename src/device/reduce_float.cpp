// Kernels for floating-point elements: f64 by itself, and f32, f16, bf16 in every pairing of input and output.
#include "device/element.hpp"
#include "device/reduce_kernels.hpp"

namespace zerocomm::device {
namespace {

template <class In>
ReduceKernels kernels_for_output(zc_dtype out, zc_op op) noexcept {
  switch (out) {
    case ZC_DTYPE_F32:
      return kernels_for_op<In, F32Element>(op);
    case ZC_DTYPE_F16:
      return kernels_for_op<In, F16Element>(op);
    case ZC_DTYPE_BF16:
      return kernels_for_op<In, Bf16Element>(op);
    default:
      return {};
  }
}

}  // namespace

ReduceKernels find_float_kernels(zc_dtype in, zc_dtype out, zc_op op) noexcept {
  switch (in) {
    case ZC_DTYPE_F64:
      return out == in ? kernels_for_op<F64Element, F64Element>(op) : ReduceKernels{};
    case ZC_DTYPE_F32:
      return kernels_for_output<F32Element>(out, op);
    case ZC_DTYPE_F16:
      return kernels_for_output<F16Element>(out, op);
    case ZC_DTYPE_BF16:
      return kernels_for_output<Bf16Element>(out, op);
    default:
      return {};
  }
}

}  // namespace zerocomm::device
