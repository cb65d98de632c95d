// The side of the other ranks: they look for rank 0 until it has taken them in, and then hear from it.
#pragma once

#include "boot/local_socket.hpp"
#include "boot/rendezvous.hpp"
#include "boot/rendezvous_wire.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace zerocomm::boot {

// Name of a job's socket, and the hash by which rank 0 knows the job's ranks from others.
std::string job_socket(const std::string& job);
std::uint64_t job_hash(const std::string& job) noexcept;

class Client {
 public:
  Client(const JoinRequest& request, const Identity& own, const Deadline& deadline);

  // Returns when rank 0 has taken this rank in. Throws Error: rank 0's verdict, or TIMEOUT.
  void join();
  // One attempt of it. False: nobody was there, or whoever was there hung up without a word.
  bool attempt();
  void receive_welcome(std::vector<Identity>& identities, Descriptor& segment, std::uint64_t& strangers);
  void confirm();
  void give_up(std::int32_t status, std::string_view text) noexcept;

 private:
  // Waits for the next message of rank 0 and throws if it is another one, or none comes. False: rank 0 has closed.
  template <class Message>
  bool receive(Message& message, Descriptor* descriptor = nullptr);
  template <class Message>
  void expect(Message& message, Descriptor* descriptor = nullptr);
  std::string not_found_text() const;
  void make_progress() const;

  const JoinRequest request_;
  const Identity own_;
  const Deadline deadline_;
  const Deadline answer_;  // a little later: rank 0 is the one that says who is missing
  const std::string name_;
  Descriptor connection_;
  Identity server_;
  Peer last_seen_;  // that had the name
  bool seen_ = false;
};

}  // namespace zerocomm::boot
