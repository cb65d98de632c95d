#include "boot/local_socket.hpp"

#include "base/check.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

namespace zerocomm::boot {
namespace {

constexpr int kBacklog = 4096;  // the system has a limit of its own

// Messages keep their boundaries, so that whoever sends too little or too much is known at once.
Descriptor new_socket() noexcept {
  return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

struct Address {
  sockaddr_un value{};
  socklen_t value_bytes = 0;
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&value); }
};

// A leading zero byte makes the name abstract: it is no file, and it ends with the socket.
Address address_of(const std::string& name) noexcept {
  Address address;
  address.value.sun_family = AF_UNIX;
  const std::size_t count = std::min(name.size(), sizeof address.value.sun_path - 1);
  std::memcpy(address.value.sun_path + 1, name.data(), count);
  address.value_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
  return address;
}

[[noreturn]] void refuse(const char* call, const std::string& name) {
  const int error = errno;
  throw Error(ZC_SYSTEM, format("%s for the socket @%s: %s", call, name.c_str(), std::strerror(error)));
}

// Room for two descriptors is what one needs after rounding up; the kernel fills it if a sender passes two.
constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int));

// Takes every descriptor that a message brought. False unless it is exactly one.
bool take_descriptor(msghdr& header, Descriptor* descriptor) noexcept {
  int taken = 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int), ++taken) {
      int number = -1;
      std::memcpy(&number, reinterpret_cast<const char*>(part) + at, sizeof number);
      Descriptor owner(number);
      if (taken == 0) *descriptor = std::move(owner);
    }
  }
  if (taken == 1) return true;
  *descriptor = Descriptor();
  return taken == 0;
}

timespec timespec_of(std::int64_t duration_ns) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return {static_cast<std::time_t>(duration_ns / kSecond), static_cast<long>(duration_ns % kSecond)};
}

}  // namespace

std::uint64_t hash_text(std::string_view text, std::uint64_t seed) noexcept {
  std::uint64_t state = seed;
  const auto add = [&](std::uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15u;
    state ^= state >> 32;
    state *= 0xd6e8feb86659fd93u;
    state ^= state >> 29;
  };
  add(text.size());
  for (const char letter : text) add(static_cast<unsigned char>(letter));
  return state;
}

std::string socket_name(std::string_view purpose, std::string_view text) {
  const std::uint64_t seed = hash_text(purpose, 0x13198a2e03707344u);
  return format("zerocomm-%u-%016llx%016llx", static_cast<unsigned>(geteuid()),
                static_cast<unsigned long long>(hash_text(text, seed)),
                static_cast<unsigned long long>(hash_text(text, ~seed)));
}

Descriptor listen_on(const std::string& name) {
  Descriptor listener = new_socket();
  if (!listener) refuse("socket", name);
  const Address address = address_of(name);
  if (bind(listener.get(), address.get(), address.value_bytes) != 0) {
    if (errno == EADDRINUSE) return {};
    refuse("bind", name);
  }
  if (listen(listener.get(), kBacklog) != 0) refuse("listen", name);
  return listener;
}

Descriptor accept_from(const Descriptor& listener, int* error) noexcept {
  Descriptor connection(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  *error = connection ? 0 : errno;
  return connection;
}

Descriptor connect_to(const std::string& name, int* error) noexcept {
  Descriptor connection = new_socket();
  const Address address = address_of(name);
  if (connection && connect(connection.get(), address.get(), address.value_bytes) == 0) {
    *error = 0;
    return connection;
  }
  const int found = errno;
  // EPROTOTYPE: a socket of another type has the name.
  const bool passing = connection && (found == ECONNREFUSED || found == EAGAIN || found == EINTR ||
                                      found == ECONNRESET || found == EPROTOTYPE);
  *error = passing ? 0 : found;
  return {};
}

bool Peer::same_user() const noexcept { return uid == geteuid(); }

Peer peer_of(const Descriptor& connection) noexcept {
  ucred credentials{};
  socklen_t credentials_bytes = sizeof credentials;
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &credentials_bytes) != 0) return {};
  return {credentials.uid, credentials.pid};
}

Transfer send_message(const Descriptor& connection, const void* message, std::size_t message_bytes,
                      int descriptor) noexcept {
  iovec part{const_cast<void*>(message), message_bytes};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, kControlBytes> control{};
  if (descriptor >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  for (;;) {
    if (sendmsg(connection.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return Transfer::done;
    if (errno == EINTR) continue;
    // ETOOMANYREFS: too many descriptors of this user are on their way.
    const bool passing = errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS;
    return passing ? Transfer::later : Transfer::closed;
  }
}

Transfer receive_message(const Descriptor& connection, std::span<std::byte> room, std::size_t* message_bytes,
                         Descriptor* descriptor) noexcept {
  iovec part{room.data(), room.size()};
  alignas(cmsghdr) std::array<char, kControlBytes> control{};
  bool reset = false, ended = false;
  for (;;) {
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (descriptor != nullptr) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
    }
    const ssize_t received = recvmsg(connection.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (received < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return ended ? Transfer::closed : Transfer::later;
      // Told once when the other side closed with unread messages; what it had sent before is still there.
      if (errno == ECONNRESET && !std::exchange(reset, true)) continue;
      return Transfer::closed;
    }
    const bool one = descriptor == nullptr || take_descriptor(header, descriptor);
    const bool whole = one && (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
    if (descriptor != nullptr && (!whole || received == 0)) *descriptor = Descriptor();
    if (received == 0) {
      // The kernel looks at the queue first and then whether the other side has closed: a message that came in between
      // is there when one looks again. (So is what follows an empty message, which is none of ours.)
      if (std::exchange(ended, true)) return Transfer::closed;
      continue;
    }
    if (!whole) return Transfer::malformed;
    *message_bytes = static_cast<std::size_t>(received);
    return Transfer::done;
  }
}

void wait_readable(std::vector<pollfd>& polled, std::int64_t limit_ns) noexcept {
  const timespec limit = timespec_of(std::max<std::int64_t>(limit_ns, 0));
  if (ppoll(polled.data(), polled.size(), &limit, nullptr) < 0)
    for (pollfd& entry : polled) entry.revents = 0;
}

void sleep_ns(std::int64_t duration_ns) noexcept {
  const timespec duration = timespec_of(std::max<std::int64_t>(duration_ns, 0));
  nanosleep(&duration, nullptr);
}

void Pauses::sleep(std::int64_t limit_ns) noexcept {
  constexpr std::int64_t kLongest = 20'000'000;
  sleep_ns(std::min(next_ns_, limit_ns));
  next_ns_ = std::min(2 * next_ns_, kLongest);
}

std::string seconds_text(std::int64_t duration_ns) {
  return format("%.4g s", static_cast<double>(std::max<std::int64_t>(duration_ns, 0)) * 1e-9);
}

}  // namespace zerocomm::boot
