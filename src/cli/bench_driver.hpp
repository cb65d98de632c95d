// The one who asks: collects the ranks of all groups at a socket, asks one group at a time and waits for all its ranks.
#pragma once

#include "cli/bench_wire.hpp"

#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

namespace zerocomm::cli {

class BenchDriver {
 public:
  BenchDriver();

  // Of the socket.
  const std::string& name() const { return name_; }

  // Waits until all ranks of the group `name` have come. `trouble` is asked ten times a second: a text is why they
  // never will.
  void expect(const std::string& name, int ranks, double limit_s,
              const std::function<std::optional<std::string>()>& trouble);
  const std::string& library_of(const std::string& group) const { return groups_.at(group).library; }
  std::vector<int> pids_of(const std::string& group) const;

  // What each rank answers. Throws Failure: a rank says error or ends, or `limit_s` (0: none) has passed.
  std::vector<BenchReply> ask(const std::string& name, const std::string& line);
  void set_limit(double limit_s) { limit_s_ = limit_s; }

  // Ends all ranks.
  void quit();
  // From another thread: whoever waits here, or will, gets a Failure.
  void stop() const;

 private:
  struct Rank {
    LineSocket socket;
    int pid = 0;
  };
  struct Group {
    std::string library;
    std::vector<Rank> ranks;
    int here = 0;
  };

  void take_caller();
  void take_hello(LineSocket&& socket, const std::string& line);
  // Waits for any of these; returns which are readable.
  std::vector<bool> wait(const std::vector<int>& fds, int timeout_ms);
  void receive(const std::string& name, int rank, Rank& from, BenchReply& reply) const;

  std::string name_;
  RunDescriptor listener_, stop_;
  std::list<LineSocket> strangers_;  // have not said hello
  std::map<std::string, Group> groups_;
  double limit_s_ = 0;
};

}  // namespace zerocomm::cli
