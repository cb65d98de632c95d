#include "boot/way.hpp"

#include "boot/slurm.hpp"

#include "base/check.hpp"

#include <charconv>
#include <limits>
#include <string_view>

namespace zerocomm::boot {
namespace {

constexpr std::string_view kTcp = "tcp", kTcpAt = "tcp://";
constexpr const char* kHow =
    "set ZC_KEY_FILE on all hosts to a file of this user, mode 0600, with the same 32 random bytes or more, and "
    "ZC_RENDEZVOUS=tcp://ADDRESS:PORT to an address of rank 0's host and a free port";

std::optional<std::uint16_t> port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || stop != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

// "ADDRESS:PORT", where the address may be empty or in brackets.
bool read_place(std::string_view text, TcpWay& way) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  std::string_view address = text.substr(0, colon);
  const bool bracketed = address.starts_with('[') && address.ends_with(']');
  if (bracketed) address = address.substr(1, address.size() - 2);
  if (address.find_first_of("[]/") != std::string_view::npos) return false;
  if (!bracketed && address.find(':') != std::string_view::npos) return false;
  const std::optional<std::uint16_t> port = port_of(text.substr(colon + 1));
  if (!port) return false;
  way.address = address;
  way.port = *port;
  return true;
}

void fill_address(Lookup lookup, TcpWay& way) {
  if (!way.address.empty()) return;
  if (const auto master = lookup("MASTER_ADDR"))
    way.address = *master;
  else if (const auto nodes = lookup("SLURM_STEP_NODELIST"))
    way.address = slurm_first_host(*nodes);
  else if (const auto launch = lookup("SLURM_LAUNCH_NODE_IPADDR"))
    way.address = *launch;
  ZC_REQUIRE(
      !way.address.empty(), ZC_ARGUMENT,
      "the launcher gives no address for a rendezvous over TCP: set ZC_RENDEZVOUS=tcp://ADDRESS:PORT, the address "
      "one of rank 0's host");
}

void fill_port(Lookup lookup, TcpWay& way) {
  if (way.port != 0) return;
  const auto store = lookup("TORCHELASTIC_USE_AGENT_STORE");
  ZC_REQUIRE(!store || *store != "True", ZC_ARGUMENT,
             "torchrun's own store listens on MASTER_PORT: give the rendezvous a free port with "
             "ZC_RENDEZVOUS=tcp://:PORT");
  if (const auto master = lookup("MASTER_PORT")) {
    const auto port = port_of(*master);
    ZC_REQUIRE(port, ZC_ARGUMENT, "the variable MASTER_PORT is \"%.40s\"; it takes a whole number from 1 to 65535",
               master->c_str());
    way.port = *port;
  } else if (const auto reserved = lookup("SLURM_STEP_RESV_PORTS")) {
    way.port = slurm_first_port(*reserved).value_or(0);
  }
  ZC_REQUIRE(
      way.port != 0, ZC_ARGUMENT,
      "the launcher gives no port for a rendezvous over TCP: set ZC_RENDEZVOUS=tcp://:PORT to one that is free on "
      "rank 0's host (srun reserves one with --resv-ports=1)");
}

}  // namespace

std::string tcp_text(const TcpWay& way) {
  const bool six = way.address.find(':') != std::string::npos;
  return (six ? "[" + way.address + "]" : way.address) + ":" + std::to_string(way.port);
}

Way choose_way(Lookup lookup, const Launch& launch) {
  const std::string asked = lookup("ZC_RENDEZVOUS").value_or("auto");
  const std::optional<std::string> key_file = lookup("ZC_KEY_FILE");
  const bool several = launch.local_ranks < launch.ranks;
  TcpWay way;
  const bool tcp_at = asked.starts_with(kTcpAt);
  ZC_REQUIRE(
      asked == "auto" || asked == "local" || asked == kTcp ||
          (tcp_at && read_place(std::string_view(asked).substr(kTcpAt.size()), way)),
      ZC_ARGUMENT,
      "the variable ZC_RENDEZVOUS is \"%.60s\"; it takes auto, local, tcp, tcp://ADDRESS:PORT or tcp://:PORT, where "
      "PORT is 1 to 65535 (0: zc run finds a free one, and nobody else can)",
      asked.c_str());
  if (asked == "local" || (asked == "auto" && !several)) {
    ZC_REQUIRE(
        !several, ZC_UNSUPPORTED,
        "ZC_RENDEZVOUS is local, and %s says that %d of %d ranks are on this host: ranks of other hosts are out of "
        "reach of a local socket",
        launcher_name(launch.launcher), launch.local_ranks, launch.ranks);
    return {std::nullopt, asked == "local" ? "ZC_RENDEZVOUS" : "nothing says that ranks are on other hosts"};
  }
  const std::string several_text = several ? format("%s says that %d of %d ranks are on this host",
                                                    launcher_name(launch.launcher), launch.local_ranks, launch.ranks)
                                           : std::string();
  if (asked == "auto") {
    ZC_REQUIRE(key_file, ZC_UNSUPPORTED, "%s: ranks of several hosts meet over TCP, which needs a key: %s",
               several_text.c_str(), kHow);
    ZC_REQUIRE(has_tcp(), ZC_UNSUPPORTED, "%s: ranks of several hosts meet over TCP, and %s", several_text.c_str(),
               kNoTcp);
  }
  ZC_REQUIRE(key_file, ZC_ARGUMENT, "ZC_RENDEZVOUS is %.60s, which needs a key: %s", asked.c_str(), kHow);
  way.key_file = *key_file;
  fill_address(lookup, way);
  fill_port(lookup, way);
  return {way, asked == "auto" ? several_text + ", and ZC_KEY_FILE is set" : "ZC_RENDEZVOUS"};
}

}  // namespace zerocomm::boot
