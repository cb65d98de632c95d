// A buffer with canaries on both sides, at a chosen distance from an aligned address.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>

namespace zerocomm::test {

class GuardedBuffer {
 public:
  static constexpr std::size_t kGuardBytes = 128;
  static constexpr unsigned char kCanary = 0xA5;

  // `bytes` bytes that start `shift_bytes` behind a multiple of 64, all canary at first.
  explicit GuardedBuffer(std::size_t bytes, std::size_t shift_bytes = 0)
      : bytes_(bytes),
        whole_bytes_(2 * kGuardBytes + shift_bytes + bytes),
        shift_bytes_(shift_bytes),
        memory_(static_cast<std::byte*>(::operator new (whole_bytes_, std::align_val_t{64}))) {
    std::memset(memory_, kCanary, whole_bytes_);
  }
  ~GuardedBuffer() { ::operator delete (memory_, std::align_val_t{64}); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  std::byte* data() { return memory_ + kGuardBytes + shift_bytes_; }
  const std::byte* data() const { return memory_ + kGuardBytes + shift_bytes_; }
  std::size_t bytes() const { return bytes_; }

  // Nothing but the buffer itself was written.
  bool guards_intact() const {
    const std::byte* end = data() + bytes_;
    return is_canary(memory_, kGuardBytes + shift_bytes_) && is_canary(end, kGuardBytes);
  }

  // Not even the buffer was written.
  bool untouched() const { return is_canary(memory_, whole_bytes_); }

  static bool is_canary(const std::byte* from, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      if (from[i] != std::byte{kCanary}) return false;
    return true;
  }

 private:
  std::size_t bytes_;
  std::size_t whole_bytes_;
  std::size_t shift_bytes_;
  std::byte* memory_;
};

}  // namespace zerocomm::test
