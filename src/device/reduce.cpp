// Which reductions exist, why the others do not, and which kernel does them.
#include "device/reduce.hpp"

#include "base/check.hpp"
#include "device/kernels.hpp"

#include <cmath>

namespace zerocomm::device {
namespace {

enum class Family { none, f64, small_float, integer, bytes };

Family family_of(zc_dtype dtype) noexcept {
  switch (dtype) {
    case ZC_DTYPE_F64:
      return Family::f64;
    case ZC_DTYPE_F32:
    case ZC_DTYPE_F16:
    case ZC_DTYPE_BF16:
      return Family::small_float;
    case ZC_DTYPE_I64:
    case ZC_DTYPE_I32:
    case ZC_DTYPE_U8:
    case ZC_DTYPE_I8:
      return Family::integer;
    case ZC_DTYPE_F8E4M3:
      return Family::bytes;
    default:
      return Family::none;
  }
}

bool is_op(zc_op op) noexcept { return op >= ZC_OP_SUM && op <= ZC_OP_PREMUL_SUM; }

zc_dtype output_of(zc_dtype in, zc_dtype out) noexcept { return out == ZC_DTYPE_NONE ? in : out; }

ReduceKernels find_kernels(Level level, zc_dtype in, zc_dtype out, zc_op op) noexcept {
  const LevelKernels* kernels = find_level(level);
  if (kernels == nullptr) return {};
  out = output_of(in, out);
  return family_of(in) == Family::integer ? kernels->find_int(in, out, op) : kernels->find_float(in, out, op);
}

ReduceKernels find_kernels(zc_dtype in, zc_dtype out, zc_op op) noexcept {
  const LevelChoice& choice = level_choice();
  return choice.status == ZC_OK ? find_kernels(choice.level, in, out, op) : ReduceKernels{};
}

}  // namespace

const LevelKernels* find_level(Level level) noexcept {
  if (!has_level(level)) return nullptr;
#if defined(__x86_64__)
  if (level == Level::avx512) return &avx512::kKernels;
  if (level == Level::avx2) return &avx2::kKernels;
#endif
  return &baseline::kKernels;
}

const char* reduce_obstacle(zc_dtype in, zc_dtype out, zc_op op) noexcept {
  out = output_of(in, out);
  const Family family = family_of(in);
  if (family == Family::none) return "the input type is not an element type";
  if (family_of(out) == Family::none) return "the output type is not an element type";
  if (!is_op(op)) return "the operation is not a reduction";
  if (family == Family::bytes || family_of(out) == Family::bytes)
    return "f8e4m3 elements are stored and moved, never computed with";
  if (family == Family::integer && op == ZC_OP_AVG) return "the average of integers has no exact type";
  if (family == Family::integer && op == ZC_OP_PREMUL_SUM)
    return "integers cannot be scaled by a floating-point factor";
  if (family == Family::small_float && family_of(out) != Family::small_float)
    return "f32, f16 and bf16 reduce only into f32, f16 or bf16";
  if (family != Family::small_float && in != out) return "f64 and integers reduce only into their own type";
  return nullptr;
}

zc_status check_reduce(zc_dtype in, zc_dtype out, zc_op op) noexcept {
  const char* obstacle = reduce_obstacle(in, out, op);
  if (obstacle == nullptr) return check_level();
  out = output_of(in, out);
  const bool legal = family_of(in) != Family::none && family_of(out) != Family::none && is_op(op);
  return fail(legal ? ZC_UNSUPPORTED : ZC_ARGUMENT, "reduction %s of %s (%d) into %s (%d): %s", zc_op_name(op),
              zc_dtype_name(in), static_cast<int>(in), zc_dtype_name(out), static_cast<int>(out), obstacle);
}

zc_status check_reduce(const ReduceSpec& spec) noexcept {
  ZC_TRY(check_reduce(spec.in, spec.out, spec.op));
  if (spec.inputs == 0) return fail(ZC_ARGUMENT, "a reduction needs at least one input");
  if (!std::isfinite(spec.divisor) || !std::isfinite(spec.premul))
    return fail(ZC_ARGUMENT, "divisor %g and premul %g must be finite", spec.divisor, spec.premul);
  if (family_of(spec.in) == Family::integer && spec.divisor != 0)
    return fail(ZC_ARGUMENT, "divisor %g: integers are not divided", spec.divisor);
  if (spec.op != ZC_OP_PREMUL_SUM && spec.premul != 1)
    return fail(ZC_ARGUMENT, "premul %g is legal only with premul_sum, not with %s", spec.premul, zc_op_name(spec.op));
  return ZC_OK;
}

ReduceFn find_reduce(zc_dtype in, zc_dtype out, zc_op op) noexcept { return find_kernels(in, out, op).to_one; }

ReduceToManyFn find_reduce_to_many(zc_dtype in, zc_dtype out, zc_op op) noexcept {
  return find_kernels(in, out, op).to_many;
}

ReduceFn find_reduce(Level level, zc_dtype in, zc_dtype out, zc_op op) noexcept {
  return find_kernels(level, in, out, op).to_one;
}

ReduceToManyFn find_reduce_to_many(Level level, zc_dtype in, zc_dtype out, zc_op op) noexcept {
  return find_kernels(level, in, out, op).to_many;
}

}  // namespace zerocomm::device
