#include "boot/asio.hpp"

#include <sys/socket.h>

#include <algorithm>
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

std::vector<tcp::endpoint> resolve(asio::io_context& io, const std::string& address, std::uint16_t port,
                                   std::string* error) {
  error_code code;
  std::vector<tcp::endpoint> found;
  const auto number = asio::ip::make_address(address, code);
  if (!code) return {{number, port}};
  const auto results = tcp::resolver(io).resolve(address, std::to_string(port), tcp::resolver::numeric_service, code);
  if (code) *error = code.message();
  for (const auto& result : results)
    if (std::find(found.begin(), found.end(), result.endpoint()) == found.end()) found.push_back(result.endpoint());
  return found;
}

std::string endpoint_text(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(endpoint.port());
}

}  // namespace zerocomm::boot
