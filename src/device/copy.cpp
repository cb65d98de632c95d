// Which copy is done how.
#include "device/copy.hpp"

#include "device/kernels.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace zerocomm::device {

std::size_t bytes_to_line(const void* address) noexcept {
  constexpr std::uintptr_t kLineBytes = 64;
  return (kLineBytes - reinterpret_cast<std::uintptr_t>(address) % kLineBytes) % kLineBytes;
}

void end_of_stream() noexcept {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

CopyToManyFn find_copy_to_many(Level level) noexcept {
  const LevelKernels* kernels = find_level(level);
  return kernels != nullptr ? kernels->copy_to_many : nullptr;
}

void copy_to_many(const void* source, void* const* outputs, std::size_t output_count, std::size_t bytes,
                  Stores stores) noexcept {
  static const CopyToManyFn run = find_copy_to_many(level_choice().level);
  run(source, outputs, output_count, bytes, stores);
}

void copy(void* output, const void* source, std::size_t bytes, Stores stores) noexcept {
  if (bytes == 0) return;
  if (stores == Stores::cached)
    std::memcpy(output, source, bytes);
  else
    copy_to_many(source, &output, 1, bytes, stores);
}

}  // namespace zerocomm::device
