// BLAKE2b as RFC 7693 section 3 describes it; names of the parts follow the RFC.
#include "blake2b.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace gpt {
namespace {

constexpr std::array<std::uint64_t, 8> kIv = {0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B,
                                              0xA54FF53A5F1D36F1, 0x510E527FADE682D1, 0x9B05688C2B3E6C1F,
                                              0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179};

constexpr std::uint8_t kSigma[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

constexpr int kRounds = 12;

void mix(std::uint64_t& a, std::uint64_t& b, std::uint64_t& c, std::uint64_t& d, std::uint64_t x, std::uint64_t y) {
  a = a + b + x;
  d = std::rotr(d ^ a, 32);
  c = c + d;
  b = std::rotr(b ^ c, 24);
  a = a + b + y;
  d = std::rotr(d ^ a, 16);
  c = c + d;
  b = std::rotr(b ^ c, 63);
}

std::uint64_t load_little_endian(const std::uint8_t* bytes) {
  std::uint64_t word = 0;
  for (unsigned i = 0; i < 8; ++i) word |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  return word;
}

}  // namespace

Blake2b::Blake2b(std::size_t digest_bytes) : state_(kIv), digest_bytes_(digest_bytes) {
  if (digest_bytes < 1 || digest_bytes > 64) throw std::invalid_argument("a BLAKE2b digest has 1 to 64 bytes");
  state_[0] ^= 0x01010000U ^ digest_bytes;  // fan-out 1, depth 1, no key
}

void Blake2b::update(const void* data, std::size_t bytes) {
  const auto* next = static_cast<const std::uint8_t*>(data);
  while (bytes > 0) {
    if (pending_bytes_ == pending_.size()) {  // more follows, so this was not the last block
      compress(pending_.data(), false);
      pending_bytes_ = 0;
    }
    const std::size_t taken = std::min(bytes, pending_.size() - pending_bytes_);
    std::memcpy(pending_.data() + pending_bytes_, next, taken);
    pending_bytes_ += taken;
    total_bytes_ += taken;
    next += taken;
    bytes -= taken;
  }
}

std::string Blake2b::finish_hex() {
  std::fill(pending_.begin() + static_cast<std::ptrdiff_t>(pending_bytes_), pending_.end(), std::uint8_t{0});
  compress(pending_.data(), true);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (std::size_t i = 0; i < digest_bytes_; ++i) {
    const auto byte = static_cast<std::uint8_t>(state_[i / 8] >> (8 * (i % 8)));
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

void Blake2b::compress(const std::uint8_t* block, bool last) {
  std::array<std::uint64_t, 16> m;
  for (std::size_t i = 0; i < 16; ++i) m[i] = load_little_endian(block + 8 * i);
  std::array<std::uint64_t, 16> v;
  std::copy(state_.begin(), state_.end(), v.begin());
  std::copy(kIv.begin(), kIv.end(), v.begin() + 8);
  v[12] ^= total_bytes_;  // the high word of the counter stays zero: no message here has 2^64 bytes
  if (last) v[14] = ~v[14];
  for (int round = 0; round < kRounds; ++round) {
    const std::uint8_t* s = kSigma[round % 10];
    mix(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]]);
    mix(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]]);
    mix(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]]);
    mix(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]]);
    mix(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]]);
    mix(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]]);
    mix(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]]);
    mix(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]]);
  }
  for (std::size_t i = 0; i < 8; ++i) state_[i] ^= v[i] ^ v[i + 8];
}

}  // namespace gpt
