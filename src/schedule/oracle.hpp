// Domain "values": the reference result of a schedule, bit for bit (payloads of NaN apart).
#pragma once

#include "schedule/partition.hpp"
#include "schedule/step.hpp"

#include <zerocomm/types.h>

#include <cstddef>
#include <span>
#include <vector>

namespace zerocomm::schedule {

// What the elements are and what is done with them. Moves only look at `input`.
struct Elements {
  zc_dtype input = ZC_DTYPE_F32;
  zc_dtype output = ZC_DTYPE_NONE;  // NONE: as input
  zc_op op = ZC_OP_SUM;
  double premul = 1;  // PREMUL_SUM: becomes the accumulation type first; a whole number that fits for integers
};

// The buffer of one rank: its elements without gaps, in the order of chunks.
using Bytes = std::vector<std::byte>;

// Runs the schedule. `inputs` has one buffer per rank with the chunks that input_chunks() gives it; the result has one
// buffer per rank with the chunks of output_chunks().
//
// Rules     16-bit types and f32 accumulate in f32, f64 and integers in themselves. What ends a held run, and what
//           enters an output, is rounded to the output type; AVG divides by the number of ranks before that, once the
//           last contribution is in.
// Errors    ARGUMENT: the schedule, the partition or a buffer does not fit. UNSUPPORTED: a type, an operation or a pair
//           of types that has no such reduction (AVG of integers; f8e4m3; another output type except among f16, bf16,
//           f32); a schedule with codecs.
std::vector<Bytes> run_oracle(const Schedule& schedule, const Partition& partition, const Elements& elements,
                              std::span<const Bytes> inputs);

}  // namespace zerocomm::schedule
