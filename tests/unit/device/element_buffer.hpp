// Elements between two guards, for tests of kernels: on a cache line or one element off it, filled with ordinary
// and difficult values.
#pragma once

#include "scalar_reference.hpp"

#include <algorithm>
#include <random>

class ElementBuffer {
 public:
  ElementBuffer(zc_dtype dtype, std::size_t count, bool misaligned = false)
      : dtype_(dtype), bytes_(count * zc_dtype_bytes(dtype)) {
    storage_.assign(bytes_ + 4 * kGuardBytes, kGuard);
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    first_ = kGuardBytes + (kGuardBytes - address % kGuardBytes) % kGuardBytes;
    if (misaligned) first_ += zc_dtype_bytes(dtype);
  }

  void* data() { return storage_.data() + first_; }
  const void* data() const { return storage_.data() + first_; }

  std::vector<unsigned char> contents() const {
    const auto* begin = static_cast<const unsigned char*>(data());
    return {begin, begin + bytes_};
  }

  bool guards_intact() const {
    const auto intact = [](unsigned char byte) { return byte == kGuard; };
    return std::all_of(storage_.data(), storage_.data() + first_, intact) &&
           std::all_of(storage_.data() + first_ + bytes_, storage_.data() + storage_.size(), intact);
  }

  // A third each: difficult values, values of similar magnitude, any bit pattern.
  void fill(std::mt19937_64& random) {
    const std::size_t element_bytes = zc_dtype_bytes(dtype_);
    for (std::size_t at = 0; at < bytes_; at += element_bytes) {
      std::uint64_t bits = random();
      if (reference::is_float(dtype_)) {
        if (bits % 3 == 0)
          bits = reference::encode_bits(dtype_, reference::round_to(dtype_, difficult_value(bits >> 8)));
        else if (bits % 3 == 1)
          bits = reference::encode_bits(dtype_, reference::round_to(dtype_, ordinary_(random)));
        else
          bits = random();
      } else if (bits % 3 == 0) {
        constexpr std::int64_t kEdges[] = {0, 1, -1, 127, -128, 0x7fffffff, -0x7fffffff - 1, INT64_MAX, INT64_MIN};
        bits = static_cast<std::uint64_t>(kEdges[(bits >> 8) % std::size(kEdges)]);
      } else {
        bits = random();
      }
      std::memcpy(static_cast<unsigned char*>(data()) + at, &bits, element_bytes);
    }
  }

 private:
  static constexpr std::size_t kGuardBytes = 64;
  static constexpr unsigned char kGuard = 0xA5;

  double difficult_value(std::uint64_t pick) const {
    const reference::FloatFormat format = reference::format_of(dtype_);
    const double largest = std::ldexp(2.0 - std::ldexp(1.0, 1 - format.digits), format.max_exponent);
    const double tiny = std::ldexp(1.0, format.min_exponent - format.digits + 1);
    const double values[] = {0.0,
                             -0.0,
                             1.0,
                             -1.0,
                             largest,
                             -largest,
                             largest / 2,
                             tiny,
                             -tiny,
                             5 * tiny,
                             std::ldexp(1.0, format.min_exponent),
                             1.0 / 3,
                             65504,
                             2049.0,
                             1.0 + std::ldexp(1.0, 1 - format.digits),
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};
    return values[pick % std::size(values)];
  }

  zc_dtype dtype_;
  std::size_t bytes_;
  std::size_t first_ = 0;
  std::vector<unsigned char> storage_;
  std::normal_distribution<double> ordinary_{0.0, 3.0};
};

// Bits are equal, or both are a NaN: the payload of a NaN is not promised.
inline bool same_element(zc_dtype dtype, const void* memory, std::size_t i, std::uint64_t expected_bits) {
  const std::size_t bytes = zc_dtype_bytes(dtype);
  const auto* element = static_cast<const unsigned char*>(memory) + i * bytes;
  if (std::memcmp(element, &expected_bits, bytes) == 0) return true;  // little endian
  return reference::is_float(dtype) && std::isnan(reference::load_float(dtype, memory, i)) &&
         std::isnan(reference::load_float(dtype, &expected_bits, 0));
}
