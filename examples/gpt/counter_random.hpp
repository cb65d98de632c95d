// Random numbers by counter: the value depends on the key and the index alone, never on who asked before.
// So every rank can produce its own piece of a tensor or batch, and all pieces fit together.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpt {

// The output function of splitmix64 (Steele, Lea, Flood 2014).
inline constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// A key for the stream named by two numbers; chain calls for longer names.
inline constexpr std::uint64_t derive_key(std::uint64_t key, std::uint64_t index) {
  return mix_bits(key ^ mix_bits(index));
}

// Mean 0, standard deviation 1: the sum of twelve 16-bit uniforms (Irwin-Hall). Integer arithmetic up to the
// last step, so the bits do not depend on a maths library.
inline constexpr float normal_at(std::uint64_t key, std::uint64_t index) {
  std::int32_t sum = 0;
  for (std::uint64_t word = 0; word < 3; ++word) {
    const std::uint64_t bits = mix_bits(key + 3 * index + word);
    for (unsigned shift = 0; shift < 64; shift += 16) sum += static_cast<std::int32_t>((bits >> shift) & 0xFFFF);
  }
  constexpr std::int32_t kMean = 12 * 65535 / 2;
  return static_cast<float>(sum - kMean) / 65536.0F;
}

}  // namespace gpt
