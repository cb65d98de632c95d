// The side of the other ranks of the TCP rendezvous: they look for rank 0 until it has taken them in.
#pragma once

#include "boot/asio.hpp"
#include "boot/auth.hpp"
#include "boot/tcp.hpp"
#include "boot/tcp_wire.hpp"

#include "base/clock.hpp"

#include <optional>
#include <string>
#include <vector>

namespace zerocomm::boot {

class TcpClient {
 public:
  TcpClient(const JoinRequest& request, const Identity& own, const Deadline& deadline, const TcpWay& way,
            const Key& key);

  Meeting meet();

  // Of another process that takes itself for rank 0 and finds the address taken: who has it, asked once.
  struct Holder {
    bool gone = false;  // nobody listens there any more
    std::string text;   // what it did
  };
  // Throws Error if it is rank 0 of this job: the verdict, which is that of all who are there.
  Holder ask_holder(const tcp::endpoint& endpoint);

 private:
  enum class Outcome : std::uint8_t {
    absent,   // nobody there, or it had no time for this rank
    refused,  // hung up at once, or without the key
    in        // rank 0 has taken this rank in
  };
  Outcome attempt(const tcp::endpoint& endpoint);
  Outcome handshake(const tcp::endpoint& endpoint);
  Meeting hear_verdict();
  std::int64_t answer_left_ns() const;
  // Runs one operation of the connection; `start` begins it with the handler that it is given.
  template <class Start>
  error_code run(std::int64_t limit_ns, Start&& start);
  error_code send(asio::const_buffer bytes, std::int64_t limit_ns);
  error_code receive(asio::mutable_buffer bytes, std::int64_t limit_ns);
  // The next of rank 0's messages, or nothing: it closed or said something else.
  std::optional<wire::Reply> next(std::int64_t limit_ns);
  void note(const tcp::endpoint& endpoint, const std::string& text);
  std::string where_text() const;

  const JoinRequest request_;
  const Identity own_;
  const Deadline deadline_;
  const TcpWay way_;
  const Key& key_;
  asio::io_context io_{1};
  tcp::socket socket_{io_};
  std::optional<Seal> seal_;
  std::vector<std::string> notes_;  // what became of the last attempt at each address
  Identity server_;
  std::int64_t step_ns_;  // for one answer
  bool reached_ = false;  // somebody listens at the address of the last attempt
};

}  // namespace zerocomm::boot
