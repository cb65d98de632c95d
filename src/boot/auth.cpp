#include "boot/auth.hpp"

#include "base/check.hpp"
#include "base/descriptor.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace zerocomm::boot {
namespace {

static_assert(sizeof(Tag) == crypto_secretbox_KEYBYTES && Seal::kExtraBytes == crypto_secretbox_MACBYTES);
static_assert(sizeof(Tag) <= crypto_generichash_BYTES_MAX && sizeof(Tag) >= crypto_generichash_BYTES);

unsigned char* raw(std::byte* bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) noexcept { return reinterpret_cast<const unsigned char*>(bytes); }

void start() {
  ZC_REQUIRE(sodium_init() >= 0, ZC_SYSTEM, "libsodium cannot start: the system gives no random numbers");
}

// Text parts are preceded by their number of bytes, so that no two lists of parts give the same bytes.
class Hash {
 public:
  explicit Hash(const Tag& key) noexcept { crypto_generichash_init(&state_, raw(key.data()), key.size(), sizeof(Tag)); }
  void add(std::span<const std::byte> bytes) noexcept {
    const std::uint64_t count = bytes.size();
    crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(&count), sizeof count);
    crypto_generichash_update(&state_, raw(bytes.data()), bytes.size());
  }
  Tag end() noexcept {
    Tag tag;
    crypto_generichash_final(&state_, raw(tag.data()), tag.size());
    return tag;
  }

 private:
  crypto_generichash_state state_;
};

std::array<unsigned char, crypto_secretbox_NONCEBYTES> number(bool from_server, std::uint64_t count) noexcept {
  std::array<unsigned char, crypto_secretbox_NONCEBYTES> nonce{};
  nonce[0] = from_server ? 1 : 2;
  std::memcpy(nonce.data() + 1, &count, sizeof count);
  return nonce;
}

}  // namespace

Nonce make_nonce() {
  start();
  Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

bool equal(const Tag& a, const Tag& b) noexcept { return sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

Key Key::read(const std::string& path) {
  start();
  const char* const how = "make one with: (umask 077; head -c 32 /dev/urandom > FILE), and give all hosts a copy";
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  ZC_REQUIRE(file, ZC_ARGUMENT, "ZC_KEY_FILE: %s: %s; %s", path.c_str(), std::strerror(errno), how);
  struct stat info {};
  ZC_REQUIRE(fstat(file.get(), &info) == 0, ZC_SYSTEM, "ZC_KEY_FILE: %s: %s", path.c_str(), std::strerror(errno));
  ZC_REQUIRE(S_ISREG(info.st_mode), ZC_ARGUMENT, "ZC_KEY_FILE: %s is no regular file; %s", path.c_str(), how);
  ZC_REQUIRE(info.st_uid == geteuid(), ZC_ARGUMENT,
             "ZC_KEY_FILE: %s belongs to user %u, this process to user %u; give each user a key file of their own",
             path.c_str(), static_cast<unsigned>(info.st_uid), static_cast<unsigned>(geteuid()));
  ZC_REQUIRE(
      (info.st_mode & 0177) == 0, ZC_ARGUMENT,
      "ZC_KEY_FILE: %s has mode %04o, so that others may know the key; make a new one with: (umask 077; head -c 32 "
      "/dev/urandom > FILE), or if nobody has read it: chmod 600 %s",
      path.c_str(), static_cast<unsigned>(info.st_mode & 07777), path.c_str());
  Key key;
  key.path_ = path;
  std::array<std::byte, kMostBytes + 1> room;
  std::size_t count = 0;
  for (;;) {
    const ssize_t got = ::read(file.get(), room.data() + count, room.size() - count);
    if (got < 0 && errno == EINTR) continue;
    ZC_REQUIRE(got >= 0, ZC_SYSTEM, "ZC_KEY_FILE: %s: %s", path.c_str(), std::strerror(errno));
    if (got == 0) break;
    count += static_cast<std::size_t>(got);
  }
  crypto_generichash(raw(key.hash_.data()), key.hash_.size(), raw(room.data()), count, nullptr, 0);
  sodium_memzero(room.data(), room.size());
  ZC_REQUIRE(count >= kLeastBytes && count <= kMostBytes, ZC_ARGUMENT,
             "ZC_KEY_FILE: %s has %s bytes; a key has %zu to %zu, all of them random; %s", path.c_str(),
             count > kMostBytes ? "too many" : std::to_string(count).c_str(), kLeastBytes, kMostBytes, how);
  return key;
}

Key::~Key() { sodium_memzero(hash_.data(), hash_.size()); }
Key::Key(Key&& other) noexcept : hash_(other.hash_), path_(std::move(other.path_)) {}

Tag Key::prove(Proof proof, std::string_view job, const Nonce& client, const Nonce& server) const noexcept {
  constexpr std::string_view kPurpose = "zerocomm rendezvous 1";
  Hash hash(hash_);
  hash.add(std::as_bytes(std::span(kPurpose)));
  hash.add(std::as_bytes(std::span(&proof, 1)));
  hash.add(std::as_bytes(std::span(job)));
  hash.add(client);
  hash.add(server);
  return hash.end();
}

std::string Key::fingerprint() const {
  Hash hash(hash_);
  hash.add(std::as_bytes(std::span(std::string_view("fingerprint"))));
  const Tag tag = hash.end();
  std::string text;
  for (int i = 0; i < 4; ++i) text += format("%02x", static_cast<unsigned>(tag[static_cast<std::size_t>(i)]));
  return text;
}

std::vector<std::byte> Seal::close(std::span<const std::byte> message) {
  std::vector<std::byte> sealed(message.size() + kExtraBytes);
  const auto nonce = number(is_server_, closed_++);
  crypto_secretbox_easy(raw(sealed.data()), raw(message.data()), message.size(), nonce.data(), raw(session_.data()));
  return sealed;
}

std::optional<std::vector<std::byte>> Seal::open(std::span<const std::byte> sealed) {
  if (sealed.size() < kExtraBytes) return std::nullopt;
  std::vector<std::byte> message(sealed.size() - kExtraBytes);
  const auto nonce = number(!is_server_, opened_);
  if (crypto_secretbox_open_easy(raw(message.data()), raw(sealed.data()), sealed.size(), nonce.data(),
                                 raw(session_.data())) != 0)
    return std::nullopt;
  ++opened_;
  return message;
}

}  // namespace zerocomm::boot
