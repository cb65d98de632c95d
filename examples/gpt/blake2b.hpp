// BLAKE2b (RFC 7693), unkeyed: a fingerprint of the trained weights. 16 bytes of digest by default.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace gpt {

class Blake2b {
 public:
  explicit Blake2b(std::size_t digest_bytes = 16);  // 1 to 64

  // Bytes may come in any pieces.
  void update(const void* data, std::size_t bytes);

  // Ends the message; the digest as lower-case hexadecimal. Nothing may be called afterwards.
  std::string finish_hex();

 private:
  void compress(const std::uint8_t* block, bool last);

  std::array<std::uint64_t, 8> state_;
  std::array<std::uint8_t, 128> pending_{};  // the last block waits here, because it is compressed differently
  std::size_t pending_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
  std::size_t digest_bytes_;
};

}  // namespace gpt
