// Sockets between processes of one user on one host: names without a file, whole messages, descriptors, and the
// kernel's word on who the other side is. Nothing here blocks.
#pragma once

#include "base/descriptor.hpp"

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zerocomm::boot {

// 64 bits of a text. Other seeds give independent hashes.
std::uint64_t hash_text(std::string_view text, std::uint64_t seed) noexcept;

// Name of an abstract socket of this user: "zerocomm-<uid>-" and a 128-bit hash of `text` as hexadecimal digits.
// Another `purpose` gives another name.
std::string socket_name(std::string_view purpose, std::string_view text);

// A new listening socket, or an empty one if somebody has the name. Throws Error(SYSTEM).
Descriptor listen_on(const std::string& name);

// The next connection of a listening socket, or an empty one with *error set to the errno.
Descriptor accept_from(const Descriptor& listener, int* error) noexcept;

// A connection, or an empty one with *error set: 0 if that may change (nobody listens, the queue is full), else the
// errno.
Descriptor connect_to(const std::string& name, int* error) noexcept;

// Who is at the other end of a connection: who connected, or who called listen.
struct Peer {
  uid_t uid = static_cast<uid_t>(-1);
  pid_t pid = 0;  // as this process sees it; 0: in a PID namespace that it cannot see
  bool same_user() const noexcept;
};
Peer peer_of(const Descriptor& connection) noexcept;

enum class Transfer : std::uint8_t {
  done,
  later,     // no room, or nothing there yet
  closed,    // by the other side
  malformed  // received: longer than the room, or with descriptors that were not asked for
};

// Sends one message, and a descriptor with it unless that is negative. Never raises SIGPIPE.
Transfer send_message(const Descriptor& connection, const void* message, std::size_t message_bytes,
                      int descriptor = -1) noexcept;

// Receives one message. *descriptor, if given, gets the one that came along; more than one are closed, and malformed.
Transfer receive_message(const Descriptor& connection, std::span<std::byte> room, std::size_t* message_bytes,
                         Descriptor* descriptor = nullptr) noexcept;

// Waits until one of these can be read or is closed, or limit_ns have passed. May return early.
void wait_readable(std::vector<pollfd>& polled, std::int64_t limit_ns) noexcept;
inline pollfd readable(const Descriptor& descriptor) noexcept { return {descriptor.get(), POLLIN, 0}; }

void sleep_ns(std::int64_t duration_ns) noexcept;

// Pauses between attempts: 1, 2, 4, ... 20 ms.
class Pauses {
 public:
  // Sleeps for the next pause, at most limit_ns.
  void sleep(std::int64_t limit_ns) noexcept;

 private:
  std::int64_t next_ns_ = 1'000'000;
};

// "0.3 s"
std::string seconds_text(std::int64_t duration_ns);

}  // namespace zerocomm::boot
