// The one-pass reduction kernel, written once for all element types and operations.
//
// A block of elements is reduced into arrays on the stack that stay in the first-level cache: one short loop per
// input, then one for the result. All inputs of a block are read before any of it is stored; that is why an output
// may be one of the inputs.
#pragma once

#include "device/reduce.hpp"
#include "device/reduce_ops.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace zerocomm::device {

constexpr std::size_t kBlockCount = 1024;

// A null input is a block of zeros that goes through the same arithmetic: -0 + 0 is +0, and 0 * inf is NaN.
template <class In, class Op>
void reduce_block(const void* const* inputs, std::size_t input_count, std::size_t offset, std::size_t count,
                  typename In::Value premul, typename Op::State* state) noexcept {
  using Value = typename In::Value;
  for (std::size_t rank = 0; rank < std::max<std::size_t>(input_count, 1); ++rank) {
    const auto* input = input_count != 0 ? static_cast<const typename In::Stored*>(inputs[rank]) : nullptr;
    if (input != nullptr) input += offset;
    if (rank == 0 && input != nullptr) {
      for (std::size_t i = 0; i < count; ++i) state[i] = Op::first(In::load(input[i]), premul);
    } else if (rank == 0) {
      for (std::size_t i = 0; i < count; ++i) state[i] = Op::first(Value(0), premul);
    } else if (input != nullptr) {
      for (std::size_t i = 0; i < count; ++i) state[i] = Op::next(state[i], In::load(input[i]), premul);
    } else {
      for (std::size_t i = 0; i < count; ++i) state[i] = Op::next(state[i], Value(0), premul);
    }
  }
}

// Stores a block of sums: added to what `out` holds if asked, then divided, then rounded once.
template <class Out>
void store_block(const typename Out::Value* result, std::size_t count, bool accumulate, typename Out::Value divisor,
                 typename Out::Stored* out) noexcept {
  using Value = typename Out::Value;
  if constexpr (!std::is_integral_v<Value>) {
    if (divisor != 0 && accumulate) {
      for (std::size_t i = 0; i < count; ++i) out[i] = Out::store(plus(Out::load(out[i]), result[i]) / divisor);
      return;
    }
    if (divisor != 0) {
      for (std::size_t i = 0; i < count; ++i) out[i] = Out::store(result[i] / divisor);
      return;
    }
  }
  if (accumulate) {
    for (std::size_t i = 0; i < count; ++i) out[i] = Out::store(plus(Out::load(out[i]), result[i]));
  } else {
    for (std::size_t i = 0; i < count; ++i) out[i] = Out::store(result[i]);
  }
}

template <class In, class Out, class Op, bool kAverage>
void reduce_to_many(const void* const* inputs, std::size_t input_count, void* const* outputs, std::size_t output_count,
                    std::size_t count, const ReduceArgs& args) noexcept {
  using Value = typename In::Value;
  static_assert(std::is_same_v<Value, typename Out::Value>);
  const bool by_inputs = kAverage && args.divisor == 0;
  const auto divisor = static_cast<Value>(by_inputs ? static_cast<double>(input_count) : args.divisor);
  const auto premul = static_cast<Value>(args.premul);
  alignas(64) typename Op::State state[kBlockCount];
  alignas(64) Value result[kBlockCount];
  for (std::size_t offset = 0; offset < count; offset += kBlockCount) {
    const std::size_t block = std::min(kBlockCount, count - offset);
    reduce_block<In, Op>(inputs, input_count, offset, block, premul, state);
    for (std::size_t i = 0; i < block; ++i) result[i] = Op::last(state[i]);
    for (std::size_t k = 0; k < output_count; ++k)
      store_block<Out>(result, block, args.accumulate, divisor,
                       static_cast<typename Out::Stored*>(outputs[k]) + offset);
  }
}

template <class In, class Out, class Op, bool kAverage>
void reduce_to_one(const void* const* inputs, std::size_t input_count, void* out, std::size_t count,
                   const ReduceArgs& args) noexcept {
  reduce_to_many<In, Out, Op, kAverage>(inputs, input_count, &out, 1, count, args);
}

struct ReduceKernels {
  ReduceFn to_one = nullptr;
  ReduceToManyFn to_many = nullptr;
};

template <class In, class Out, class Op, bool kAverage = false>
constexpr ReduceKernels kernels_of() noexcept {
  return {reduce_to_one<In, Out, Op, kAverage>, reduce_to_many<In, Out, Op, kAverage>};
}

// Every operation that the type of `In` has; no kernel for the others.
template <class In, class Out>
ReduceKernels kernels_for_op(zc_op op) noexcept {
  using Value = typename In::Value;
  switch (op) {
    case ZC_OP_SUM:
      return kernels_of<In, Out, SumOp<Value>>();
    case ZC_OP_MIN:
      return kernels_of<In, Out, MinOp<Value>>();
    case ZC_OP_MAX:
      return kernels_of<In, Out, MaxOp<Value>>();
    case ZC_OP_PROD:
      return kernels_of<In, Out, ProdOp<Value>>();
    default:
      break;
  }
  if constexpr (!std::is_integral_v<Value>) {
    if (op == ZC_OP_AVG) return kernels_of<In, Out, SumOp<Value>, true>();
    if (op == ZC_OP_PREMUL_SUM) return kernels_of<In, Out, PremulSumOp<Value>>();
  }
  return {};
}

// Defined in reduce_float.cpp and reduce_int.cpp; no kernel for types of the other file.
ReduceKernels find_float_kernels(zc_dtype in, zc_dtype out, zc_op op) noexcept;
ReduceKernels find_int_kernels(zc_dtype in, zc_dtype out, zc_op op) noexcept;

}  // namespace zerocomm::device
