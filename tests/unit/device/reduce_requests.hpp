// Every reduction that exists, and what the scalar reference says of one element of its output.
#pragma once

#include "device/reduce.hpp"

#include "scalar_reference.hpp"

namespace reference {

inline std::vector<Request> all_requests() {
  std::vector<Request> requests;
  for (int in = ZC_DTYPE_F64; in <= ZC_DTYPE_F8E4M3; ++in)
    for (int out = ZC_DTYPE_F64; out <= ZC_DTYPE_F8E4M3; ++out)
      for (int op = ZC_OP_SUM; op <= ZC_OP_PREMUL_SUM; ++op) {
        Request request;
        request.in = static_cast<zc_dtype>(in);
        request.out = static_cast<zc_dtype>(out);
        request.op = static_cast<zc_op>(op);
        if (request.op == ZC_OP_PREMUL_SUM) request.premul = -1.0 / 3;
        if (zerocomm::device::reduce_obstacle(request.in, request.out, request.op) == nullptr)
          requests.push_back(request);
      }
  return requests;
}

inline std::uint64_t expected_bits(const Request& request, const std::vector<const void*>& inputs,
                                   const void* old_output, std::size_t i) {
  if (is_float(request.in)) {
    std::vector<double> contributions;
    contributions.reserve(inputs.size());
    for (const void* input : inputs) contributions.push_back(input != nullptr ? load_float(request.in, input, i) : 0.0);
    const double old_value = request.accumulate ? load_float(request.out, old_output, i) : 0.0;
    return encode_bits(request.out, reduce_floats(request, contributions, old_value));
  }
  std::vector<WideInt> contributions;
  contributions.reserve(inputs.size());
  for (const void* input : inputs) contributions.push_back(input != nullptr ? load_int(request.in, input, i) : 0);
  return reduce_ints(request, contributions, load_int(request.out, old_output, i));
}

}  // namespace reference
