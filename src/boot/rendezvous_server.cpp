#include "boot/rendezvous_server.hpp"

#include "boot/rendezvous_client.hpp"
#include "boot/rendezvous_verdict.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace zerocomm::boot {
namespace {

// After an error, ranks that are still on their way are waited for, to get it too.
constexpr std::int64_t kLateComersNs = 1'000'000'000;
// How often to try again where there was no room to send.
constexpr std::int64_t kRetryNs = 1'000'000;
constexpr int kMostRetries = 500;
// How long an earlier rank 0 may take to close before this one asks it whether they belong together.
constexpr std::int64_t kNameTakenNs = 1'000'000'000;

bool same_process(const Identity& a, const Identity& b) {
  return a.rank == b.rank && a.pid == b.pid && a.pid_namespace == b.pid_namespace;
}

}  // namespace

Server::Server(const JoinRequest& request, const Identity& own, const Deadline& deadline)
    : request_(request),
      own_deadline_(deadline),
      earliest_(deadline),
      earliest_ns_(request.deadline_ns),
      seats_(static_cast<std::size_t>(request.ranks)) {
  seats_[0].identity = own;
  seats_[0].here = seats_[0].ready = true;
}

bool Server::all_here() const {
  return std::all_of(seats_.begin(), seats_.end(), [](const Seat& seat) { return seat.here; });
}

std::vector<Identity> Server::identities() const {
  std::vector<Identity> all;
  all.reserve(seats_.size());
  for (const Seat& seat : seats_) all.push_back(seat.identity);
  return all;
}

// Whoever has the name may be an earlier rank 0 that is about to close, so this tries again. One that stays is asked:
// if it is of this job too, both learn that rank 0 came twice.
void Server::take_name() {
  const std::string name = job_socket(request_.job);
  const Deadline ask = Deadline::after(std::min(kNameTakenNs, own_deadline_.left_ns() / 2));
  Descriptor listener = listen_when_free(
      name,
      [&] {
        if (own_deadline_.left_ns() == 0) return false;
        if (ask.left_ns() > 0) return true;
        Client(request_, seats_[0].identity, own_deadline_).attempt();
        return true;
      },
      own_deadline_);
  if (!listener) {
    int error = 0;
    const Descriptor holder = connect_to(name, &error);
    const Peer peer = peer_of(holder);
    const std::string who =
        holder ? format("process %d of user %u", peer.pid, static_cast<unsigned>(peer.uid)) : "another process";
    throw Error(ZC_TIMEOUT, format("rank 0 could not listen within %s: %s has the name @%s",
                                   seconds_text(request_.deadline_ns).c_str(), who.c_str(), name.c_str()));
  }
  lobby_.emplace(std::move(listener));
}

void Server::gather() {
  take_name();
  run([&] { return all_here(); }, [&] { return missing_text(); });
  lobby_.reset();
}

void Server::welcome(int segment) {
  segment_ = segment;
  wanted_ = 1 + parts() + 1;
  const auto is_late = [&](const Seat& seat) { return seat.connection && seat.sent < wanted_; };
  run([&] { return std::none_of(seats_.begin(), seats_.end(), is_late); },
      [&] { return late_text("did not take what it was sent", is_late); });
}

void Server::confirm() {
  const auto is_late = [](const Seat& seat) { return !seat.ready; };
  run([&] { return std::none_of(seats_.begin(), seats_.end(), is_late); },
      [&] { return late_text("did not finish its set-up", is_late); });
  // From here on a rank that ends is no matter of the joining.
  const wire::Go go;
  for (Seat& seat : seats_)
    for (int turn = 0; seat.connection && turn < kMostRetries; ++turn) {
      if (send_message(seat.connection, &go, sizeof go) != Transfer::later) break;
      sleep_ns(kRetryNs);
    }
  seats_.clear();
}

