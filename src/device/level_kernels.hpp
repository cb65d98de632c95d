// All kernels of one level; for kernels_<level>.cpp.
#pragma once

#include "device/copy_kernels.hpp"
#include "device/reduce_kernels.hpp"

namespace zerocomm::device::ZC_LEVEL {

template <class In>
ReduceKernels kernels_for_output(zc_dtype out, zc_op op) noexcept {
  switch (out) {
    case ZC_DTYPE_F32:
      return kernels_for_op<In, Plain<float>>(op);
    case ZC_DTYPE_F16:
      return kernels_for_op<In, F16>(op);
    case ZC_DTYPE_BF16:
      return kernels_for_op<In, Bf16>(op);
    default:
      return {};
  }
}

inline ReduceKernels find_float_kernels(zc_dtype in, zc_dtype out, zc_op op) noexcept {
  switch (in) {
    case ZC_DTYPE_F64:
      return out == in ? kernels_for_op<Plain<double>, Plain<double>>(op) : ReduceKernels{};
    case ZC_DTYPE_F32:
      return kernels_for_output<Plain<float>>(out, op);
    case ZC_DTYPE_F16:
      return kernels_for_output<F16>(out, op);
    case ZC_DTYPE_BF16:
      if (out == ZC_DTYPE_BF16) return kernels_for_op<Bf16Pairs, Bf16Pairs>(op);
      if (out == ZC_DTYPE_F16) return kernels_for_op<Bf16, F16>(op);
      return out == ZC_DTYPE_F32 ? kernels_for_op<Bf16, Plain<float>>(op) : ReduceKernels{};
    default:
      return {};
  }
}

inline ReduceKernels find_int_kernels(zc_dtype in, zc_dtype out, zc_op op) noexcept {
  if (out != in) return {};
  switch (in) {
    case ZC_DTYPE_I64:
      return kernels_for_op<Plain<std::int64_t>, Plain<std::int64_t>>(op);
    case ZC_DTYPE_I32:
      return kernels_for_op<Plain<std::int32_t>, Plain<std::int32_t>>(op);
    case ZC_DTYPE_U8:
      return kernels_for_op<Plain<std::uint8_t>, Plain<std::uint8_t>>(op);
    case ZC_DTYPE_I8:
      return kernels_for_op<Plain<std::int8_t>, Plain<std::int8_t>>(op);
    default:
      return {};
  }
}

inline void copy_to_many(const void* source, void* const* outputs, std::size_t output_count, std::size_t bytes,
                         Stores stores) noexcept {
  const CopyPass pass{static_cast<const std::uint8_t*>(source), outputs, output_count};
  if (stores == Stores::streaming)
    copy_range<true>(pass, bytes);
  else
    copy_range<false>(pass, bytes);
}

constexpr LevelKernels all_kernels() noexcept { return {find_float_kernels, find_int_kernels, copy_to_many}; }

}  // namespace zerocomm::device::ZC_LEVEL
