// By which way the ranks of a job meet. Pure.
#pragma once

#include "boot/launch.hpp"
#include "boot/tcp.hpp"

#include <optional>
#include <string>

namespace zerocomm::boot {

struct Way {
  std::optional<TcpWay> tcp;  // else a local socket
  std::string why;            // for people
};

// ZC_RENDEZVOUS is
//   auto               a local socket; TCP if the launcher says that ranks are on several hosts and ZC_KEY_FILE is set
//   local              a local socket
//   tcp                TCP, at the launcher's address and port
//   tcp://ADDRESS:PORT     TCP, there; without ADDRESS at the launcher's. An IPv6 number stands in brackets
// The launcher's address is MASTER_ADDR, or the first host of Slurm's step; its port MASTER_PORT, or the first that
// Slurm has reserved. The port of torchrun's own store is not free.
//
// Throws Error: ARGUMENT if ZC_RENDEZVOUS is none of these, or address, port or key file are not given; UNSUPPORTED if
// ranks are on several hosts and no way leads there. Both say how to.
Way choose_way(Lookup lookup, const Launch& launch);

}  // namespace zerocomm::boot
