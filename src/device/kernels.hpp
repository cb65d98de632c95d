// What every level of kernels offers to the functions that choose among them. Each level is compiled by itself; see
// vector.hpp.
#pragma once

#include "device/copy.hpp"
#include "device/reduce.hpp"

#include <zerocomm/types.h>

#include <cstddef>

namespace zerocomm::device {

struct ReduceKernels {
  ReduceFn to_one = nullptr;
  ReduceToManyFn to_many = nullptr;
};

// One pass over a range of elements: at least one input, and none is null.
struct ReducePass {
  const void* const* inputs;
  std::size_t input_count;
  void* const* outputs;
  std::size_t output_count;
  std::size_t output_offset;  // elements between the start of an output and that of the inputs
  const void* before;         // the state that earlier passes left for each element; null: there is none
  void* after;                // where to leave the state; null: it is the result
  double premul, divisor;     // divisor 0: none
  bool accumulate, streaming;
};
using ReducePassFn = void (*)(const ReducePass& pass, std::size_t begin, std::size_t end) noexcept;

// The elements of a chunk of ReduceShape::chunk elements take at most this much in an input, and as state.
constexpr std::size_t kChunkBytes = 4096;

struct ReduceShape {
  ReducePassFn run;
  std::size_t in_bytes, out_bytes;  // of an element
  std::size_t group, chunk;         // elements that run takes in one step; a multiple of them
  bool average;
};

// Cuts a request into passes.
void run_reduction(const ReduceShape& shape, const void* const* inputs, std::size_t input_count, void* const* outputs,
                   std::size_t output_count, std::size_t count, const ReduceArgs& args) noexcept;

// find_*: no kernel for types of the other kind, nor for combinations that do not exist.
struct LevelKernels {
  ReduceKernels (*find_float)(zc_dtype in, zc_dtype out, zc_op op) noexcept;
  ReduceKernels (*find_int)(zc_dtype in, zc_dtype out, zc_op op) noexcept;
  CopyToManyFn copy_to_many;
};

namespace baseline {
extern const LevelKernels kKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const LevelKernels kKernels;
}
namespace avx512 {
extern const LevelKernels kKernels;
}
#endif

// nullptr if this host does not have the level.
const LevelKernels* find_level(Level level) noexcept;

}  // namespace zerocomm::device
