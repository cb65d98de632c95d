// Test data whose results are known exactly: small whole numbers that repeat after kBenchPeriod elements. Each rank
// starts at another place of the pattern, and each iteration shifts all of them, so that an element that is old, or
// stands elsewhere, or is another rank's, is a wrong one.
#pragma once

#include <zerocomm/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zerocomm::cli {

inline constexpr std::size_t kBenchPeriod = 1009;  // a prime: no block is a multiple of it
inline constexpr std::size_t kBenchRankStep = 97;

// The elements of one period, in any dtype.
class BenchPattern {
 public:
  BenchPattern() = default;
  // kBenchPeriod elements of `element_bytes`.
  BenchPattern(const void* elements, std::size_t element_bytes);

  std::size_t element_bytes() const { return element_bytes_; }
  // Element i becomes that of the pattern at i + phase.
  void fill(void* to, std::size_t count, std::size_t phase) const;
  // Reads all of them, also after one that is wrong.
  bool equals(const void* from, std::size_t count, std::size_t phase) const;

 private:
  std::size_t element_bytes_ = 1;
  std::vector<std::byte> twice_;  // so that a period can be taken from any place on
};

// What a rank gives: the source of rank r in phase f begins at f + r * kBenchRankStep.
BenchPattern bench_source(zc_dtype dtype, zc_op op);
// What a reduction over `ranks` ranks gives, from phase on.
BenchPattern bench_result(zc_dtype dtype, zc_op op, int ranks);
// Numbers of many magnitudes, whose sum depends on the order of its terms.
BenchPattern bench_noise(zc_dtype dtype);

// Factor of every contribution to premul_sum.
inline constexpr double kBenchFactor = 2;

// A fingerprint of bits.
std::uint64_t bench_digest(const void* bytes, std::size_t count, std::uint64_t seed);

}  // namespace zerocomm::cli
