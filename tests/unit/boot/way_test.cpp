// By which way the ranks meet.
#include "boot/way.hpp"

#include "base/check.hpp"

#include <gtest/gtest.h>

#include <map>

namespace zerocomm::boot {
namespace {

using Environment = std::map<std::string, std::string>;

Launch ranks_on_this_host(std::int32_t local_ranks) {
  Launch launch;
  launch.launcher = Launcher::slurm;
  launch.ranks = 4;
  launch.local_ranks = local_ranks;
  return launch;
}

Way choose(const Environment& environment, std::int32_t local_ranks = 4) {
  const auto lookup = [&](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
  return choose_way(lookup, ranks_on_this_host(local_ranks));
}

std::string place(const Environment& environment, std::int32_t local_ranks = 4) {
  const Way way = choose(environment, local_ranks);
  return way.tcp ? tcp_text(*way.tcp) : "local";
}

void expect_refusal(const Environment& environment, std::int32_t local_ranks, zc_status status,
                    const std::vector<std::string>& parts) {
  try {
    const std::string found = place(environment, local_ranks);
    ADD_FAILURE() << found;
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << " in " << error.what();
  }
}

const Environment kKey = {{"ZC_KEY_FILE", "key"}};
Environment tcp(const std::string& text, const Environment& more = {}) {
  Environment all = kKey;
  all["ZC_RENDEZVOUS"] = text;
  all.insert(more.begin(), more.end());
  return all;
}

TEST(Way, on_one_host_is_a_local_socket_unless_asked_for) {
  EXPECT_EQ(place({}), "local");
  EXPECT_EQ(place(kKey), "local");
  EXPECT_EQ(place({{"ZC_RENDEZVOUS", "auto"}}), "local");
  EXPECT_EQ(place({{"ZC_RENDEZVOUS", "local"}}), "local");
  EXPECT_EQ(place(tcp("tcp://10.0.0.1:29500")), "10.0.0.1:29500");
  EXPECT_EQ(choose(tcp("tcp://10.0.0.1:29500")).tcp->key_file, "key");
}

TEST(Way, tcp_has_a_grammar) {
  EXPECT_EQ(place(tcp("tcp://[fe80::1]:1")), "[fe80::1]:1");
  EXPECT_EQ(place(tcp("tcp://host-1.example:65535")), "host-1.example:65535");
  EXPECT_EQ(place(tcp("tcp://:7", {{"MASTER_ADDR", "n1"}})), "n1:7");
  for (const char* text : {"Tcp", "udp://a:1", "tcp:", "tcp://", "tcp://a", "tcp://a:", "tcp://a:0", "tcp://a:65536",
                           "tcp://a:1x", "tcp://::1:5", "tcp://[::1]", "tcp://[::1:5", "tcp://a/b:1"})
    expect_refusal(tcp(text), 4, ZC_ARGUMENT,
                   {std::string("ZC_RENDEZVOUS is \"") + text, "auto, local, tcp, tcp://ADDRESS:PORT or tcp://:PORT"});
  expect_refusal(tcp("tcp://a:0"), 4, ZC_ARGUMENT, {"PORT is 1 to 65535 (0: zc run finds a free one"});
}

TEST(Way, tcp_takes_the_launchers_address_and_port) {
  const Environment master = {{"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}};
  const Environment slurm = {{"SLURM_STEP_NODELIST", "node[03-05]"},
                             {"SLURM_LAUNCH_NODE_IPADDR", "10.9.9.9"},
                             {"SLURM_STEP_RESV_PORTS", "12000-12001"}};
  EXPECT_EQ(place(tcp("tcp", master)), "n1:29500");
  EXPECT_EQ(place(tcp("tcp", slurm)), "node03:12000");
  EXPECT_EQ(place(tcp("tcp://:9", slurm)), "node03:9");
  EXPECT_EQ(place(tcp("tcp://:9", {{"SLURM_LAUNCH_NODE_IPADDR", "10.9.9.9"}})), "10.9.9.9:9");
  Environment both = slurm;
  both.insert(master.begin(), master.end());
  EXPECT_EQ(place(tcp("tcp", both)), "n1:29500");
  expect_refusal(tcp("tcp"), 4, ZC_ARGUMENT, {"no address", "ZC_RENDEZVOUS=tcp://ADDRESS:PORT"});
  expect_refusal(tcp("tcp", {{"MASTER_ADDR", "n1"}}), 4, ZC_ARGUMENT, {"no port", "--resv-ports=1"});
  expect_refusal(tcp("tcp", {{"MASTER_ADDR", "n1"}, {"MASTER_PORT", "x"}}), 4, ZC_ARGUMENT, {"MASTER_PORT is \"x\""});
}

TEST(Way, the_port_of_torchruns_own_store_is_not_free) {
  Environment torchrun = {{"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  expect_refusal(tcp("tcp", torchrun), 4, ZC_ARGUMENT, {"torchrun's own store listens on MASTER_PORT", "tcp://:PORT"});
  EXPECT_EQ(place(tcp("tcp://:29501", torchrun)), "n1:29501");
  torchrun["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_EQ(place(tcp("tcp", torchrun)), "n1:29500");
}

TEST(Way, without_a_key_says_how_to_get_there) {
  expect_refusal({{"ZC_RENDEZVOUS", "tcp://a:1"}}, 4, ZC_ARGUMENT, {"ZC_RENDEZVOUS is tcp://a:1", "set ZC_KEY_FILE"});
  expect_refusal(
      {}, 2, ZC_UNSUPPORTED,
      {"Slurm says that 2 of 4 ranks are on this host", "set ZC_KEY_FILE", "ZC_RENDEZVOUS=tcp://ADDRESS:PORT"});
  expect_refusal({{"ZC_RENDEZVOUS", "local"}, {"ZC_KEY_FILE", "key"}}, 2, ZC_UNSUPPORTED,
                 {"ZC_RENDEZVOUS is local", "2 of 4 ranks"});
}

TEST(Way, over_several_hosts_with_a_key_is_tcp_if_this_build_has_it) {
  Environment environment = kKey;
  environment["MASTER_ADDR"] = "n1";
  environment["MASTER_PORT"] = "29500";
  if (has_tcp()) {
    EXPECT_EQ(place(environment, 2), "n1:29500");
    return;
  }
  expect_refusal(environment, 2, ZC_UNSUPPORTED, {"ZC_WITH_TCP=ON", "libboost-dev, libsodium-dev"});
  try {
    meet_over_tcp(JoinRequest{}, TcpWay{"n1", 1, "key", {}});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ZC_UNSUPPORTED);
    EXPECT_NE(std::string(error.what()).find("n1:1, but this build has no TCP rendezvous"), std::string::npos);
  }
}

}  // namespace
}  // namespace zerocomm::boot
