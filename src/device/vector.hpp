// Vectors of the instruction set that this translation unit is compiled for, and how they get to and from memory.
//
// The files kernels_<level>.cpp include this and the other headers of the kernels, each compiled with its own flags. So
// all that the headers define lies in the namespace of the level, and they call no inline function of anybody else, the
// standard library's included: the linker keeps one copy of such a function, which might be the one for AVX-512. The
// test lint.kernel_levels looks for shared symbols.
#pragma once

#ifndef ZC_LEVEL
#define ZC_LEVEL baseline
#endif

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Sanitizers see ordinary loads and stores, not intrinsics; then there are only ordinary ones.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ZC_STREAMS 1
#else
#define ZC_STREAMS 0
#endif
#if defined(__AVX512BW__) && ZC_STREAMS
#define ZC_MASKS 1
#else
#define ZC_MASKS 0
#endif

namespace zerocomm::device::ZC_LEVEL {

#if defined(__AVX512F__)
constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

template <class T, std::size_t kBytes>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kBytes)));
};
template <class T, std::size_t kBytes = kVectorBytes>
using Vec = typename VectorOf<T, kBytes>::Type;

template <class T>
constexpr std::size_t kLanes = kVectorBytes / sizeof(T);

// The bits of a vector as lanes of another type.
template <class To, class From>
[[gnu::always_inline]] inline Vec<To, sizeof(From)> as(From from) noexcept {
  return __builtin_bit_cast(Vec<To, sizeof(From)>, from);
}

// The lanes that are no numbers: a number equals its copy.
template <class Floats>
[[gnu::always_inline]] inline auto is_nan(Floats x) noexcept {
  const Floats copy = x;
  return x != copy;
}

template <std::size_t kBytes, class T>
[[gnu::always_inline]] inline Vec<T, kBytes> load(const T* from) noexcept {
  Vec<T, kBytes> vector;
  __builtin_memcpy(&vector, from, kBytes);
  return vector;
}

template <class T, class Vector>
[[gnu::always_inline]] inline void store(T* to, Vector vector) noexcept {
  __builtin_memcpy(to, &vector, sizeof vector);
}

// Parts of a vector: the first `count` lanes, 1 to all of them; the others load as 0 and are not stored.
#if ZC_MASKS
constexpr bool kPartsAreFast = true;

template <std::size_t kBytes, class T>
[[gnu::always_inline]] inline Vec<T, kBytes> load_part(const T* from, std::size_t count) noexcept {
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - count);
  if constexpr (kBytes == 64 && sizeof(T) == 1)
    return as<T>(_mm512_maskz_loadu_epi8(mask, from));
  else if constexpr (kBytes == 64 && sizeof(T) == 2)
    return as<T>(_mm512_maskz_loadu_epi16(static_cast<__mmask32>(mask), from));
  else if constexpr (kBytes == 64 && sizeof(T) == 4)
    return as<T>(_mm512_maskz_loadu_epi32(static_cast<__mmask16>(mask), from));
  else if constexpr (kBytes == 64)
    return as<T>(_mm512_maskz_loadu_epi64(static_cast<__mmask8>(mask), from));
  else
    return as<T>(_mm256_maskz_loadu_epi16(static_cast<__mmask16>(mask), from));
}

template <class T, class Vector>
[[gnu::always_inline]] inline void store_part(T* to, Vector vector, std::size_t count) noexcept {
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - count);
  if constexpr (sizeof vector == 64 && sizeof(T) == 1)
    _mm512_mask_storeu_epi8(to, mask, __builtin_bit_cast(__m512i, vector));
  else if constexpr (sizeof vector == 64 && sizeof(T) == 2)
    _mm512_mask_storeu_epi16(to, static_cast<__mmask32>(mask), __builtin_bit_cast(__m512i, vector));
  else if constexpr (sizeof vector == 64 && sizeof(T) == 4)
    _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(mask), __builtin_bit_cast(__m512i, vector));
  else if constexpr (sizeof vector == 64)
    _mm512_mask_storeu_epi64(to, static_cast<__mmask8>(mask), __builtin_bit_cast(__m512i, vector));
  else
    _mm256_mask_storeu_epi16(to, static_cast<__mmask16>(mask), __builtin_bit_cast(__m256i, vector));
}
#else
constexpr bool kPartsAreFast = false;

// One call instead of the many instructions that an inlined copy of unknown length takes.
[[gnu::noinline]] inline void copy_part(void* to, const void* from, std::size_t bytes) noexcept {
  __builtin_memcpy(to, from, bytes);
}

template <std::size_t kBytes, class T>
[[gnu::always_inline]] inline Vec<T, kBytes> load_part(const T* from, std::size_t count) noexcept {
  Vec<T, kBytes> vector{};
  copy_part(&vector, from, count * sizeof(T));
  return vector;
}

template <class T, class Vector>
[[gnu::always_inline]] inline void store_part(T* to, Vector vector, std::size_t count) noexcept {
  copy_part(to, &vector, count * sizeof(T));
}
#endif

// `to` is aligned to the vector.
template <class T, class Vector>
[[gnu::always_inline]] inline void stream(T* to, Vector vector) noexcept {
#if ZC_STREAMS
  if constexpr (sizeof vector == 8)
    _mm_stream_si64(reinterpret_cast<long long*>(to), __builtin_bit_cast(long long, vector));
  else if constexpr (sizeof vector == 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), __builtin_bit_cast(__m128i, vector));
#if defined(__AVX2__)
  else if constexpr (sizeof vector == 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), __builtin_bit_cast(__m256i, vector));
#endif
#if defined(__AVX512F__)
  else if constexpr (sizeof vector == 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), __builtin_bit_cast(__m512i, vector));
#endif
#else
  store(to, vector);
#endif
}

template <std::size_t kBytes>
[[gnu::always_inline]] inline bool is_aligned(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) % kBytes == 0;
}

[[gnu::always_inline]] constexpr inline std::size_t lesser(std::size_t a, std::size_t b) noexcept {
  return a < b ? a : b;
}

}  // namespace zerocomm::device::ZC_LEVEL
