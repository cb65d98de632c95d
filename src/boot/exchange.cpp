#include "boot/exchange.hpp"

#include "boot/lobby.hpp"
#include "boot/local_socket.hpp"
#include "boot/rendezvous_wire.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace zerocomm::boot {
namespace {

constexpr std::int64_t kTickNs = 10'000'000;
constexpr std::int64_t kRetryNs = 1'000'000;

std::string exchange_socket(const std::string& name) { return socket_name("exchange", name); }
std::uint64_t exchange_hash(const std::string& name) noexcept { return hash_text(name, 0x082efa98ec4e6c89u); }

void go_on(FunctionRef<bool()> give_up, const std::string& name) {
  ZC_REQUIRE(!give_up(), ZC_CANCELED, "the exchange '%s' was given up", name.c_str());
}

// Asks one sender. Empty: there is none now, or it hung up.
Descriptor ask(const std::string& name, const Deadline& deadline, FunctionRef<bool()> give_up) {
  int error = 0;
  const Descriptor connection = connect_to(exchange_socket(name), &error);
  ZC_REQUIRE(error == 0, ZC_SYSTEM, "connect to the socket @%s: %s", exchange_socket(name).c_str(),
             std::strerror(error));
  if (!connection || !peer_of(connection).same_user()) return {};
  wire::Wanted wanted;
  wanted.name_hash = exchange_hash(name);
  if (send_message(connection, &wanted, sizeof wanted) != Transfer::done) return {};
  std::vector<pollfd> polled;
  alignas(std::uint64_t) std::array<std::byte, sizeof(wire::Segment)> room;
  std::size_t message_bytes = 0;
  Descriptor received;
  Transfer result = Transfer::later;
  while ((result = receive_message(connection, room, &message_bytes, &received)) == Transfer::later) {
    go_on(give_up, name);
    if (deadline.left_ns() == 0) return {};
    polled.assign(1, readable(connection));
    wait_readable(polled, std::min(kTickNs, deadline.left_ns()));
  }
  if (result != Transfer::done || !wire::read<wire::Segment>(std::span(room).first(message_bytes))) return {};
  return received;
}

}  // namespace

void send_descriptor(const std::string& name, int descriptor, int receivers, std::int64_t deadline_ns,
                     FunctionRef<bool()> give_up) {
  const Deadline deadline = Deadline::after(deadline_ns);
  const auto keep_trying = [&] {
    go_on(give_up, name);
    return deadline.left_ns() > 0;
  };
  Descriptor listener = listen_when_free(exchange_socket(name), keep_trying, deadline);
  ZC_REQUIRE(listener, ZC_TIMEOUT, "another process has the name @%s of the exchange '%s' for %s",
             exchange_socket(name).c_str(), name.c_str(), seconds_text(deadline_ns).c_str());
  Lobby lobby(std::move(listener));
  int served = 0;
  std::vector<Descriptor> due;
  const auto decide = [&](Descriptor& connection, std::span<const std::byte> message) {
    const auto wanted = wire::read<wire::Wanted>(message);
    if (!wanted || wanted->name_hash != exchange_hash(name)) return false;
    due.push_back(std::move(connection));
    return true;
  };
  const auto serve = [&](Descriptor& connection) {
    const wire::Segment message;
    const Transfer result = send_message(connection, &message, sizeof message, descriptor);
    if (result == Transfer::done) ++served;
    return result != Transfer::later;
  };
  std::vector<pollfd> polled;
  for (;;) {
    const int error = lobby.serve(decide);
    ZC_REQUIRE(error == 0, ZC_SYSTEM, "accept for the exchange '%s': %s", name.c_str(), std::strerror(error));
    std::erase_if(due, serve);
    if (served >= receivers) return;
    go_on(give_up, name);
    ZC_REQUIRE(deadline.left_ns() > 0, ZC_TIMEOUT, "%d of %d receivers came to the exchange '%s' within %s", served,
               receivers, name.c_str(), seconds_text(deadline_ns).c_str());
    polled.clear();
    lobby.watch(polled);
    wait_readable(polled, std::min({due.empty() ? kTickNs : kRetryNs, deadline.left_ns(), lobby.left_ns()}));
  }
}

Descriptor receive_descriptor(const std::string& name, std::int64_t deadline_ns, FunctionRef<bool()> give_up) {
  const Deadline deadline = Deadline::after(deadline_ns);
  for (Pauses pauses;;) {
    Descriptor received = ask(name, deadline, give_up);
    if (received) return received;
    go_on(give_up, name);
    ZC_REQUIRE(deadline.left_ns() > 0, ZC_TIMEOUT, "nobody gave a descriptor in the exchange '%s' within %s",
               name.c_str(), seconds_text(deadline_ns).c_str());
    pauses.sleep(std::min(kTickNs, deadline.left_ns()));
  }
}

}  // namespace zerocomm::boot
