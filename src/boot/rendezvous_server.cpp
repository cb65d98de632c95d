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
// How often the caller's progress is called.
constexpr std::int64_t kProgressNs = 2'000'000;

}  // namespace

Server::Server(const JoinRequest& request, const Identity& own, const Deadline& deadline)
    : request_(request),
      own_deadline_(deadline),
      roll_(request, own, deadline, job_hash(request.job), true),
      seats_(static_cast<std::size_t>(request.ranks)) {
  seats_[0].ready = true;
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
        Client(request_, roll_.identity(0), own_deadline_).attempt();
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
  run([&] { return roll_.all_here(); }, [&] { return missing_text(); });
  strangers_ = lobby_->strangers();
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
    if (roll_.verdict()) fail();
    if (done()) return;
    if (over) {
      roll_.settle({ZC_TIMEOUT, late()});
      fail();
    }
    const std::int64_t left_ns = roll_.left_ns();
    over = left_ns == 0;
    polled.clear();
    for (const Seat& seat : seats_) polled.push_back(readable(seat.connection));  // of rank 0: none, and ignored
    std::int64_t limit_ns = sent ? left_ns : std::min(left_ns, kRetryNs);
    if (lobby_) {
      lobby_->watch(polled);
      limit_ns = std::min(limit_ns, lobby_->left_ns());
    }
    if (request_.progress) {
      if (auto error = request_.progress()) roll_.settle(*std::move(error));
      limit_ns = std::min(limit_ns, kProgressNs);
    }
    wait_readable(polled, limit_ns);
    for (std::size_t i = 0; i < seats_.size(); ++i)
      if (polled[i].revents != 0) hear(i);
    if (!lobby_) continue;
    const int error = lobby_->serve(
        [&](Descriptor& connection, std::span<const std::byte> message) { return decide(connection, message); });
    if (error != 0)
      roll_.settle({ZC_SYSTEM, format("rank 0 cannot let the others in: accept: %s", std::strerror(error))});
  }
}

// Everybody of this job is kept, even who makes the joining fail: that is how they get the verdict.
bool Server::decide(Descriptor& connection, std::span<const std::byte> message) {
  const std::optional<wire::Header> header = wire::header_of(message);
  if (!header) return false;
  if (header->version != wire::kVersion) {
    roll_.settle(other_version(peer_of(connection).pid, header->version, roll_.identity(0).pid));
    turned_away_.push_back(std::move(connection));
    return true;
  }
  const std::optional<wire::Hello> hello = wire::read<wire::Hello>(message);
  if (!hello) return false;
  switch (roll_.call(*hello)) {
    case Roll::Place::none:
      return false;
    case Roll::Place::aside:
      turned_away_.push_back(std::move(connection));
      return true;
    case Roll::Place::seat:
      break;
  }
  seats_[static_cast<std::size_t>(hello->identity.rank)].connection = std::move(connection);
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
    message.server = roll_.identity(0);
    return send_message(seat.connection, &message, sizeof message);
  }
  if (seat.sent > parts()) {
    wire::Segment message;
    message.strangers = strangers_;
    return send_message(seat.connection, &message, sizeof message, segment_);
  }
  wire::Ranks message;
  const std::size_t first = (seat.sent - 1) * wire::Ranks::kMost;
  const std::size_t count = std::min(wire::Ranks::kMost, seats_.size() - first);
  message.first = static_cast<std::uint32_t>(first);
  message.count = static_cast<std::uint32_t>(count);
  for (std::size_t i = 0; i < count; ++i) message.identities[i] = roll_.identity(first + i);
  return send_message(seat.connection, &message, sizeof message);
}

// Everything that a rank has sent: it may have said something and ended.
void Server::hear(std::size_t rank) {
  Seat& seat = seats_[rank];
  alignas(std::uint64_t) std::array<std::byte, wire::kMostBytes> room;
  while (!roll_.verdict()) {
    std::size_t message_bytes = 0;
    const Transfer result = receive_message(seat.connection, room, &message_bytes);
    if (result == Transfer::later) return;
    const std::string who = rank_text(roll_.identity(rank));
    if (result == Transfer::closed)
      return roll_.settle({ZC_PEER_LOST, who + " ended while the communicator was being created"});
    const auto message = std::span(room).first(result == Transfer::done ? message_bytes : 0);
    if (const auto failed = wire::read<wire::Failed>(message)) return roll_.settle(failed->error());
    if (seat.ready || !wire::read<wire::Ready>(message))
      return roll_.settle({ZC_TRANSPORT, who + " sent something that does not belong to the joining"});
    seat.ready = true;
  }
}

void Server::fail() {
  tell_all(roll_.verdict()->status(), roll_.verdict()->what());
  if (lobby_) tell_late_comers();
  lobby_.reset();
  throw Error(*roll_.verdict());
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
  const wire::Failed message = wire::Failed::of(roll_.verdict()->status(), roll_.verdict()->what());
  const auto tell = [&](Descriptor& connection, std::span<const std::byte> bytes) {
    const std::optional<wire::Hello> hello = wire::read<wire::Hello>(bytes);
    const Roll::Late late = hello ? roll_.call_late(*hello) : Roll::Late::stranger;
    if (late == Roll::Late::tell) send_message(connection, &message, sizeof message);
    return late != Roll::Late::stranger;
  };
  const Deadline limit = Deadline::after(std::min(kLateComersNs, roll_.left_ns()));
  std::vector<pollfd> polled;
  for (;;) {
    const int error = lobby_->serve(tell);
    if (error != 0 || roll_.all_here() || limit.left_ns() == 0) return;
    polled.clear();
    lobby_->watch(polled);
    wait_readable(polled, std::min(limit.left_ns(), lobby_->left_ns()));
  }
}

std::string Server::missing_text() const {
  return roll_.missing_text(format("%s in network namespace %llu", rank_text(roll_.identity(0)).c_str(),
                                   static_cast<unsigned long long>(roll_.identity(0).network_namespace)),
                            lobby_->strangers());
}

std::string Server::late_text(const char* what, FunctionRef<bool(const Seat&)> is_late) const {
  RankList names;
  for (std::size_t i = 0; i < seats_.size(); ++i)
    if (is_late(seats_[i])) names.add(rank_text(roll_.identity(i)));
  return format("%s %s %s", names.text().c_str(), what, roll_.within().c_str());
}

}  // namespace zerocomm::boot
