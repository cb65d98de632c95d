#include "boot/asio.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace zerocomm::boot {

Descriptor new_tcp_socket(const tcp& family, int* error) noexcept {
  Descriptor descriptor(socket(family.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, family.protocol()));
  *error = descriptor ? 0 : errno;
  return descriptor;
}

Descriptor listen_on_tcp(const tcp::endpoint& endpoint, int* error) noexcept {
  constexpr int kBacklog = 4096;  // the system has a limit of its own
  Descriptor listener = new_tcp_socket(endpoint.protocol(), error);
  if (!listener) return listener;
  const int yes = 1;
  // Connections of an earlier joining that are still closing do not hold the port; another listener does.
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (endpoint.protocol() == tcp::v6()) setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  if (bind(listener.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0 &&
      listen(listener.get(), kBacklog) == 0)
    return listener;
  *error = errno;
  return {};
}

Resolved resolve(const TcpWay& way, const Deadline& deadline) {
  error_code code;
  const auto number = asio::ip::make_address(way.address, code);
  if (!code) return {{{number, way.port}}, "", true};
  Named named = find_numbers(way.address, deadline, way.resolver);
  Resolved resolved{{}, std::move(named.error), named.in_time};
  for (const std::string& text : named.numbers) {
    const auto found = asio::ip::make_address(text, code);
    if (code)
      resolved.error = text + ": " + code.message();
    else
      resolved.endpoints.emplace_back(found, way.port);
  }
  return resolved;
}

std::string endpoint_text(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(endpoint.port());
}

}  // namespace zerocomm::boot
