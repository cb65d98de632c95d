#include "cli/run_port.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string_view>

namespace zerocomm::cli {
namespace {

constexpr std::string_view kTcp = "tcp", kTcpAt = "tcp://", kAnyPort = ":0";

// The address whose port is to be found, in brackets if it came in them; nothing if none is.
std::optional<std::string> address_of(std::string_view asked) {
  if (asked == kTcp) return "127.0.0.1";
  if (!asked.starts_with(kTcpAt) || !asked.ends_with(kAnyPort)) return std::nullopt;
  asked.remove_prefix(kTcpAt.size());
  asked.remove_suffix(kAnyPort.size());
  if (asked.empty()) return "127.0.0.1";
  const bool bracketed = asked.starts_with('[') && asked.ends_with(']');
  if (!bracketed && asked.find(':') != std::string_view::npos) return std::nullopt;  // the ranks say what is wrong
  return std::string(asked);
}

std::uint16_t port_of(const sockaddr_storage& place) {
  if (place.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(place).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(place).sin_port);
}

}  // namespace

RunPort::RunPort(const char* asked) {
  const std::optional<std::string> address = asked == nullptr ? std::nullopt : address_of(asked);
  if (!address) return;
  const std::string cause = fmt::format("ZC_RENDEZVOUS={}: no port of {} can be had", asked, *address);
  const bool bracketed = address->front() == '[';
  const std::string name = bracketed ? address->substr(1, address->size() - 2) : *address;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = getaddrinfo(name.c_str(), "0", &hints, &list); error != 0)
    throw Failure(cause + ": " + (error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  int error = 0;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    RunDescriptor held(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    sockaddr_storage place{};
    socklen_t bytes = sizeof place;
    // With this on both sides a socket that does not listen keeps away everybody but one that asks for the same.
    if (held && bind(held.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        setsockopt(held.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        getsockname(held.get(), reinterpret_cast<sockaddr*>(&place), &bytes) == 0) {
      held_ = std::move(held);
      rendezvous_ = fmt::format("tcp://{}:{}", *address, port_of(place));
      return;
    }
    error = errno;
  }
  throw Failure(cause + ": " + std::strerror(error));
}

}  // namespace zerocomm::cli
