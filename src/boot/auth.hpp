// Proof that the other side of a connection has the same key, and messages that only the two of them can read or make.
// The only user of libsodium.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zerocomm::boot {

// Numbers drawn for one connection, and keyed hashes.
using Nonce = std::array<std::byte, 32>;
using Tag = std::array<std::byte, 32>;

Nonce make_nonce();
// Takes the same time wherever they differ.
bool equal(const Tag& a, const Tag& b) noexcept;

// Who proves, and to what end. A proof of one kind is none of another.
enum class Proof : std::uint8_t { greeting = 1, server, client, session };

// The content of a key file, known to all ranks of a job. Erased from memory at its end.
class Key {
 public:
  static constexpr std::size_t kLeastBytes = 32, kMostBytes = 4096;

  // Throws Error(ARGUMENT) if the file is not there, not the user's own, open to others, too short or too long; the
  // text says what to do.
  static Key read(const std::string& path);
  ~Key();
  Key(Key&& other) noexcept;
  Key& operator=(Key&&) = delete;

  Tag prove(Proof proof, std::string_view job, const Nonce& client, const Nonce& server) const noexcept;
  // 8 digits by which people see whether two keys are the same, without seeing the key.
  std::string fingerprint() const;
  const std::string& path() const noexcept { return path_; }

 private:
  Key() = default;
  Tag hash_{};  // of the file's bytes: keys of any length have the strength of their content
  std::string path_;
};

// One direction or the other of a connection after its handshake.
class Seal {
 public:
  static constexpr std::size_t kExtraBytes = 16;

  Seal(const Tag& session, bool is_server) : session_(session), is_server_(is_server) {}
  // The message, unreadable, kExtraBytes longer.
  std::vector<std::byte> close(std::span<const std::byte> message);
  // The next message of the other side; nothing if it is not that.
  std::optional<std::vector<std::byte>> open(std::span<const std::byte> sealed);

 private:
  Tag session_;
  bool is_server_;
  std::uint64_t closed_ = 0, opened_ = 0;
};

}  // namespace zerocomm::boot
