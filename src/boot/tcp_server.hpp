// Rank 0's side of the TCP rendezvous.
#pragma once

#include "boot/asio.hpp"
#include "boot/auth.hpp"
#include "boot/roll.hpp"
#include "boot/tcp.hpp"
#include "boot/tcp_ports.hpp"
#include "boot/tcp_wire.hpp"

#include "base/clock.hpp"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace zerocomm::boot {

// One thread serves all callers at once and waits for none. A caller has kHandshakeNs from its connection to the end of
// its hello. Nothing is allocated by what a caller says before it has proved that it has the key.
class TcpServer {
 public:
  static constexpr std::int64_t kHandshakeNs = 1'500'000'000;
  static constexpr std::size_t kMostStrange = 128;  // callers that have not proved anything; the oldest goes first

  TcpServer(const JoinRequest& request, const Identity& own, const Deadline& deadline, const TcpWay& way,
            const Key& key);
  ~TcpServer();
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;

  // Returns when all ranks have met and been told.
  Meeting meet();

 private:
  struct Caller;
  using CallerPtr = std::shared_ptr<Caller>;

  void listen();
  bool listen_at(const tcp::endpoint& endpoint, std::string& failures);
  void accept_from_now_on(std::size_t listener);
  bool accept_one(std::size_t listener);
  void greet(const CallerPtr& caller);
  void judge_greeting(const CallerPtr& caller);
  void challenge(const CallerPtr& caller);
  void hear_answer(const CallerPtr& caller);
  void hear_hello(const CallerPtr& caller);
  void decide(const CallerPtr& caller, const wire::Hello& hello);
  void watch(const CallerPtr& caller, std::int32_t rank);
  void stranger(const CallerPtr& caller, const char* what);
  void leave_lobby(CallerPtr caller);
  void drop_oldest();
  void write_next(const CallerPtr& caller);
  template <class Message>
  void send(const CallerPtr& caller, const Message& message);

  void run(FunctionRef<bool()> done, std::int64_t limit_ns);
  [[noreturn]] void fail();
  std::string missing_text() const;

  const JoinRequest request_;
  const Deadline own_deadline_;
  const TcpWay way_;
  const Key& key_;
  asio::io_context io_{1};
  std::vector<PortInUse> ports_;  // closed after the listeners
  std::vector<tcp::acceptor> listeners_;
  std::string listens_on_;
  std::vector<CallerPtr> lobby_;  // before their hello, oldest first
  std::vector<CallerPtr> heard_;  // after it
  std::set<Nonce> nonces_;        // of good greetings: one that comes again is a copy
  Roll roll_;
  bool over_ = false;  // all have come
  std::size_t unsent_ = 0;
  std::size_t strangers_ = 0, other_keys_ = 0;
  std::string last_other_key_;  // who had it
};

}  // namespace zerocomm::boot
