// The loop of run_stream for vectors of one width. For bench_kernels*.cpp alone, each compiled for another processor;
// nothing here may be shared between them, hence the anonymous namespace.
#pragma once

#include "cli/bench_kernels.hpp"

namespace zerocomm::cli {
namespace {  // NOLINT: see above

inline constexpr std::size_t kStreamLine = 256;  // bytes a turn

// `Vector`: what a register holds; `Put`: store of one.
template <class Vector, class Put>
int stream_loop(const BenchStream& stream, Put put) {
  constexpr std::size_t kVectors = kStreamLine / sizeof(Vector);
  Vector total{};
  std::size_t at = 0;
  const auto turn = [&]<std::size_t Count>() {
    Vector sum[Count];
    for (Vector& part : sum) part = Vector{} + 1;
    for (const std::byte* const from : stream.reads) {
      const auto* next = reinterpret_cast<const Vector*>(from + at);
      for (std::size_t v = 0; v < Count; ++v) sum[v] += next[v];
    }
    for (std::byte* const to : stream.writes) {
      auto* next = reinterpret_cast<Vector*>(to + at);
      for (std::size_t v = 0; v < Count; ++v) put(next + v, sum[v]);
    }
    for (const Vector& part : sum) total ^= part;
    at += Count * sizeof(Vector);
  };
  while (at + kStreamLine <= stream.bytes) turn.template operator()<kVectors>();
  while (at < stream.bytes) turn.template operator()<1>();
  int result = 0;
  for (std::size_t i = 0; i < sizeof(Vector) / sizeof(int); ++i) result ^= total[i];
  return result;
}

}  // namespace
}  // namespace zerocomm::cli
