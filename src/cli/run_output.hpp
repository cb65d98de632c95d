// What the ranks and zc run itself print: straight through, or line by line with the rank in front.
//
// Memory: kPieceBytes per rank and stream, plus about kQueueBytes per stream. Whoever reads too slowly makes the ranks
// wait, as a pipe does, but never zc run.
#pragma once

#include "cli/options.hpp"
#include "cli/run_descriptor.hpp"
#include "cli/run_lines.hpp"

#include <poll.h>

#include <cstddef>
#include <string>
#include <vector>

namespace zerocomm::cli {

inline constexpr std::size_t kQueueBytes = 65536;

// Text on its way to a descriptor that may not take it yet.
class RunSink {
 public:
  explicit RunSink(int fd);

  int fd() const { return fd_; }
  std::string& queue() { return queue_; }
  bool waiting() const { return written_ < queue_.length(); }
  bool full() const { return queue_.length() - written_ >= kQueueBytes; }
  bool broken() const { return broken_; }  // nobody reads any more
  // Writes what is taken at once; to be called when poll says that there is room.
  void write_some();

 private:
  RunDescriptor own_;
  int fd_;
  bool waits_ = false;  // fd_ may block
  bool broken_ = false;
  std::string queue_;
  std::size_t written_ = 0;
};

class RunOutput {
 public:
  RunOutput(Prefix prefix, int ranks);
  RunOutput(const RunOutput&) = delete;
  RunOutput& operator=(const RunOutput&) = delete;

  // What stdout and stderr of a rank become; -1: zc run's own.
  int out_of(int rank) const { return write_end(out_, rank); }
  int err_of(int rank) const { return write_end(err_, rank); }
  // All ranks have been started.
  void started();

  // A line of zc run itself, to stderr.
  void say(const std::string& text);

  // Adds to `polled` what to wait for; `handle` gets the same entries back.
  void wait_for(std::vector<pollfd>& polled);
  void handle(const pollfd* polled, std::size_t count);

  // All ranks have ended: what is in the pipes now is the rest. More may come from processes that they left behind.
  void finish();
  bool drained() const { return out_.open == 0 && err_.open == 0; }
  bool flushed() const { return !sinks_[0].waiting() && !sinks_[1].waiting(); }

 private:
  struct Pipe {
    RunDescriptor read_end, write_end;
    LinePrefixer lines;
    std::size_t rest_bytes;  // that are still read
  };
  struct Stream {
    std::vector<Pipe> pipes;  // by rank; empty: the ranks have zc run's own
    std::size_t open = 0;
    RunSink* sink = nullptr;
  };
  struct Entry {  // of wait_for
    RunSink* sink = nullptr;
    Stream* stream = nullptr;
    Pipe* pipe = nullptr;
  };

  static int write_end(const Stream& stream, int rank);
  static void close(Stream& stream, Pipe& pipe);
  static void read_some(Stream& stream, Pipe& pipe);
  void set_up(Stream& stream, int fd, Prefix prefix, int ranks);

  RunSink sinks_[2];  // stdout, stderr; the second alone if both are one terminal or file
  Stream out_, err_;
  std::vector<Entry> entries_;
  std::size_t turn_ = 0;  // which rank is read first
};

}  // namespace zerocomm::cli
