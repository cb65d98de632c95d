// BLAKE2b against the vector of RFC 7693 and against digests of another implementation (Python's hashlib).
#include "blake2b.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gpt {
namespace {

std::string hash(const void* data, std::size_t bytes, std::size_t digest_bytes) {
  Blake2b hasher(digest_bytes);
  hasher.update(data, bytes);
  return hasher.finish_hex();
}

// Byte i is 7 i mod 256.
std::vector<std::uint8_t> ramp(std::size_t bytes) {
  std::vector<std::uint8_t> ramp(bytes);
  for (std::size_t i = 0; i < bytes; ++i) ramp[i] = static_cast<std::uint8_t>(7 * i);
  return ramp;
}

TEST(Blake2b, of_abc_is_the_vector_of_the_rfc) {
  EXPECT_EQ(hash("abc", 3, 64),
            "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
            "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923");
}

TEST(Blake2b, with_16_bytes_agrees_with_hashlib_around_the_block_of_128_bytes) {
  EXPECT_EQ(hash(nullptr, 0, 16), "cae66941d9efbd404e4d88758ea67670");
  EXPECT_EQ(hash("abc", 3, 16), "cf4ab791c62b8d2b2109c90275287816");
  const std::vector<std::pair<std::size_t, const char*>> expected = {{127, "40efb3ed1b6eb973c5f774422adb0230"},
                                                                     {128, "06e5bcee475a6bf6d9b8a07c6f4ae80a"},
                                                                     {129, "2ec7e7bf8a8265ffd68aadd70ecd2b7e"},
                                                                     {256, "dbb08d79105462394550aa4d4e10133f"},
                                                                     {1000, "8095a6f38992fefe1c12ac8ec5e70791"}};
  for (const auto& [bytes, digest] : expected) EXPECT_EQ(hash(ramp(bytes).data(), bytes, 16), digest) << bytes;
}

TEST(Blake2b, does_not_depend_on_the_pieces_in_which_bytes_come) {
  const std::vector<std::uint8_t> message = ramp(1000);
  for (const std::size_t piece : {1U, 3U, 127U, 128U, 129U, 500U}) {
    Blake2b hasher;
    for (std::size_t first = 0; first < message.size(); first += piece) {
      hasher.update(message.data() + first, std::min<std::size_t>(piece, message.size() - first));
    }
    EXPECT_EQ(hasher.finish_hex(), "8095a6f38992fefe1c12ac8ec5e70791") << piece;
  }
}

TEST(Blake2b, refuses_a_digest_of_0_or_65_bytes) {
  EXPECT_THROW(Blake2b(0), std::invalid_argument);
  EXPECT_THROW(Blake2b(65), std::invalid_argument);
}

}  // namespace
}  // namespace gpt
