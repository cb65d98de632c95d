// Memory and traffic of a stage as closed formulas. estimate.h says what each figure means.
#pragma once

#include "shard/layout.hpp"

#include <zerocomm/estimate.h>

namespace zerocomm::shard {

// Errors: ARGUMENT, OVERFLOW. struct_size of the result is set.
zc_estimate estimate_layout(const Layout& layout, std::int32_t rank, const zc_estimate_config& config);

zc_estimate estimate_count(std::size_t parameter_count, std::int32_t ranks, zc_stage stage, zc_dtype parameter_dtype,
                           const zc_estimate_config& config);

}  // namespace zerocomm::shard
