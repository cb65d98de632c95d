#include "boot/tcp.hpp"

#include "boot/tcp_client.hpp"
#include "boot/tcp_server.hpp"

#include "base/check.hpp"

namespace zerocomm::boot {

bool has_tcp() noexcept { return true; }

Meeting meet_over_tcp(const JoinRequest& request, const TcpWay& way) {
  const Deadline deadline = Deadline::after(request.deadline_ns);
  const Key key = Key::read(way.key_file);
  const Identity own = own_identity(request.rank);
  try {
    if (request.rank == 0) return TcpServer(request, own, deadline, way, key).meet();
    return TcpClient(request, own, deadline, way, key).meet();
  } catch (const boost::system::system_error& error) {  // a context that cannot be made
    throw Error(ZC_SYSTEM,
                format("rank %d: the rendezvous at %s: %s", request.rank, tcp_text(way).c_str(), error.what()));
  }
}

}  // namespace zerocomm::boot
