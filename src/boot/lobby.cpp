#include "boot/lobby.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

namespace zerocomm::boot {

void Lobby::watch(std::vector<pollfd>& polled) const {
  polled.push_back(readable(listener_));
  for (const Caller& caller : silent_) polled.push_back(readable(caller.connection));
}

std::int64_t Lobby::left_ns() const noexcept {
  return silent_.empty() ? std::numeric_limits<std::int64_t>::max() : silent_.front().limit.left_ns();
}

bool Lobby::hear(Descriptor& connection, Decide decide) {
  alignas(std::uint64_t) std::array<std::byte, kMostBytes> room;
  std::size_t message_bytes = 0;
  const Transfer result = receive_message(connection, room, &message_bytes);
  if (result == Transfer::later) return false;
  Descriptor taken = std::move(connection);
  if (result != Transfer::done || !decide(taken, std::span(room).first(message_bytes))) ++strangers_;
  return true;
}

// A caller of ours may have spoken since it was last looked at.
void Lobby::drop_oldest(Decide decide) {
  Caller oldest = std::move(silent_.front());
  silent_.erase(silent_.begin());
  if (!hear(oldest.connection, decide)) ++strangers_;
}

int Lobby::serve(Decide decide) {
  std::erase_if(silent_, [&](Caller& caller) {
    if (hear(caller.connection, decide)) return true;
    if (caller.limit.left_ns() > 0) return false;
    ++strangers_;
    return true;
  });
  // A bounded number at a time: whoever connects without end does not keep the others waiting.
  for (std::size_t turn = 0; turn < kMostSilent; ++turn) {
    int error = 0;
    Descriptor connection = accept_from(listener_, &error);
    if (!connection) {
      if (error == EAGAIN) return 0;
      if (error == EINTR || error == ECONNABORTED) continue;
      if (silent_.empty()) return error;
      drop_oldest(decide);
      continue;
    }
    if (!peer_of(connection).same_user()) {
      ++strangers_;
      continue;
    }
    if (hear(connection, decide)) continue;
    silent_.push_back({std::move(connection), Deadline::after(kSilenceNs)});
    if (silent_.size() > kMostSilent) drop_oldest(decide);
  }
  return 0;
}

Descriptor listen_when_free(const std::string& name, FunctionRef<bool()> go_on, const Deadline& deadline) {
  Pauses pauses;
  for (;;) {
    Descriptor listener = listen_on(name);
    if (listener || !go_on()) return listener;
    pauses.sleep(deadline.left_ns());
  }
}

}  // namespace zerocomm::boot
