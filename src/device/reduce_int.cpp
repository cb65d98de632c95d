// Kernels for integer elements; the output always has the type of the input.
#include "device/element.hpp"
#include "device/reduce_kernels.hpp"

namespace zerocomm::device {
namespace {

template <class Integer>
ReduceKernels kernels_for_integer(zc_op op) noexcept {
  return kernels_for_op<IntElement<Integer>, IntElement<Integer>>(op);
}

}  // namespace

ReduceKernels find_int_kernels(zc_dtype in, zc_dtype out, zc_op op) noexcept {
  if (out != in) return {};
  switch (in) {
    case ZC_DTYPE_I64:
      return kernels_for_integer<std::int64_t>(op);
    case ZC_DTYPE_I32:
      return kernels_for_integer<std::int32_t>(op);
    case ZC_DTYPE_U8:
      return kernels_for_integer<std::uint8_t>(op);
    case ZC_DTYPE_I8:
      return kernels_for_integer<std::int8_t>(op);
    default:
      return {};
  }
}

}  // namespace zerocomm::device
