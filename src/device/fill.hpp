// Fills of host memory: zeros for padding, and poison for memory that nobody may read.
//
// Poison is the byte 0xFF throughout. In every float type that is a NaN (f8e4m3 included), and not the NaN that
// arithmetic makes, so a read of poisoned memory shows; integers read as -1, u8 as 255.
#pragma once

#include <zerocomm/types.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace zerocomm::device {

inline constexpr unsigned char kPoisonByte = 0xFF;

inline void fill_zero_bytes(void* memory, std::size_t bytes) noexcept {
  if (bytes != 0) std::memset(memory, 0, bytes);
}

inline void fill_poison_bytes(void* memory, std::size_t bytes) noexcept {
  if (bytes != 0) std::memset(memory, kPoisonByte, bytes);
}

inline void fill_zero(zc_dtype dtype, void* memory, std::size_t count) noexcept {
  fill_zero_bytes(memory, count * zc_dtype_bytes(dtype));
}

inline void fill_poison(zc_dtype dtype, void* memory, std::size_t count) noexcept {
  fill_poison_bytes(memory, count * zc_dtype_bytes(dtype));
}

// True if every one of `count` elements is still poison; true for none.
inline bool is_poison(zc_dtype dtype, const void* memory, std::size_t count) noexcept {
  const auto* bytes = static_cast<const unsigned char*>(memory);
  return std::all_of(bytes, bytes + count * zc_dtype_bytes(dtype), [](unsigned char b) { return b == kPoisonByte; });
}

}  // namespace zerocomm::device
