// Rank-ordered reduction of k inputs in one pass: every element is read once from each input, reduced in the
// accumulation type, and stored once.
//
// The result of one element is fixed by its definition alone, bit for bit: it does not depend on the position, the
// alignment, or how a range was cut into calls.
#pragma once

#include "device/level.hpp"
#include "device/stores.hpp"

#include <zerocomm/types.h>

#include <cstddef>

namespace zerocomm::device {

// What is done besides the operation itself. Neither double is rounded more than once into the accumulation type
// (f32 for 32- and 16-bit floats, f64 for f64).
struct ReduceArgs {
  double divisor = 0;       // 0: none, except that AVG divides by the number of inputs; else a true division at the end
  double premul = 1;        // PREMUL_SUM only: every contribution is multiplied by it first
  bool accumulate = false;  // out + result, before the division and the one rounding; out must be defined
  Stores stores = Stores::cached;  // streaming: outputs that lie in their cache line as the first does
};

// A whole request, for callers that check and resolve it once and then run it many times.
struct ReduceSpec {
  zc_dtype in = ZC_DTYPE_NONE;
  zc_dtype out = ZC_DTYPE_NONE;  // NONE: the same as in
  zc_op op = ZC_OP_NONE;
  std::size_t inputs = 0;
  double divisor = 0;
  double premul = 1;
  bool accumulate = false;
  ReduceArgs args() const noexcept { return {divisor, premul, accumulate, Stores::cached}; }
};

// Reduces element i of inputs[0], inputs[1], ... in this order into element i of `out`.
// A null input stands for zeros (+0). `out` may be one of the inputs itself if the element sizes are equal; any other
// overlap is an error of the caller. Pointers are aligned to their element.
using ReduceFn = void (*)(const void* const* inputs, std::size_t input_count, void* out, std::size_t count,
                          const ReduceArgs& args) noexcept;

// The same with one result stored into several outputs, which must not overlap. With `accumulate` each output adds
// the result to what itself holds.
using ReduceToManyFn = void (*)(const void* const* inputs, std::size_t input_count, void* const* outputs,
                                std::size_t output_count, std::size_t count, const ReduceArgs& args) noexcept;

// Why this combination cannot be reduced; nullptr if it can. `out` NONE means the same as `in`.
const char* reduce_obstacle(zc_dtype in, zc_dtype out, zc_op op) noexcept;

// ZC_OK; ARGUMENT if one of the three is not a value of its enumeration; else UNSUPPORTED with the reason. Also what
// check_level says.
zc_status check_reduce(zc_dtype in, zc_dtype out, zc_op op) noexcept;

// check_reduce, and also that the numbers of the request fit the types: no input at all, a divisor for integers, a
// divisor or scalar that is not finite, or a scalar for another operation than PREMUL_SUM are ARGUMENT.
zc_status check_reduce(const ReduceSpec& spec) noexcept;

// The kernels of a combination, of the level of this process; nullptr exactly where check_reduce is not ZC_OK.
ReduceFn find_reduce(zc_dtype in, zc_dtype out, zc_op op) noexcept;
ReduceToManyFn find_reduce_to_many(zc_dtype in, zc_dtype out, zc_op op) noexcept;

// The same of one level; nullptr also if this host does not have it.
ReduceFn find_reduce(Level level, zc_dtype in, zc_dtype out, zc_op op) noexcept;
ReduceToManyFn find_reduce_to_many(Level level, zc_dtype in, zc_dtype out, zc_op op) noexcept;

}  // namespace zerocomm::device
