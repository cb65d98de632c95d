// Streams over memory, as fast as this processor does them: what a collective is compared with.
#pragma once

#include <cstddef>
#include <span>

namespace zerocomm::cli {

// Reads all `reads`, adds them up element by element and writes the sum to all `writes`; all of `bytes` bytes, a
// multiple of 64, at multiples of 64. No reads: a constant is written. No writes: the sum of everything is returned, so
// that nothing is left out. `bypass`: stores that go past the caches, and are there when this returns.
struct BenchStream {
  std::span<const std::byte* const> reads;
  std::span<std::byte* const> writes;
  std::size_t bytes = 0;
  bool bypass = false;
};
int run_stream(const BenchStream& stream);

// "AVX-512", "AVX2", "SSE2" or "portable": what run_stream uses.
const char* stream_level();
// Are there stores that bypass the caches?
bool has_bypass();

// The levels, for run_stream alone.
int run_stream_avx512(const BenchStream& stream);
int run_stream_avx2(const BenchStream& stream);
int run_stream_base(const BenchStream& stream);

}  // namespace zerocomm::cli
