// What the ranks say to each other while a communicator is created: on one host over local sockets, before that
// perhaps over TCP or a store. Each message is one struct, sent whole; all hosts are little endian.
#pragma once

#include "boot/rendezvous.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace zerocomm::boot::wire {

inline constexpr std::uint64_t kMagic = 0x7a65726f6a6f696eu;
inline constexpr std::uint32_t kVersion = 2;

// In the order in which they are sent. rank 0 -> others: accepted, ranks, segment, go. Others -> rank 0: hello, ready.
// failed goes both ways, at any time, and is the last.
enum class Kind : std::uint32_t { hello = 1, accepted, ranks, segment, ready, go, failed, wanted, met };

// These three members are the same in every version.
struct Header {
  std::uint64_t magic = kMagic;
  std::uint32_t version = kVersion;
  Kind kind = Kind::failed;
};

inline constexpr std::size_t kAgreedCharacters = 200;

struct Hello {
  static constexpr Kind kKind = Kind::hello;
  Header header{.kind = kKind};
  std::uint64_t job_hash = 0;  // another one than in the socket's name
  std::uint64_t agreed = 0;
  std::int64_t deadline_ns = 0;  // as asked
  std::int64_t left_ns = 0;      // of it, when this was sent
  Identity identity;
  std::int32_t ranks = 0;
  std::uint32_t reserved = 0;
  char agreed_text[kAgreedCharacters + 8] = {};

  static Hello of(const JoinRequest& request, const Identity& own, std::uint64_t job_hash,
                  std::int64_t left_ns) noexcept;
};

struct Accepted {
  static constexpr Kind kKind = Kind::accepted;
  Header header{.kind = kKind};
  Identity server;
};

// A part of the list of all ranks.
struct Ranks {
  static constexpr Kind kKind = Kind::ranks;
  static constexpr std::size_t kMost = 32;
  Header header{.kind = kKind};
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::array<Identity, kMost> identities{};
};

// The descriptor comes along.
struct Segment {
  static constexpr Kind kKind = Kind::segment;
  Header header{.kind = kKind};
  std::uint64_t strangers = 0;  // that rank 0 turned away
};

struct Ready {
  static constexpr Kind kKind = Kind::ready;
  Header header{.kind = kKind};
};

struct Go {
  static constexpr Kind kKind = Kind::go;
  Header header{.kind = kKind};
};

struct Failed {
  static constexpr Kind kKind = Kind::failed;
  Header header{.kind = kKind};
  std::int32_t status = 0;
  char text[2044] = {};

  static Failed of(std::int32_t status, std::string_view text) noexcept;
  Error error() const;
};

// Asks for the descriptor of an exchange.
struct Wanted {
  static constexpr Kind kKind = Kind::wanted;
  Header header{.kind = kKind};
  std::uint64_t name_hash = 0;
};

// All ranks have come, over TCP or a store, and are on one host: they meet there under this name.
struct Met {
  static constexpr Kind kKind = Kind::met;
  Header header{.kind = kKind};
  std::uint64_t strangers = 0;
  char job[64] = {};
};

inline constexpr std::size_t kMostBytes = std::max(sizeof(Ranks), sizeof(Failed));

// No byte of these is padding, which would carry whatever lay on the stack.
template <class Message>
concept Plain = std::is_trivially_copyable_v<Message> && std::has_unique_object_representations_v<Message>;
static_assert(Plain<Hello> && Plain<Accepted> && Plain<Ranks> && Plain<Segment> && Plain<Failed> && Plain<Wanted> &&
              Plain<Met>);

inline std::optional<Header> header_of(std::span<const std::byte> bytes) noexcept {
  Header header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) return std::nullopt;
  return header;
}

// The message, if the bytes are one of that kind, of this version, and exactly as long.
template <Plain Message>
std::optional<Message> read(std::span<const std::byte> bytes) noexcept {
  const std::optional<Header> header = header_of(bytes);
  if (!header || header->version != kVersion || header->kind != Message::kKind || bytes.size() != sizeof(Message))
    return std::nullopt;
  Message message;
  std::memcpy(&message, bytes.data(), sizeof message);
  return message;
}

// Texts end with a zero, whatever the sender did.
template <std::size_t kBytes>
void put_text(char (&field)[kBytes], std::string_view text) noexcept {
  const std::size_t count = std::min(text.size(), kBytes - 1);
  std::memcpy(field, text.data(), count);
  field[count] = '\0';
}
template <std::size_t kBytes>
std::string get_text(const char (&field)[kBytes]) {
  return {field, strnlen(field, kBytes - 1)};
}

inline Hello Hello::of(const JoinRequest& request, const Identity& own, std::uint64_t job_hash,
                       std::int64_t left_ns) noexcept {
  Hello hello;
  hello.job_hash = job_hash;
  hello.agreed = request.agreed;
  hello.deadline_ns = request.deadline_ns;
  hello.left_ns = left_ns;
  hello.identity = own;
  hello.ranks = request.ranks;
  put_text(hello.agreed_text, std::string_view(request.agreed_text).substr(0, kAgreedCharacters));
  return hello;
}

inline Failed Failed::of(std::int32_t status, std::string_view text) noexcept {
  Failed message;
  message.status = status;
  put_text(message.text, text);
  return message;
}

// A number that is no error's status is a defect of the sender.
inline Error Failed::error() const {
  const bool known = status > ZC_OK && std::strcmp(zc_status_name(static_cast<zc_status>(status)), "UNKNOWN") != 0;
  return {known ? static_cast<zc_status>(status) : ZC_INTERNAL, get_text(text)};
}

}  // namespace zerocomm::boot::wire
