// Element types as the host kernels see them: how an element is stored, and the type it is computed in.
#pragma once

#include "base/half.hpp"

#include <zerocomm/types.h>

#include <bit>
#include <cstdint>

namespace zerocomm::device {

// One trait per dtype: Stored is what lies in memory, Value is the accumulation type. load is exact; store rounds
// once, to nearest even.
struct F64Element {
  using Stored = double;
  using Value = double;
  static Value load(Stored stored) noexcept { return stored; }
  static Stored store(Value value) noexcept { return value; }
};

struct F32Element {
  using Stored = float;
  using Value = float;
  static Value load(Stored stored) noexcept { return stored; }
  static Stored store(Value value) noexcept { return value; }
};

struct F16Element {
  using Stored = std::uint16_t;
  using Value = float;
  // f16_to_float without branches, so that loops become vector code: exponent and fraction are moved into place, and
  // one exact multiplication by 2^(127 - 15) corrects the bias, of subnormals too. Infinity and NaN keep all their
  // exponent bits.
  static Value load(Stored stored) noexcept {
    const std::uint32_t magnitude = stored & 0x7fffu, sign = static_cast<std::uint32_t>(stored & 0x8000u) << 16;
    const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    const std::uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
  }
  static Stored store(Value value) noexcept { return f16_from_float(value); }
};

struct Bf16Element {
  using Stored = std::uint16_t;
  using Value = float;
  static Value load(Stored stored) noexcept { return bf16_to_float(stored); }
  static Stored store(Value value) noexcept { return bf16_from_float(value); }
};

template <class Integer>
struct IntElement {
  using Stored = Integer;
  using Value = Integer;
  static Value load(Stored stored) noexcept { return stored; }
  static Stored store(Value value) noexcept { return value; }
};

}  // namespace zerocomm::device
