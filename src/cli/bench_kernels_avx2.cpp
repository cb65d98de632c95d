// run_stream for processors with AVX2; compiled with that option.
#include "cli/bench_kernel_body.hpp"

#include <immintrin.h>

namespace zerocomm::cli {

int run_stream_avx2(const BenchStream& stream) {
  using Vector [[gnu::vector_size(32), gnu::may_alias]] = int;
  if (stream.bypass)
    return stream_loop<Vector>(stream, [](Vector* to, const Vector& value) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<const __m256i&>(value));
    });
  return stream_loop<Vector>(stream, [](Vector* to, const Vector& value) { *to = value; });
}

}  // namespace zerocomm::cli
