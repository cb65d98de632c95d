// What the driver of zc bench and the ranks that it measures say to each other: lines of text over an abstract Unix
// socket. docs/bench.md has the list. A rank of another library speaks the same.
#pragma once

#include "cli/bench_collectives.hpp"
#include "cli/run_descriptor.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zerocomm::cli {

// What is to be run.
struct BenchRequest {
  Collective collective = Collective::all_reduce;
  zc_dtype dtype = ZC_DTYPE_F32;
  std::size_t count = 0;
  BenchPlace place = BenchPlace::out;
  bool plain = false;
  bool loop = false;
  int warmup = 0, iterations = 0;
  bool check = true;
  // Of ranks of this library alone.
  zc_op op = ZC_OP_SUM;
  int root = 0;
  bool skewed = false;
};
// "run all_reduce f32 1024 out registered fresh 5 20 1"; what other libraries do not know stands behind, as "op=max".
std::string request_line(const BenchRequest& request);
// Nothing: it is none.
std::optional<BenchRequest> parse_request(std::string_view line);

struct BenchHello {
  std::string group;
  int rank = 0, ranks = 0;
  std::string library;
};
std::string hello_line(const BenchHello& hello);
std::optional<BenchHello> parse_hello(std::string_view line);

// What a rank answers: lines until one that begins with check, unsupported or error.
struct BenchReply {
  std::vector<std::int64_t> times_ns, arrivals_ns;
  std::int64_t wrong = 0;
  std::string bits;         // of the result
  std::string unsupported;  // why
  std::string error;
  bool complete = false;
};
std::string reply_lines(const BenchReply& reply);
// Adds a line to a reply. False: it belongs to none.
bool add_line(BenchReply& reply, std::string_view line);

// A socket that is read by line.
class LineSocket {
 public:
  LineSocket() = default;
  explicit LineSocket(RunDescriptor fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  bool open() const { return static_cast<bool>(fd_); }
  void close() { fd_.close(); }
  // False: the other end is gone.
  bool send(std::string_view text) const;
  // Reads what is there, waiting for the first byte. False: the other end is gone.
  bool receive();
  // A line that has come whole, without its end.
  std::optional<std::string> line();
  // The next line, however long that takes; nothing: the other end is gone.
  std::optional<std::string> wait_line();

 private:
  RunDescriptor fd_;
  std::string held_;
};

// The other end must be of this user.
struct PeerOfSocket {
  bool same_user = false;
  int pid = 0;
};
PeerOfSocket peer_of(int fd);
// Throws Failure.
RunDescriptor listen_at(const std::string& name);
LineSocket connect_to(const std::string& name);

// The words of a line, split at single blanks.
std::vector<std::string_view> words_of(std::string_view line);
std::optional<std::int64_t> whole_number(std::string_view word);

}  // namespace zerocomm::cli
