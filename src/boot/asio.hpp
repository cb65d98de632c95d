// Boost.Asio as this project uses it: one thread per io_context, no exceptions out of its calls, and sockets that
// programs which this process starts do not inherit.
#pragma once

#include <utility>                       // Asio 1.74 uses std::exchange without it
#define BOOST_ASIO_DISABLE_FENCED_BLOCK  // a fence of its own, which ThreadSanitizer does not see
#define BOOST_ASIO_NO_DEPRECATED

#include "boot/tcp.hpp"

#include "base/clock.hpp"
#include "base/descriptor.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace zerocomm::boot {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// A new socket that does not block, or an empty one with *error set to the errno.
Descriptor new_tcp_socket(const tcp& family, int* error) noexcept;

// Listens on one address and port. Empty: *error is the errno.
Descriptor listen_on_tcp(const tcp::endpoint& endpoint, int* error) noexcept;

// Where a way leads: its number, or everything that its name stands for.
struct Resolved {
  std::vector<tcp::endpoint> endpoints;
  std::string error;    // why there are none
  bool in_time = true;  // false: the resolver has not answered until the deadline
};
Resolved resolve(const TcpWay& way, const Deadline& deadline);

std::string endpoint_text(const tcp::endpoint& endpoint);

}  // namespace zerocomm::boot
