#include "cli/bench_pattern.hpp"

#include "cli/bench_collectives.hpp"
#include "cli/model_layout.hpp"

#include <zerocomm/mem.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace zerocomm::cli {
namespace {

using Period = std::array<double, kBenchPeriod>;

// The next of a sequence of numbers that look drawn by lot.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

// Products stay exact if their factors are 1 and, seldom, 2.
double source_value(std::size_t i, zc_op op) {
  const std::uint64_t drawn = mix(i);
  if (op == ZC_OP_PROD) return drawn % 8 == 0 ? 2 : 1;
  return static_cast<double>(drawn % 8);
}

template <class Integer>
std::vector<std::byte> wrapped(const Period& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(Integer));
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Through the widest type: narrowing wraps, as sums and products of the library do.
    const auto value = static_cast<Integer>(static_cast<std::uint64_t>(values[i]));
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return bytes;
}

std::vector<std::byte> converted(const Period& values, zc_dtype dtype) {
  std::vector<std::byte> bytes(values.size() * zc_dtype_bytes(dtype));
  require_ok(zc_cast(values.data(), ZC_DTYPE_F64, bytes.data(), dtype, values.size()), "zc_cast");
  return bytes;
}

BenchPattern encoded(const Period& values, zc_dtype dtype) {
  std::vector<std::byte> bytes;
  switch (dtype) {
    case ZC_DTYPE_I64:
      bytes = wrapped<std::int64_t>(values);
      break;
    case ZC_DTYPE_I32:
      bytes = wrapped<std::int32_t>(values);
      break;
    case ZC_DTYPE_I8:
      bytes = wrapped<std::int8_t>(values);
      break;
    case ZC_DTYPE_U8:
    case ZC_DTYPE_F8E4M3:
      bytes = wrapped<std::uint8_t>(values);
      break;
    default:
      bytes = converted(values, dtype);
  }
  return {bytes.data(), zc_dtype_bytes(dtype)};
}

bool has_average(zc_dtype dtype) { return can_reduce(dtype, ZC_OP_AVG); }  // the floating types

double combine(double left, double right, zc_op op) {
  switch (op) {
    case ZC_OP_PROD:
      return left * right;
    case ZC_OP_MIN:
      return std::min(left, right);
    case ZC_OP_MAX:
      return std::max(left, right);
    default:
      return left + right;
  }
}

}  // namespace

BenchPattern::BenchPattern(const void* elements, std::size_t element_bytes)
    : element_bytes_(element_bytes), twice_(2 * kBenchPeriod * element_bytes) {
  std::memcpy(twice_.data(), elements, twice_.size() / 2);
  std::memcpy(twice_.data() + twice_.size() / 2, elements, twice_.size() / 2);
}

void BenchPattern::fill(void* to, std::size_t count, std::size_t phase) const {
  const std::byte* const from = twice_.data() + phase % kBenchPeriod * element_bytes_;
  auto* next = static_cast<std::byte*>(to);
  for (std::size_t left = count; left > 0;) {
    const std::size_t part = std::min(left, kBenchPeriod);
    std::memcpy(next, from, part * element_bytes_);
    next += part * element_bytes_;
    left -= part;
  }
}

bool BenchPattern::equals(const void* from, std::size_t count, std::size_t phase) const {
  const std::byte* const wanted = twice_.data() + phase % kBenchPeriod * element_bytes_;
  const auto* next = static_cast<const std::byte*>(from);
  bool all = true;
  for (std::size_t left = count; left > 0;) {
    const std::size_t part = std::min(left, kBenchPeriod);
    all = std::memcmp(next, wanted, part * element_bytes_) == 0 && all;
    next += part * element_bytes_;
    left -= part;
  }
  return all;
}

BenchPattern bench_source(zc_dtype dtype, zc_op op) {
  Period values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = source_value(i, op);
  return encoded(values, dtype);
}

BenchPattern bench_result(zc_dtype dtype, zc_op op, int ranks) {
  const auto parts = static_cast<std::size_t>(ranks);
  const double factor = op == ZC_OP_PREMUL_SUM ? kBenchFactor : 1;
  Period values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = factor * source_value(i, op);
    for (std::size_t rank = 1; rank < parts; ++rank)
      values[i] = combine(values[i], factor * source_value((i + rank * kBenchRankStep) % kBenchPeriod, op), op);
    // An average is one division in the type in which it was added up.
    if (op == ZC_OP_AVG)
      values[i] = dtype == ZC_DTYPE_F64
                      ? values[i] / ranks
                      : static_cast<double>(static_cast<float>(values[i]) / static_cast<float>(ranks));
    // A power of two that no integer has wraps to 0.
    if (!has_average(dtype) && values[i] >= 0x1p64) values[i] = 0;
  }
  return encoded(values, dtype);
}

BenchPattern bench_noise(zc_dtype dtype) {
  Period values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t drawn = mix(i + 12345);
    const double unit = static_cast<double>(drawn >> 11U) * 0x1p-53 + 0.5;
    values[i] = std::ldexp(unit, static_cast<int>(drawn % 12));  // magnitudes that f16 has
  }
  return encoded(values, dtype);
}

std::uint64_t bench_digest(const void* bytes, std::size_t count, std::uint64_t seed) {
  const auto* next = static_cast<const std::byte*>(bytes);
  std::uint64_t digest = mix(seed ^ count);
  for (; count >= 8; count -= 8, next += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, next, sizeof word);
    digest = (digest ^ word) * 0x9e3779b97f4a7c15U;
    digest ^= digest >> 29U;
  }
  std::uint64_t word = 0;
  std::memcpy(&word, next, count);
  return mix(digest ^ word);
}

}  // namespace zerocomm::cli
