#include "boot/rendezvous_client.hpp"

#include "boot/rendezvous_verdict.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

namespace zerocomm::boot {
namespace {

constexpr std::int64_t kGraceNs = 1'000'000'000;
constexpr std::int64_t kRetryNs = 1'000'000;
constexpr std::int64_t kProgressNs = 2'000'000;  // how often the caller's progress is called

Deadline with_grace(std::int64_t deadline_ns) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() - kGraceNs;
  return Deadline::after(std::min(std::max<std::int64_t>(deadline_ns, 0), kMost) + kGraceNs);
}

}  // namespace

std::string job_socket(const std::string& job) { return socket_name("join", job); }

std::uint64_t job_hash(const std::string& job) noexcept { return hash_text(job, 0xa4093822299f31d0u); }

Client::Client(const JoinRequest& request, const Identity& own, const Deadline& deadline)
    : request_(request),
      own_(own),
      deadline_(deadline),
      answer_(with_grace(deadline.left_ns())),
      name_(job_socket(request.job)) {}

void Client::join() {
  Pauses pauses;
  while (!attempt()) {
    if (deadline_.left_ns() == 0) throw Error(ZC_TIMEOUT, not_found_text());
    make_progress();
    pauses.sleep(request_.progress ? std::min(kProgressNs, deadline_.left_ns()) : deadline_.left_ns());
  }
}

void Client::make_progress() const {
  if (!request_.progress) return;
  if (auto error = request_.progress()) throw Error(*error);
}

bool Client::attempt() {
  int error = 0;
  connection_ = connect_to(name_, &error);
  if (!connection_) {
    ZC_REQUIRE(error == 0, ZC_SYSTEM, "connect to the socket @%s: %s", name_.c_str(), std::strerror(error));
    return false;
  }
  last_seen_ = peer_of(connection_);
  seen_ = true;
  if (!last_seen_.same_user()) {  // it gets no word
    connection_ = Descriptor();
    return false;
  }
  const wire::Hello hello = wire::Hello::of(request_, own_, job_hash(request_.job), deadline_.left_ns());
  if (send_message(connection_, &hello, sizeof hello) != Transfer::done) return false;
  wire::Accepted accepted;
  if (!receive(accepted)) return false;
  server_ = accepted.server;
  return true;
}

template <class Message>
bool Client::receive(Message& message, Descriptor* descriptor) {
  alignas(std::uint64_t) std::array<std::byte, wire::kMostBytes> room;
  std::size_t message_bytes = 0;
  Transfer result = Transfer::later;
  std::vector<pollfd> polled;
  // Only the segment's message may bring a descriptor.
  while ((result = receive_message(connection_, room, &message_bytes, descriptor)) == Transfer::later) {
    ZC_REQUIRE(answer_.left_ns() > 0, ZC_TIMEOUT, "rank 0 (pid %d) did not answer within %s",
               server_.pid != 0 ? server_.pid : last_seen_.pid, seconds_text(request_.deadline_ns).c_str());
    make_progress();
    polled.assign(1, readable(connection_));
    wait_readable(polled, request_.progress ? std::min(kProgressNs, answer_.left_ns()) : answer_.left_ns());
  }
  if (result == Transfer::closed) return false;
  const auto bytes = std::span(room).first(result == Transfer::done ? message_bytes : 0);
  if (const auto failed = wire::read<wire::Failed>(bytes)) throw failed->error();
  const std::optional<wire::Header> header = wire::header_of(bytes);
  if (header && header->version != wire::kVersion) throw other_version(last_seen_.pid, header->version, own_.pid);
  const std::optional<Message> found = wire::read<Message>(bytes);
  ZC_REQUIRE(found && (descriptor == nullptr || *descriptor), ZC_TRANSPORT,
             "rank 0 (pid %d) sent something that does not belong to the joining", last_seen_.pid);
  message = *found;
  return true;
}

template <class Message>
void Client::expect(Message& message, Descriptor* descriptor) {
  ZC_REQUIRE(receive(message, descriptor), ZC_PEER_LOST,
             "rank 0 (pid %d) ended while the communicator was being created", server_.pid);
}

void Client::receive_welcome(std::vector<Identity>& identities, Descriptor& segment, std::uint64_t& strangers) {
  const auto ranks = static_cast<std::size_t>(request_.ranks);
  identities.clear();
  while (identities.size() < ranks) {
    wire::Ranks part;
    expect(part);
    const std::size_t most = std::min(wire::Ranks::kMost, ranks - identities.size());
    ZC_REQUIRE(part.first == identities.size() && part.count >= 1 && part.count <= most, ZC_TRANSPORT,
               "rank 0 (pid %d) sent ranks %u to %u of %zu after %zu", server_.pid, part.first, part.first + part.count,
               ranks, identities.size());
    identities.insert(identities.end(), part.identities.begin(), part.identities.begin() + part.count);
  }
  wire::Segment message;
  expect(message, &segment);
  strangers = message.strangers;
}

void Client::confirm() {
  const wire::Ready ready;
  // Whether rank 0 is still there shows in what it sent last.
  while (send_message(connection_, &ready, sizeof ready) == Transfer::later && answer_.left_ns() > 0)
    sleep_ns(kRetryNs);
  wire::Go go;
  expect(go);
  connection_ = Descriptor();
}

void Client::give_up(std::int32_t status, std::string_view text) noexcept {
  const wire::Failed message = wire::Failed::of(status, text);
  while (send_message(connection_, &message, sizeof message) == Transfer::later && answer_.left_ns() > 0)
    sleep_ns(kRetryNs);
  connection_ = Descriptor();
}

std::string Client::not_found_text() const {
  std::string text = format("rank 0 did not come within %s: ", seconds_text(request_.deadline_ns).c_str());
  if (!seen_)
    text += format("nobody listens on @%s", name_.c_str());
  else if (!last_seen_.same_user())
    text += format("process %d of user %u has the name @%s", last_seen_.pid, static_cast<unsigned>(last_seen_.uid),
                   name_.c_str());
  else
    text += format("process %d, the last that listened on @%s, hung up", last_seen_.pid, name_.c_str());
  return text + format(" in network namespace %llu; other network namespaces and hosts are out of reach",
                       static_cast<unsigned long long>(own_.network_namespace));
}

}  // namespace zerocomm::boot
