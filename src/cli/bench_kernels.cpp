#include "cli/bench_kernels.hpp"

#include "cli/bench_kernel_body.hpp"

#include <atomic>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace zerocomm::cli {
namespace {

enum class Level : unsigned char { base, avx2, avx512 };

Level level() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return Level::avx512;
  if (__builtin_cpu_supports("avx2")) return Level::avx2;
#endif
  return Level::base;
}

}  // namespace

int run_stream_base(const BenchStream& stream) {
  using Vector [[gnu::vector_size(16), gnu::may_alias]] = int;
#ifdef __x86_64__
  if (stream.bypass)
    return stream_loop<Vector>(stream, [](Vector* to, const Vector& value) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<const __m128i&>(value));
    });
#endif
  return stream_loop<Vector>(stream, [](Vector* to, const Vector& value) { *to = value; });
}

const char* stream_level() {
#ifdef __x86_64__
  const char* const kNames[] = {"SSE2", "AVX2", "AVX-512"};
  return kNames[static_cast<unsigned>(level())];
#else
  return "portable";
#endif
}

bool has_bypass() {
#ifdef __x86_64__
  return true;
#else
  return false;
#endif
}

int run_stream(const BenchStream& stream) {
  int result = 0;
  switch (level()) {
#ifdef __x86_64__
    case Level::avx512:
      result = run_stream_avx512(stream);
      break;
    case Level::avx2:
      result = run_stream_avx2(stream);
      break;
#endif
    default:
      result = run_stream_base(stream);
  }
  // An exchange empties the buffers in which such stores wait.
  std::atomic<int> drained{0};
  if (stream.bypass) drained.exchange(result);
  return result;
}

}  // namespace zerocomm::cli
