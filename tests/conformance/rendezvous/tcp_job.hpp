// What tests of the TCP rendezvous share: a job's environment, a rank that takes part in it, a port of its own.
#pragma once

#include "processes.hpp"
#include "support/key_file.hpp"

#include <zerocomm/zerocomm.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <initializer_list>

namespace zerocomm::test {

inline sockaddr_in place_of(in_addr_t address, std::uint16_t port) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(port);
  place.sin_addr.s_addr = htonl(address);
  return place;
}

// A port of 127.0.0.1 that nobody else gets: whoever asks for it, and so rank 0, may listen there.
class Port {
 public:
  Port() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in place = place_of(INADDR_LOOPBACK, 0);
    socklen_t bytes = sizeof place;
    const int yes = 1;
    if (bind(socket_.get(), reinterpret_cast<sockaddr*>(&place), bytes) != 0 ||
        setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&place), &bytes) != 0)
      throw std::runtime_error("no free port");
    number_ = ntohs(place.sin_port);
  }
  std::uint16_t number() const { return number_; }

 private:
  Descriptor socket_;
  std::uint16_t number_ = 0;
};

// Of one job: what its ranks find in their environment.
struct Job {
  KeyFile key;
  Port own_port{};
  std::uint16_t port = own_port.number();
  int ranks = 3;
  int deadline_ms = 20'000;
  std::string key_path = key.path();
  std::string address = "127.0.0.1";
  std::string name = "tcp";

  void set(int rank) const {
    const auto put = [](const char* variable, const std::string& value) { setenv(variable, value.c_str(), 1); };
    put("ZC_RANK", std::to_string(rank));
    put("ZC_RANKS", std::to_string(ranks));
    put("ZC_LOCAL_RANK", std::to_string(rank));
    put("ZC_LOCAL_RANKS", std::to_string(ranks));
    put("ZC_JOB", name);
    put("ZC_RENDEZVOUS", format("tcp://%s:%d", address.c_str(), port));
    put("ZC_KEY_FILE", key_path);
    put("ZC_INIT_DEADLINE_MS", std::to_string(deadline_ms));
  }
};

inline void check(zc_status status) {
  if (status != ZC_OK) throw Error(status, zc_last_error());
}

// A rank that joins, adds up with the others, and says how many strangers rank 0 has turned away.
inline void take_part(Report& report, const Job& job, int rank) {
  job.set(rank);
  zc_comm* comm = nullptr;
  check(zc_comm_create(nullptr, &comm));
  std::int64_t value = rank + 1;
  check(zc_all_reduce(comm, &value, &value, 1, ZC_DTYPE_I64, ZC_OP_SUM, nullptr));
  zc_comm_info info{};
  info.struct_size = sizeof info;
  check(zc_comm_get_info(comm, &info));
  ZC_ASSERT(value == job.ranks * (job.ranks + 1) / 2 && std::string(info.transport) == "shared memory");
  report.say(ZC_OK, std::to_string(info.strangers));
  check(zc_comm_destroy(comm));
}

inline Descriptor connect_to_port(std::uint16_t port) {
  const sockaddr_in place = place_of(INADDR_LOOPBACK, port);
  for (int turn = 0; turn < 5000; ++turn) {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0) return socket;
    sleep_ms(1);
  }
  throw std::runtime_error("nobody listens on the port");
}

inline void expect_all(Processes& processes, std::initializer_list<std::size_t> which, zc_status status,
                       std::initializer_list<const char*> words) {
  for (const std::size_t i : which) {
    const Report& report = processes.report(i);
    EXPECT_EQ(report.status, status) << "process " << i << ": " << report.text;
    for (const char* word : words)
      EXPECT_NE(std::string(report.text).find(word), std::string::npos) << "process " << i << ": " << report.text;
  }
}

}  // namespace zerocomm::test
