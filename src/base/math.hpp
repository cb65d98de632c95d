// Checked integer arithmetic on sizes. All layout arithmetic goes through here: no float, no wrap.
#pragma once

#include "base/check.hpp"

#include <cstddef>
#include <cstdint>

namespace zerocomm {

constexpr std::size_t ceil_div(std::size_t value, std::size_t divisor) {
  return value / divisor + (value % divisor != 0);
}

// a + b, or Error(OVERFLOW).
inline std::size_t checked_add(std::size_t a, std::size_t b) {
  std::size_t sum = 0;
  ZC_REQUIRE(!__builtin_add_overflow(a, b, &sum), ZC_OVERFLOW, "%zu + %zu does not fit in 64 bits", a, b);
  return sum;
}

// a * b, or Error(OVERFLOW).
inline std::size_t checked_mul(std::size_t a, std::size_t b) {
  std::size_t product = 0;
  ZC_REQUIRE(!__builtin_mul_overflow(a, b, &product), ZC_OVERFLOW, "%zu * %zu does not fit in 64 bits", a, b);
  return product;
}

// The smallest multiple of `step` that is not below `value`, or Error(OVERFLOW).
inline std::size_t round_up(std::size_t value, std::size_t step) { return checked_mul(ceil_div(value, step), step); }

// Part `index` of `count` things cut into `parts`: the first count % parts parts get one more.
struct Part {
  std::size_t offset = 0;
  std::size_t count = 0;
  friend bool operator==(const Part&, const Part&) = default;
};
constexpr Part even_part(std::size_t count, std::size_t parts, std::size_t index) {
  const std::size_t base = count / parts, extra = count % parts;
  return {base * index + (index < extra ? index : extra), base + (index < extra ? 1 : 0)};
}

}  // namespace zerocomm