// One loop for all steps: send what is due, look whether the step is done, wait, hear everybody. What came before the
// deadline counts, even if this rank looks at it later.
void Server::run(FunctionRef<bool()> done, FunctionRef<std::string()> late) {
  std::vector<pollfd> polled;
  for (bool over = false;;) {
    const bool sent = send_pending();
    if (verdict_) fail();
    if (done()) return;
    if (over) {
      settle({ZC_TIMEOUT, late()});
      fail();
    }
    const std::int64_t left_ns = earliest_.left_ns();
    over = left_ns == 0;
    polled.clear();
    for (const Seat& seat : seats_) polled.push_back(readable(seat.connection));  // of rank 0: none, and ignored
    std::int64_t limit_ns = sent ? left_ns : std::min(left_ns, kRetryNs);
    if (lobby_) {
      lobby_->watch(polled);
      limit_ns = std::min(limit_ns, lobby_->left_ns());
    }
    wait_readable(polled, limit_ns);
    for (std::size_t i = 0; i < seats_.size(); ++i)
      if (polled[i].revents != 0) hear(seats_[i]);
    if (!lobby_) continue;
    const int error = lobby_->serve(
        [&](Descriptor& connection, std::span<const std::byte> message) { return decide(connection, message); });
    if (error != 0) settle({ZC_SYSTEM, format("rank 0 cannot let the others in: accept: %s", std::strerror(error))});
  }
}

// Everybody of this job is kept, even who makes the joining fail: that is how they get the verdict.
bool Server::decide(Descriptor& connection, std::span<const std::byte> message) {
  const std::optional<wire::Header> header = wire::header_of(message);
  if (!header) return false;
  if (header->version != wire::kVersion) {
    settle(other_version(peer_of(connection).pid, header->version, seats_[0].identity.pid));
    turned_away_.push_back(std::move(connection));
    return true;
  }
  const std::optional<wire::Hello> hello = wire::read<wire::Hello>(message);
  if (!hello || hello->job_hash != job_hash(request_.job) || hello->ranks < 1 || hello->identity.rank < 0 ||
      hello->identity.rank >= hello->ranks)
    return false;
  const auto rank = static_cast<std::size_t>(hello->identity.rank);
  const bool taken = rank < seats_.size() && seats_[rank].here;
  if (auto error = disagreement(*hello, request_, seats_[0].identity, taken ? &seats_[rank].identity : nullptr))
    settle(*std::move(error));
  if (taken || rank >= seats_.size()) {
    turned_away_.push_back(std::move(connection));
    return true;
  }
  Seat& seat = seats_[rank];
  seat.identity = hello->identity;
  seat.connection = std::move(connection);
  seat.here = true;
  if (hello->left_ns < earliest_.left_ns()) {
    earliest_ = Deadline::after(std::max<std::int64_t>(hello->left_ns, 0));
    earliest_ns_ = hello->deadline_ns;
    earliest_rank_ = hello->identity.rank;
  }
  return true;
}

// False if there was no room for something.
bool Server::send_pending() {
  bool all = true;
  for (Seat& seat : seats_) {
    while (seat.connection && seat.sent < wanted_) {
      const Transfer result = send_next(seat);
      if (result == Transfer::later) all = false;
      if (result != Transfer::done) break;  // a closed connection is heard of as well
      ++seat.sent;
    }
  }
  return all;
}

// Message 0 takes a rank in, then come the parts of the list of ranks, then the segment.
Transfer Server::send_next(Seat& seat) {
  if (seat.sent == 0) {
    wire::Accepted message;
    message.server = seats_[0].identity;
    return send_message(seat.connection, &message, sizeof message);
  }
  if (seat.sent > parts()) {
    const wire::Segment message;
    return send_message(seat.connection, &message, sizeof message, segment_);
  }
  wire::Ranks message;
  const std::size_t first = (seat.sent - 1) * wire::Ranks::kMost;
  const std::size_t count = std::min(wire::Ranks::kMost, seats_.size() - first);
  message.first = static_cast<std::uint32_t>(first);
  message.count = static_cast<std::uint32_t>(count);
  for (std::size_t i = 0; i < count; ++i) message.identities[i] = seats_[first + i].identity;
  return send_message(seat.connection, &message, sizeof message);
}

