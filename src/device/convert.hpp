// Conversion of element ranges between floating-point types.
#pragma once

#include <zerocomm/types.h>

#include <cstddef>

namespace zerocomm::device {

// Converts `count` elements: one rounding to nearest, ties to even; subnormals are kept, overflow gives infinity, a
// NaN stays a NaN. Any pair of f64, f32, f16 and bf16, and any type into itself (a copy of the bytes); else
// UNSUPPORTED and nothing is written, as where check_level fails. Ranges must not overlap, except that a copy allows
// any overlap.
zc_status convert(zc_dtype from, zc_dtype to, const void* src, void* dst, std::size_t count) noexcept;

// One conversion resolved once, for loops over pieces; nullptr for pairs that are UNSUPPORTED.
using ConvertFn = void (*)(const void* src, void* dst, std::size_t count) noexcept;
ConvertFn find_convert(zc_dtype from, zc_dtype to) noexcept;

}  // namespace zerocomm::device
