// The bytes of the TCP rendezvous. Every message has a length that both sides know beforehand: none is read from the
// wire.
//
//   client                                   rank 0
//   Greeting: nonce, proof of the key   ->            what no proof comes with is dropped without a word
//                                       <-   Challenge: nonce, proof over both nonces
//   Answer: proof over both nonces      ->
//   Hello, sealed                       ->
//                                       <-   Accepted, sealed
//                                       <-   Met or Failed, sealed
#pragma once

#include "boot/auth.hpp"
#include "boot/local_socket.hpp"
#include "boot/rendezvous_wire.hpp"

#include <array>
#include <cstring>
#include <string_view>

namespace zerocomm::boot::wire {

// The first two members are the same in every version.
struct Greeting {
  static constexpr std::uint64_t kMagic = 0x7a65726f2d746370u;
  std::uint64_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t reserved = 0;
  std::uint64_t job_mark = 0;
  Nonce nonce{};
  Tag proof{};
};

struct Challenge {
  Nonce nonce{};
  Tag proof{};
};

struct Answer {
  Tag proof{};
};
static_assert(Plain<Greeting> && Plain<Challenge> && Plain<Answer>);

// By which rank 0 knows the job in a greeting.
inline std::uint64_t job_mark(std::string_view job) noexcept { return hash_text(job, 0x452821e638d01377u); }
inline std::string_view mark_text(const std::uint64_t& mark) noexcept {
  return {reinterpret_cast<const char*>(&mark), sizeof mark};
}
inline std::uint64_t tcp_job_hash(std::string_view job) noexcept { return hash_text(job, 0x3f84d5b5b5470917u); }

inline constexpr std::size_t kSealedHelloBytes = sizeof(Hello) + Seal::kExtraBytes;

// What rank 0 sends after the handshake: any of its messages, with zeros up to one length.
using Reply = std::array<std::byte, std::max({sizeof(Accepted), sizeof(Met), sizeof(Failed)})>;
inline constexpr std::size_t kSealedReplyBytes = sizeof(Reply) + Seal::kExtraBytes;

template <Plain Message>
Reply reply_of(const Message& message) noexcept {
  static_assert(sizeof message <= sizeof(Reply));
  Reply reply{};
  std::memcpy(reply.data(), &message, sizeof message);
  return reply;
}
template <Plain Message>
std::optional<Message> read_reply(std::span<const std::byte> reply) noexcept {
  if (reply.size() != sizeof(Reply)) return std::nullopt;
  return read<Message>(reply.first(sizeof(Message)));
}

}  // namespace zerocomm::boot::wire
