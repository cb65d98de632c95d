#include "cli/bench_wire.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace zerocomm::cli {
namespace {

constexpr const char* kPlaces[] = {"out", "in"};
constexpr std::size_t kMostLine = std::size_t{1} << 28U;

std::string numbers_line(const char* name, const std::vector<std::int64_t>& numbers) {
  std::string line = fmt::format("{} {}", name, numbers.size());
  for (const std::int64_t number : numbers) fmt::format_to(std::back_inserter(line), " {}", number);
  return line + "\n";
}

bool take_numbers(std::string_view line, std::vector<std::int64_t>& numbers) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 2 || whole_number(words[1]) != static_cast<std::int64_t>(words.size() - 2)) return false;
  numbers.clear();
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto number = whole_number(words[i]);
    if (!number) return false;
    numbers.push_back(*number);
  }
  return true;
}

// The two words of an option that is yes or no.
std::optional<bool> choice(std::string_view word, std::string_view no, std::string_view yes) {
  if (word != no && word != yes) return std::nullopt;
  return word == yes;
}

// "op=max" and the like. False: unknown.
bool take_extra(BenchRequest& request, std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  const std::string_view value = name.length() < word.length() ? word.substr(name.length() + 1) : "";
  if (name == "op") {
    const auto op = bench_op_of(value);
    if (op) request.op = *op;
    return op.has_value();
  }
  if (name == "root") {
    const auto root = whole_number(value);
    if (root) request.root = static_cast<int>(*root);
    return root.has_value();
  }
  if (name == "skew") {
    const auto skewed = choice(value, "even", "one");
    if (skewed) request.skewed = *skewed;
    return skewed.has_value();
  }
  return false;
}

sockaddr_un address_of(const std::string& name, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.length() + 1 > sizeof address.sun_path) throw Failure("socket name \"" + name + "\"");
  std::copy(name.begin(), name.end(), address.sun_path + 1);  // after a zero: no file
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.length());
  return address;
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.length());
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.length()));
  }
  return words;
}

std::optional<std::int64_t> whole_number(std::string_view word) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

std::string request_line(const BenchRequest& request) {
  std::string line = fmt::format(
      "run {} {} {} {} {} {} {} {} {}", info_of(request.collective).name, zc_dtype_name(request.dtype), request.count,
      kPlaces[static_cast<std::size_t>(request.place)], request.plain ? "plain" : "registered",
      request.loop ? "loop" : "fresh", request.warmup, request.iterations, request.check ? 1 : 0);
  if (request.op != ZC_OP_SUM) line += std::string(" op=") + zc_op_name(request.op);
  if (request.root != 0) line += fmt::format(" root={}", request.root);
  if (request.skewed) line += " skew=one";
  return line;
}

std::optional<BenchRequest> parse_request(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 10 || words[0] != "run") return std::nullopt;
  const auto collective = collective_of(words[1]);
  const auto dtype = bench_dtype_of(words[2]);
  const auto count = whole_number(words[3]);
  const auto in = choice(words[4], "out", "in"), plain = choice(words[5], "registered", "plain");
  const auto loop = choice(words[6], "fresh", "loop"), check = choice(words[9], "0", "1");
  const auto warmup = whole_number(words[7]), iterations = whole_number(words[8]);
  if (!collective || !dtype || !count || !in || !plain || !loop || !check || !warmup || !iterations)
    return std::nullopt;
  BenchRequest request{*collective, *dtype, static_cast<std::size_t>(*count), *in ? BenchPlace::in : BenchPlace::out,
                       *plain,      *loop,  static_cast<int>(*warmup),        static_cast<int>(*iterations),
                       *check};
  for (std::size_t i = 10; i < words.size(); ++i)
    if (!take_extra(request, words[i])) return std::nullopt;
  return request;
}

std::string hello_line(const BenchHello& hello) {
  return fmt::format("hello {} {} {} {}\n", hello.group, hello.rank, hello.ranks, hello.library);
}

std::optional<BenchHello> parse_hello(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 4 || words[0] != "hello") return std::nullopt;
  const auto rank = whole_number(words[2]), ranks = whole_number(words[3]);
  if (!rank || !ranks || *rank < 0 || *rank >= *ranks) return std::nullopt;
  std::string library;
  if (words.size() > 4) library = std::string(words[4].data(), line.data() + line.size());
  return BenchHello{std::string(words[1]), static_cast<int>(*rank), static_cast<int>(*ranks), library};
}

std::string reply_lines(const BenchReply& reply) {
  const auto one_line = [](std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  };
  if (!reply.error.empty()) return "error " + one_line(reply.error) + "\n";
  if (!reply.unsupported.empty()) return "unsupported " + one_line(reply.unsupported) + "\n";
  std::string text = numbers_line("times", reply.times_ns) + numbers_line("arrive", reply.arrivals_ns);
  if (!reply.bits.empty()) text += "bits " + reply.bits + "\n";
  return text + fmt::format("check {}\n", reply.wrong);
}

bool add_line(BenchReply& reply, std::string_view line) {
  const std::string_view name = line.substr(0, line.find(' '));
  const std::string_view rest = name.length() < line.length() ? line.substr(name.length() + 1) : "";
  if (name == "times") return take_numbers(line, reply.times_ns);
  if (name == "arrive") return take_numbers(line, reply.arrivals_ns);
  if (name == "bits") {
    reply.bits = rest;
    return true;
  }
  reply.complete = true;
  if (name == "check") {
    const auto wrong = whole_number(rest);
    reply.wrong = wrong.value_or(0);
    return wrong.has_value();
  }
  if (name == "unsupported") reply.unsupported = rest.empty() ? "no reason given" : rest;
  if (name == "error") reply.error = rest.empty() ? "no reason given" : rest;
  return name == "unsupported" || name == "error";
}

bool LineSocket::send(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool LineSocket::receive() {
  char piece[65536];
  ssize_t got = 0;
  do got = recv(fd_.get(), piece, sizeof piece, 0);
  while (got < 0 && errno == EINTR);
  if (got <= 0 || held_.length() > kMostLine) return false;
  held_.append(piece, static_cast<std::size_t>(got));
  return true;
}

std::optional<std::string> LineSocket::line() {
  const std::size_t end = held_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = held_.substr(0, end);
  held_.erase(0, end + 1);
  return line;
}

std::optional<std::string> LineSocket::wait_line() {
  while (true) {
    if (auto whole = line()) return whole;
    if (!receive()) return std::nullopt;
  }
}

PeerOfSocket peer_of(int fd) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return {};
  return {peer.uid == geteuid(), peer.pid};
}

RunDescriptor listen_at(const std::string& name) {
  socklen_t length = 0;
  const sockaddr_un address = address_of(name, length);
  RunDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) refuse("socket");
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 || listen(fd.get(), SOMAXCONN) != 0)
    refuse("socket @" + name);
  return fd;
}

LineSocket connect_to(const std::string& name) {
  socklen_t length = 0;
  const sockaddr_un address = address_of(name, length);
  RunDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) refuse("socket");
  int failed = 0;
  do failed = connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length);
  while (failed != 0 && errno == EINTR);
  if (failed != 0) refuse("the driver of the bench at @" + name);
  if (!peer_of(fd.get()).same_user) throw Failure("the driver of the bench at @" + name + " is another user's");
  return LineSocket(std::move(fd));
}

}  // namespace zerocomm::cli
