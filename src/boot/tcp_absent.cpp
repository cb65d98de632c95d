// In place of the TCP rendezvous, in builds without it.
#include "boot/tcp.hpp"

#include "base/check.hpp"

namespace zerocomm::boot {

bool has_tcp() noexcept { return false; }

Meeting meet_over_tcp(const JoinRequest& /*request*/, const TcpWay& way) {
  throw Error(ZC_UNSUPPORTED, format("the ranks are to meet at %s, but %s", tcp_text(way).c_str(), kNoTcp));
}

}  // namespace zerocomm::boot
