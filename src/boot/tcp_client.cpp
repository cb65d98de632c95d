#include "boot/tcp_client.hpp"

#include "boot/rendezvous_verdict.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

namespace zerocomm::boot {
namespace {

constexpr std::int64_t kStepNs = 2'000'000'000;      // for one answer
constexpr std::int64_t kAskNs = 1'000'000'000;       // for one of whoever has the address
constexpr std::int64_t kGraceNs = 1'000'000'000;     // rank 0 is the one that says who is missing
constexpr std::int64_t kHungUpNs = 1'000'000'000;    // a caller that rank 0 lets wait stays longer
constexpr std::int64_t kPatienceNs = 2'000'000'000;  // with one that refuses
constexpr std::int64_t kLongestPauseNs = 250'000'000;
constexpr int kLeastRefusals = 4;

}  // namespace

TcpClient::TcpClient(const JoinRequest& request, const Identity& own, const Deadline& deadline, const TcpWay& way,
                     const Key& key)
    : request_(request), own_(own), deadline_(deadline), way_(way), key_(key), step_ns_(kStepNs) {}

Meeting TcpClient::meet() {
  int refusals = 0;  // in a row
  std::int64_t first_refusal_ns = 0, pause_ns = 1'000'000;
  for (;;) {
    const Resolved resolved = resolve(way_, deadline_);
    // The last attempt tells more than that the time is over.
    if (resolved.in_time) notes_.clear();
    if (resolved.endpoints.empty() && notes_.empty())
      notes_.push_back("the name " + way_.address + ": " + resolved.error);
    bool refused = false;
    for (const tcp::endpoint& candidate : resolved.endpoints) {
      const Outcome outcome = attempt(candidate);
      if (outcome == Outcome::in) return hear_verdict();
      refused = refused || outcome == Outcome::refused;
    }
    if (!refused && resolved.in_time) refusals = 0;
    if (refused && refusals++ == 0) first_refusal_ns = now_ns();
    ZC_REQUIRE(
        refusals == 0 ||
            ((refusals < kLeastRefusals || now_ns() - first_refusal_ns < kPatienceNs) && deadline_.left_ns() > 0),
        ZC_MISMATCH,
        "rank %d (pid %d on %.63s) was refused %d times: %s. If that is rank 0, its key is not the one of this rank "
        "(fingerprint %s, %s): give all hosts the same ZC_KEY_FILE; else give a free port in ZC_RENDEZVOUS",
        own_.rank, own_.pid, own_.host.data(), refusals, where_text().c_str(), key_.fingerprint().c_str(),
        key_.path().c_str());
    ZC_REQUIRE(deadline_.left_ns() > 0, ZC_TIMEOUT, "rank %d (pid %d on %.63s) did not find rank 0 within %s: %s",
               own_.rank, own_.pid, own_.host.data(), seconds_text(request_.deadline_ns).c_str(), where_text().c_str());
    sleep_ns(std::min(pause_ns, deadline_.left_ns()));
    // Rank 0 may come at any moment; one that refuses will hardly change its mind.
    const std::int64_t longest_ns = refused ? kLongestPauseNs : kLongestPauseNs / 10;
    pause_ns = std::min(2 * pause_ns, longest_ns);
  }
}

TcpClient::Holder TcpClient::ask_holder(const tcp::endpoint& endpoint) {
  step_ns_ = std::min(kAskNs, deadline_.left_ns());
  notes_.clear();
  if (attempt(endpoint) == Outcome::in) hear_verdict();
  return {!reached_, where_text()};
}

TcpClient::Outcome TcpClient::attempt(const tcp::endpoint& endpoint) {
  int error = 0;
  Descriptor descriptor = new_tcp_socket(endpoint.protocol(), &error);
  error_code code(error, boost::system::system_category());
  socket_ = tcp::socket(io_);
  if (descriptor) socket_.assign(endpoint.protocol(), descriptor.get(), code);
  if (code) {
    note(endpoint, code.message());
    return Outcome::absent;
  }
  descriptor.release();
  code = run(step_ns_, [&](auto&& handler) { socket_.async_connect(endpoint, handler); });
  reached_ = !code;
  if (code) {
    note(endpoint, code == asio::error::timed_out ? "no answer" : code.message());
    return Outcome::absent;
  }
  return handshake(endpoint);
}

TcpClient::Outcome TcpClient::handshake(const tcp::endpoint& endpoint) {
  wire::Greeting greeting;
  greeting.job_mark = wire::job_mark(request_.job);
  greeting.nonce = make_nonce();
  greeting.proof = key_.prove(Proof::greeting, wire::mark_text(greeting.job_mark), greeting.nonce, {});
  const std::int64_t start_ns = now_ns();
  wire::Challenge challenge;
  error_code code = send(asio::buffer(&greeting, sizeof greeting), step_ns_);
  if (!code) code = receive(asio::buffer(&challenge, sizeof challenge), step_ns_);
  if (code) {
    const bool hung_up = now_ns() - start_ns < kHungUpNs;
    note(endpoint,
         hung_up ? "hung up on this rank" : "had no time for this rank, or is rank 0 of another job with the same key");
    return hung_up ? Outcome::refused : Outcome::absent;
  }
  if (!equal(challenge.proof, key_.prove(Proof::server, request_.job, greeting.nonce, challenge.nonce))) {
    note(endpoint, "did not prove that it has the key");
    return Outcome::refused;
  }
  const wire::Answer answer{key_.prove(Proof::client, request_.job, greeting.nonce, challenge.nonce)};
  seal_.emplace(key_.prove(Proof::session, request_.job, greeting.nonce, challenge.nonce), false);
  const wire::Hello hello = wire::Hello::of(request_, own_, wire::tcp_job_hash(request_.job), deadline_.left_ns());
  const std::vector<std::byte> sealed = seal_->close(std::as_bytes(std::span(&hello, 1)));
  code = send(asio::buffer(&answer, sizeof answer), step_ns_);
  if (!code) code = send(asio::buffer(sealed), step_ns_);
  // To come twice would be an error: so this waits as long as rank 0 may take.
  const std::optional<wire::Reply> reply = code ? std::nullopt : next(answer_left_ns());
  if (!reply) {
    note(endpoint, "hung up on this rank after both had proved who they are");
    return Outcome::absent;
  }
  if (const auto failed = wire::read_reply<wire::Failed>(*reply)) throw failed->error();
  const auto accepted = wire::read_reply<wire::Accepted>(*reply);
  ZC_REQUIRE(accepted, ZC_TRANSPORT, "rank 0 at %s sent something that does not belong to the joining",
             endpoint_text(endpoint).c_str());
  server_ = accepted->server;
  return Outcome::in;
}

std::int64_t TcpClient::answer_left_ns() const {
  return std::min(deadline_.left_ns(), std::numeric_limits<std::int64_t>::max() - kGraceNs) + kGraceNs;
}

Meeting TcpClient::hear_verdict() {
  const std::string zero = rank_text(server_);
  const Deadline answer = Deadline::after(answer_left_ns());
  const std::optional<wire::Reply> reply = next(answer.left_ns());
  ZC_REQUIRE(reply || answer.left_ns() > 0, ZC_TIMEOUT, "%s did not answer within %s", zero.c_str(),
             seconds_text(request_.deadline_ns).c_str());
  ZC_REQUIRE(reply, ZC_PEER_LOST, "%s ended while the communicator was being created", zero.c_str());
  if (const auto failed = wire::read_reply<wire::Failed>(*reply)) throw failed->error();
  const auto met = wire::read_reply<wire::Met>(*reply);
  ZC_REQUIRE(met, ZC_TRANSPORT, "%s sent something that does not belong to the joining", zero.c_str());
  return {wire::get_text(met->job), met->strangers};
}

template <class Start>
error_code TcpClient::run(std::int64_t limit_ns, Start&& start) {
  std::optional<error_code> result;
  start([&result](const error_code& code, auto&&...) { result = code; });
  io_.restart();
  // The clock's longest time is beyond what a duration from now may be.
  io_.run_for(std::chrono::nanoseconds(std::min<std::int64_t>(limit_ns, std::int64_t{1} << 61)));
  if (result) return *result;
  error_code ignored;
  socket_.close(ignored);
  io_.restart();
  io_.run();  // its handler hears that it was given up
  return asio::error::timed_out;
}

error_code TcpClient::send(asio::const_buffer bytes, std::int64_t limit_ns) {
  return run(limit_ns, [&](auto&& handler) { asio::async_write(socket_, bytes, handler); });
}

error_code TcpClient::receive(asio::mutable_buffer bytes, std::int64_t limit_ns) {
  return run(limit_ns, [&](auto&& handler) { asio::async_read(socket_, bytes, handler); });
}

std::optional<wire::Reply> TcpClient::next(std::int64_t limit_ns) {
  std::array<std::byte, wire::kSealedReplyBytes> sealed{};
  if (receive(asio::buffer(sealed), limit_ns)) return std::nullopt;
  const auto message = seal_->open(sealed);
  if (!message) return std::nullopt;
  wire::Reply reply;
  std::memcpy(reply.data(), message->data(), reply.size());
  return reply;
}

void TcpClient::note(const tcp::endpoint& endpoint, const std::string& text) {
  notes_.push_back(endpoint_text(endpoint) + ": " + text);
}

std::string TcpClient::where_text() const {
  std::string text;
  for (const std::string& line : notes_) text += (text.empty() ? "" : "; ") + line;
  const std::string asked = tcp_text(way_);
  return text.starts_with(asked) ? text : asked + ": " + text;
}

}  // namespace zerocomm::boot
