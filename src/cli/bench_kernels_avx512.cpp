// run_stream for processors with AVX-512; compiled with that option.
#include "cli/bench_kernel_body.hpp"

#include <immintrin.h>

namespace zerocomm::cli {

int run_stream_avx512(const BenchStream& stream) {
  using Vector [[gnu::vector_size(64), gnu::may_alias]] = int;
  if (stream.bypass)
    return stream_loop<Vector>(stream, [](Vector* to, const Vector& value) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<const __m512i&>(value));
    });
  return stream_loop<Vector>(stream, [](Vector* to, const Vector& value) { *to = value; });
}

}  // namespace zerocomm::cli
