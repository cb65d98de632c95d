// One source into several outputs, compiled for every level.
#pragma once

#include "device/kernels.hpp"
#include "device/vector.hpp"

namespace zerocomm::device::ZC_LEVEL {

using Bytes = Vec<std::uint8_t>;

struct CopyPass {
  const std::uint8_t* source;
  void* const* outputs;
  std::size_t output_count;
};

template <std::size_t kVectors, bool kStreaming>
[[gnu::always_inline]] inline void copy_group(const CopyPass& pass, std::size_t offset) noexcept {
  Bytes bytes[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) bytes[v] = load<kVectorBytes>(pass.source + offset + v * kVectorBytes);
  for (std::size_t k = 0; k < pass.output_count; ++k) {
    std::uint8_t* to = static_cast<std::uint8_t*>(pass.outputs[k]) + offset;
    for (std::size_t v = 0; v < kVectors; ++v, to += kVectorBytes) {
      if (kStreaming && is_aligned<kVectorBytes>(to))
        stream(to, bytes[v]);
      else
        store(to, bytes[v]);
    }
  }
}

inline void copy_bytes(const CopyPass& pass, std::size_t offset, std::size_t end) noexcept {
  for (std::size_t k = 0; k < pass.output_count && offset < end; ++k)
    __builtin_memcpy(static_cast<std::uint8_t*>(pass.outputs[k]) + offset, pass.source + offset, end - offset);
}

template <bool kStreaming>
void copy_range(const CopyPass& pass, std::size_t bytes) noexcept {
  constexpr std::size_t kGroup = 4 * kVectorBytes;
  std::size_t offset = 0;
  if (kStreaming && pass.output_count != 0) {
    offset = lesser(bytes, bytes_to_line(pass.outputs[0]));
    copy_bytes(pass, 0, offset);
  }
  for (; offset + kGroup <= bytes; offset += kGroup) copy_group<4, kStreaming>(pass, offset);
  copy_bytes(pass, offset, bytes);
  if (kStreaming) end_of_stream();
}

}  // namespace zerocomm::device::ZC_LEVEL
