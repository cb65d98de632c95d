// Starts the programs that measure other libraries, and ends them.
#pragma once

#include "cli/run_descriptor.hpp"

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace zerocomm::cli {

// What is executed for one group. Pure.
struct PeerCommand {
  std::vector<std::string> words;
  std::vector<std::string> environment;  // "NAME=value", on top of that of zc
  std::string program;                   // of the peer: zc_peer_openmpi ...
  std::string package;                   // what to install, for people
};
PeerCommand peer_command(const std::string& group, const std::string& program_path, const std::string& socket,
                         int ranks, int cores, bool pin);
// Name of the program that a group needs.
std::string peer_program(const std::string& group);

// One started group. Ended with this object: it gets a moment to end by itself, then signals.
class PeerJob {
 public:
  // `folder`: where the programs are; empty: beside zc, or where the build puts them. Throws Failure that says what
  // to build or to install.
  PeerJob(const std::string& group, const std::string& folder, const std::string& socket, int ranks, int cores,
          bool pin);
  PeerJob(PeerJob&& other) noexcept;
  PeerJob& operator=(PeerJob&&) = delete;
  ~PeerJob();

  // How it ended, with its last words; nothing while it runs.
  std::optional<std::string> trouble();

 private:
  std::string last_words() const;

  std::string group_, package_;
  RunDescriptor words_;  // its standard error
  pid_t pid_ = 0;        // 0: it has ended
};

}  // namespace zerocomm::cli