// Everything that a rank has sent: it may have said something and ended.
void Server::hear(Seat& seat) {
  alignas(std::uint64_t) std::array<std::byte, wire::kMostBytes> room;
  while (!verdict_) {
    std::size_t message_bytes = 0;
    const Transfer result = receive_message(seat.connection, room, &message_bytes);
    if (result == Transfer::later) return;
    if (result == Transfer::closed)
      return settle({ZC_PEER_LOST, rank_text(seat.identity) + " ended while the communicator was being created"});
    const auto message = std::span(room).first(result == Transfer::done ? message_bytes : 0);
    if (const auto failed = wire::read<wire::Failed>(message)) return settle(failed->error());
    if (seat.ready || !wire::read<wire::Ready>(message))
      return settle({ZC_TRANSPORT, rank_text(seat.identity) + " sent something that does not belong to the joining"});
    seat.ready = true;
  }
}

void Server::settle(Error error) {
  if (!verdict_) verdict_ = std::move(error);
}

void Server::fail() {
  tell_all(verdict_->status(), verdict_->what());
  if (lobby_) tell_late_comers();
  lobby_.reset();
  throw Error(*verdict_);
}

void Server::tell_all(std::int32_t status, std::string_view text) noexcept {
  const wire::Failed message = wire::Failed::of(status, text);
  const auto tell = [&](Descriptor& connection) {
    if (!connection) return true;
    if (send_message(connection, &message, sizeof message) == Transfer::later) return false;
    connection = Descriptor();
    return true;
  };
  for (int turn = 0; turn < kMostRetries; ++turn) {
    bool all = true;
    for (Seat& seat : seats_) all = tell(seat.connection) && all;
    for (Descriptor& connection : turned_away_) all = tell(connection) && all;
    if (all) break;
    sleep_ns(kRetryNs);
  }
  for (Seat& seat : seats_) seat.connection = Descriptor();
  turned_away_.clear();
}

// Without this they would look for rank 0 until their deadline.
void Server::tell_late_comers() {
  const wire::Failed message = wire::Failed::of(verdict_->status(), verdict_->what());
  const auto tell = [&](Descriptor& connection, std::span<const std::byte> bytes) {
    const std::optional<wire::Hello> hello = wire::read<wire::Hello>(bytes);
    if (!hello || hello->job_hash != job_hash(request_.job)) return false;
    const auto rank = static_cast<std::size_t>(std::max(hello->identity.rank, 0));
    if (rank < seats_.size()) {
      // Who has been told and comes again waits for a new rank 0.
      if (seats_[rank].here && same_process(seats_[rank].identity, hello->identity)) return true;
      seats_[rank].here = true;
      seats_[rank].identity = hello->identity;
    }
    send_message(connection, &message, sizeof message);
    return true;
  };
  const Deadline limit = Deadline::after(std::min(kLateComersNs, earliest_.left_ns()));
  std::vector<pollfd> polled;
  for (;;) {
    const int error = lobby_->serve(tell);
    if (error != 0 || all_here() || limit.left_ns() == 0) return;
    polled.clear();
    lobby_->watch(polled);
    wait_readable(polled, std::min(limit.left_ns(), lobby_->left_ns()));
  }
}

std::string Server::within() const {
  return format("within %s, the deadline of rank %d", seconds_text(earliest_ns_).c_str(), earliest_rank_);
}

std::string Server::missing_text() const {
  RankList names;
  std::int32_t came = 0;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i].here)
      ++came;
    else
      names.add(format("rank %zu", i));
  }
  std::string text = format("%s did not come %s; %d of %d came to %s in network namespace %llu", names.text().c_str(),
                            within().c_str(), came, request_.ranks, rank_text(seats_[0].identity).c_str(),
                            static_cast<unsigned long long>(seats_[0].identity.network_namespace));
  if (const std::size_t strangers = lobby_->strangers(); strangers > 0)
    text += format("; callers turned away that are none of them: %zu", strangers);
  return text;
}

std::string Server::late_text(const char* what, FunctionRef<bool(const Seat&)> is_late) const {
  RankList names;
  for (const Seat& seat : seats_)
    if (is_late(seat)) names.add(rank_text(seat.identity));
  return format("%s %s %s", names.text().c_str(), what, within().c_str());
}

}  // namespace zerocomm::boot
