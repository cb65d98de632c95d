#include "cli/bench_driver.hpp"

#include "cli/bench_clock.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>

namespace zerocomm::cli {
namespace {

std::string new_name() {
  std::uint64_t bits = 0;
  ssize_t got = 0;
  do got = getrandom(&bits, sizeof bits, 0);
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof bits)) refuse("getrandom");
  return fmt::format("zc-bench-{}-{:016x}", getpid(), bits);
}

constexpr int kLookMs = 100;

}  // namespace

BenchDriver::BenchDriver() : name_(new_name()), listener_(listen_at(name_)), stop_(eventfd(0, EFD_CLOEXEC)) {
  if (!stop_) refuse("eventfd");
}

std::vector<bool> BenchDriver::wait(const std::vector<int>& fds, int timeout_ms) {
  std::vector<pollfd> polled;
  polled.reserve(fds.size() + 1);
  for (const int fd : fds) polled.push_back({fd, POLLIN, 0});
  polled.push_back({stop_.get(), POLLIN, 0});
  if (poll(polled.data(), polled.size(), timeout_ms) < 0 && errno != EINTR) refuse("poll");
  if (polled.back().revents != 0) throw Failure("the ranks have ended");
  std::vector<bool> readable;
  for (std::size_t i = 0; i < fds.size(); ++i) readable.push_back(polled[i].revents != 0);
  return readable;
}

void BenchDriver::take_caller() {
  RunDescriptor fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) {
    if (errno == EINTR || errno == ECONNABORTED) return;
    refuse("accept");
  }
  if (peer_of(fd.get()).same_user) strangers_.emplace_back(std::move(fd));
}

void BenchDriver::take_hello(LineSocket&& socket, const std::string& line) {
  const auto hello = parse_hello(line);
  const auto group = hello ? groups_.find(hello->group) : groups_.end();
  if (group == groups_.end()) return;  // and the socket is closed
  if (hello->ranks != static_cast<int>(group->second.ranks.size()))
    throw Failure(fmt::format("{} has {} ranks, not {}", hello->group, hello->ranks, group->second.ranks.size()));
  Rank& rank = group->second.ranks[static_cast<std::size_t>(hello->rank)];
  if (rank.socket.open()) throw Failure(fmt::format("rank {} of {} came twice", hello->rank, hello->group));
  rank.pid = peer_of(socket.fd()).pid;
  rank.socket = std::move(socket);
  if (hello->rank == 0) group->second.library = hello->library;
  ++group->second.here;
}

void BenchDriver::expect(const std::string& name, int ranks, double limit_s,
                         const std::function<std::optional<std::string>()>& trouble) {
  Group& group = groups_[name];
  group.ranks = std::vector<Rank>(static_cast<std::size_t>(ranks));
  const std::int64_t end_ns = bench_now_ns() + static_cast<std::int64_t>(limit_s * 1e9);
  while (group.here < ranks) {
    std::vector<int> fds{listener_.get()};
    for (const LineSocket& stranger : strangers_) fds.push_back(stranger.fd());
    const std::vector<bool> readable = wait(fds, kLookMs);
    std::size_t i = 1;
    for (auto stranger = strangers_.begin(); i < fds.size(); ++i) {
      const auto here = stranger++;
      if (!readable[i]) continue;
      const bool alive = here->receive();
      const auto line = here->line();
      if (line) take_hello(std::move(*here), *line);
      if (line || !alive) strangers_.erase(here);
    }
    if (readable[0]) take_caller();
    if (group.here == ranks) return;
    if (const auto why = trouble()) throw Failure(fmt::format("{}: {}", name, *why));
    if (bench_now_ns() > end_ns)
      throw Failure(fmt::format("{}: after {:g} s only {} of {} ranks have come", name, limit_s, group.here, ranks));
  }
}

std::vector<int> BenchDriver::pids_of(const std::string& group) const {
  std::vector<int> pids;
  pids.reserve(groups_.at(group).ranks.size());
  for (const Rank& rank : groups_.at(group).ranks) pids.push_back(rank.pid);
  return pids;
}

void BenchDriver::receive(const std::string& name, int rank, Rank& from, BenchReply& reply) const {
  const bool alive = from.socket.receive();
  while (!reply.complete) {
    const auto line = from.socket.line();
    if (!line) break;
    if (!add_line(reply, *line)) throw Failure(fmt::format("rank {} of {} answered \"{:.60}\"", rank, name, *line));
  }
  if (!reply.complete && !alive) throw Failure(fmt::format("rank {} of {} (pid {}) has ended", rank, name, from.pid));
}

std::vector<BenchReply> BenchDriver::ask(const std::string& name, const std::string& line) {
  Group& group = groups_.at(name);
  for (std::size_t rank = 0; rank < group.ranks.size(); ++rank)
    if (!group.ranks[rank].socket.send(line + "\n"))
      throw Failure(fmt::format("rank {} of {} (pid {}) has ended", rank, name, group.ranks[rank].pid));
  std::vector<BenchReply> replies(group.ranks.size());
  std::vector<std::size_t> missing(replies.size());
  for (std::size_t rank = 0; rank < missing.size(); ++rank) missing[rank] = rank;
  const std::int64_t end_ns = bench_now_ns() + static_cast<std::int64_t>(limit_s_ * 1e9);
  while (!missing.empty()) {
    std::vector<int> fds;
    fds.reserve(missing.size());
    for (const std::size_t rank : missing) fds.push_back(group.ranks[rank].socket.fd());
    const auto left_ms = (end_ns - bench_now_ns()) / 1'000'000 + 1;
    const std::vector<bool> readable =
        wait(fds, limit_s_ > 0 ? static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, 60'000)) : -1);
    for (std::size_t i = 0; i < missing.size(); ++i)
      if (readable[i]) receive(name, static_cast<int>(missing[i]), group.ranks[missing[i]], replies[missing[i]]);
    std::erase_if(missing, [&](std::size_t rank) { return replies[rank].complete; });
    // A rank that fails fails the others too, which may take them their whole deadline.
    for (std::size_t rank = 0; rank < replies.size(); ++rank)
      if (!replies[rank].error.empty())
        throw Failure(fmt::format("rank {} of {}: {}", rank, name, replies[rank].error));
    if (!missing.empty() && limit_s_ > 0 && bench_now_ns() > end_ns)
      throw Failure(
          fmt::format("rank {} of {} has not answered \"{}\" after {:g} s", missing[0], name, line, limit_s_));
  }
  return replies;
}

void BenchDriver::quit() {
  for (auto& [name, group] : groups_)
    for (Rank& rank : group.ranks)
      if (rank.socket.open()) {
        rank.socket.send("quit\n");
        rank.socket.close();
      }
  strangers_.clear();
}

void BenchDriver::stop() const {
  const std::uint64_t one = 1;
  if (write(stop_.get(), &one, sizeof one) < 0) return;  // it is full, so it is set
}

}  // namespace zerocomm::cli
