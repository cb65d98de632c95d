#include "boot/tcp_server.hpp"

#include "boot/rendezvous_verdict.hpp"
#include "boot/tcp_client.hpp"
#include "boot/unique_id.hpp"

#include "base/log.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace zerocomm::boot {
namespace {

// After an error, ranks that are still on their way are waited for, to get it too.
constexpr std::int64_t kLateComersNs = 1'000'000'000;
constexpr std::int64_t kSendNs = 2'000'000'000;
// How long a port that nobody listens on any more may not be had all the same.
constexpr std::int64_t kPortFreeNs = 1'000'000'000;
constexpr std::size_t kMostLogged = 10;

}  // namespace

struct TcpServer::Caller {
  Caller(asio::io_context& io, tcp::socket connection) : socket(std::move(connection)), limit(io) {}

  tcp::socket socket;
  asio::steady_timer limit;
  std::string from;
  wire::Greeting greeting;
  std::size_t greeting_bytes = 0;  // that have come
  wire::Challenge challenge;
  wire::Answer answer;
  std::array<std::byte, wire::kSealedHelloBytes> hello{};
  std::array<std::byte, 1> more{};
  std::optional<Seal> seal;
  std::vector<std::vector<std::byte>> sent;  // what is on its way
  bool waits = false;                        // of another job that has the key
  bool gone = false;
};

TcpServer::TcpServer(const JoinRequest& request, const Identity& own, const Deadline& deadline, const TcpWay& way,
                     const Key& key)
    : request_(request),
      own_deadline_(deadline),
      way_(way),
      key_(key),
      roll_(request, own, deadline, wire::tcp_job_hash(request.job), false) {}

TcpServer::~TcpServer() = default;

Meeting TcpServer::meet() {
  listen();
  for (std::size_t i = 0; i < listeners_.size(); ++i) accept_from_now_on(i);
  run([&] { return roll_.all_here() || roll_.verdict(); }, std::numeric_limits<std::int64_t>::max());
  if (!roll_.all_here()) roll_.settle({ZC_TIMEOUT, missing_text()});
  if (!roll_.verdict())
    if (auto error = several_hosts(roll_.identities())) roll_.settle(*std::move(error));
  if (roll_.verdict()) fail();
  over_ = true;
  listeners_.clear();
  ports_.clear();
  Meeting meeting{make_unique_job(), strangers_};
  wire::Met met;
  met.strangers = meeting.strangers;
  wire::put_text(met.job, meeting.job);
  for (const CallerPtr& caller : heard_) send(caller, met);
  run([&] { return unsent_ == 0; }, kSendNs);
  log(ZC_LOG_INFO, "rendezvous on %s: %d ranks met, %zu strangers turned away", listens_on_.c_str(), request_.ranks,
      strangers_);
  return meeting;
}

void TcpServer::listen() {
  const std::string who = format("rank 0 (pid %d on %.63s)", roll_.identity(0).pid, roll_.identity(0).host.data());
  const std::string at = tcp_text(way_);
  const Deadline given_up = Deadline::after(std::min(kPortFreeNs, own_deadline_.left_ns()));
  for (Pauses pauses;;) {
    const Resolved resolved = resolve(way_, own_deadline_);
    ZC_REQUIRE(resolved.in_time, ZC_TIMEOUT,
               "%s cannot listen on %s: what the name %s stands for was not found within %s: the resolver did not "
               "answer; give a number: ZC_RENDEZVOUS=tcp://ADDRESS:PORT",
               who.c_str(), at.c_str(), way_.address.c_str(), seconds_text(request_.deadline_ns).c_str());
    std::string failures = resolved.endpoints.empty() ? "the name " + way_.address + ": " + resolved.error : "";
    bool taken = false;
    for (const tcp::endpoint& endpoint : resolved.endpoints) taken = listen_at(endpoint, failures) || taken;
    if (!listeners_.empty()) return;
    ZC_REQUIRE(taken, ZC_SYSTEM,
               "%s cannot listen on %s: %s; give an address of the host on which rank 0 runs: "
               "ZC_RENDEZVOUS=tcp://ADDRESS:PORT",
               who.c_str(), at.c_str(), failures.c_str());
    // This process will be done with it. Of others, the next to look for the port may only just have missed it.
    bool leaving = PortInUse::here(way_.port) && own_deadline_.left_ns() > 0;
    std::string holders;
    for (const tcp::endpoint& endpoint : resolved.endpoints) {
      if (leaving) break;
      const Deadline asked = Deadline::after(std::min(kPortFreeNs, own_deadline_.left_ns()));
      const TcpClient::Holder holder = TcpClient(request_, roll_.identity(0), asked, way_, key_).ask_holder(endpoint);
      leaving = holder.gone && given_up.left_ns() > 0;
      holders += (holders.empty() ? "" : "; ") + holder.text;
    }
    ZC_REQUIRE(leaving, ZC_SYSTEM,
               "%s cannot listen on %s: another process has it: %s. Asked, it: %s. Give a free port: "
               "ZC_RENDEZVOUS=tcp://ADDRESS:PORT",
               who.c_str(), at.c_str(), failures.c_str(), holders.c_str());
    pauses.sleep(own_deadline_.left_ns());
  }
}

// True if it is taken.
bool TcpServer::listen_at(const tcp::endpoint& endpoint, std::string& failures) {
  int error = 0;
  Descriptor listener = listen_on_tcp(endpoint, &error);
  if (!listener) {
    failures += (failures.empty() ? "" : "; ") + endpoint_text(endpoint) + ": " + std::strerror(error);
    return error == EADDRINUSE;
  }
  ports_.emplace_back(way_.port);
  listeners_.emplace_back(io_, endpoint.protocol(), listener.get());
  listener.release();
  listens_on_ += (listens_on_.empty() ? "" : ", ") + endpoint_text(endpoint);
  return false;
}

void TcpServer::accept_from_now_on(std::size_t listener) {
  listeners_[listener].async_wait(tcp::acceptor::wait_read, [this, listener](const error_code& error) {
    if (error || listener >= listeners_.size()) return;
    // A bounded number at a time: whoever connects without end does not keep the others waiting.
    for (std::size_t turn = 0; turn < kMostStrange; ++turn)
      if (!accept_one(listener)) break;
    accept_from_now_on(listener);
  });
}

// False if nobody is there.
bool TcpServer::accept_one(std::size_t listener) {
  Descriptor connection(accept4(listeners_[listener].native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!connection) {
    if (errno == EAGAIN) return false;
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return true;  // the caller's matter
    if (lobby_.empty()) {
      roll_.settle({ZC_SYSTEM, format("rank 0 cannot let the others in: accept: %s", std::strerror(errno))});
      return false;
    }
    drop_oldest();
    return true;
  }
  error_code error;
  tcp::socket socket(io_);
  socket.assign(listeners_[listener].local_endpoint(error).protocol(), connection.get(), error);
  if (error) return true;
  connection.release();
  auto caller = std::make_shared<Caller>(io_, std::move(socket));
  const tcp::endpoint from = caller->socket.remote_endpoint(error);
  caller->from = error ? "a caller that has left" : endpoint_text(from);
  lobby_.push_back(caller);
  if (lobby_.size() > kMostStrange) drop_oldest();
  caller->limit.expires_after(std::chrono::nanoseconds(kHandshakeNs));
  caller->limit.async_wait([this, caller](const error_code& stopped) {
    if (stopped || caller->gone) return;
    if (caller->waits) return leave_lobby(caller);
    stranger(caller, "did not say who it is in time");
  });
  greet(caller);
  return true;
}

// Byte by byte, as it were: what begins wrongly goes at once.
void TcpServer::greet(const CallerPtr& caller) {
  auto* const bytes = reinterpret_cast<std::byte*>(&caller->greeting);
  const auto room = asio::buffer(bytes + caller->greeting_bytes, sizeof caller->greeting - caller->greeting_bytes);
  caller->socket.async_read_some(room, [this, caller, bytes](const error_code& error, std::size_t count) {
    if (caller->gone) return;
    if (error) return stranger(caller, "closed before it said who it is");
    caller->greeting_bytes += count;
    const std::uint64_t magic = wire::Greeting::kMagic;
    if (std::memcmp(bytes, &magic, std::min(caller->greeting_bytes, sizeof magic)) != 0)
      return stranger(caller, "said something else");
    if (caller->greeting_bytes < sizeof caller->greeting) return greet(caller);
    judge_greeting(caller);
  });
}

void TcpServer::judge_greeting(const CallerPtr& caller) {
  const wire::Greeting& greeting = caller->greeting;
  if (greeting.version != wire::kVersion) return stranger(caller, "speaks another version of the joining");
  const bool ours = greeting.job_mark == wire::job_mark(request_.job);
  const Tag proof = key_.prove(Proof::greeting, wire::mark_text(greeting.job_mark), greeting.nonce, {});
  if (!equal(proof, greeting.proof)) {
    if (!ours) return stranger(caller, "has another key");
    ++other_keys_;
    last_other_key_ = caller->from;
    return stranger(caller, "speaks for this job, with another key");
  }
  // Those of another job look again later. Closing at once would tell them that their key is wrong.
  if (!ours) {
    caller->waits = true;
    return;
  }
  if (!nonces_.insert(greeting.nonce).second) return stranger(caller, "repeats what another has said");
  challenge(caller);
}

void TcpServer::challenge(const CallerPtr& caller) {
  const Nonce& nonce = caller->greeting.nonce;
  caller->challenge.nonce = make_nonce();
  caller->challenge.proof = key_.prove(Proof::server, request_.job, nonce, caller->challenge.nonce);
  asio::async_write(caller->socket, asio::buffer(&caller->challenge, sizeof caller->challenge),
                    [this, caller](const error_code& error, std::size_t) {
                      if (caller->gone) return;
                      if (error) return stranger(caller, "closed before it proved who it is");
                      hear_answer(caller);
                    });
}

void TcpServer::hear_answer(const CallerPtr& caller) {
  asio::async_read(caller->socket, asio::buffer(&caller->answer, sizeof caller->answer),
                   [this, caller](const error_code& error, std::size_t) {
                     if (caller->gone) return;
                     if (error) return stranger(caller, "closed before it proved who it is");
                     const Nonce &theirs = caller->greeting.nonce, &own = caller->challenge.nonce;
                     if (!equal(caller->answer.proof, key_.prove(Proof::client, request_.job, theirs, own)))
                       return stranger(caller, "did not prove that it has the key");
                     caller->seal.emplace(key_.prove(Proof::session, request_.job, theirs, own), true);
                     hear_hello(caller);
                   });
}

void TcpServer::hear_hello(const CallerPtr& caller) {
  asio::async_read(caller->socket, asio::buffer(caller->hello), [this, caller](const error_code& error, std::size_t) {
    if (caller->gone) return;
    if (error) return stranger(caller, "closed before it said which rank it is");
    const auto message = caller->seal->open(caller->hello);
    const auto hello = message ? wire::read<wire::Hello>(*message) : std::nullopt;
    if (!hello) return stranger(caller, "said something that does not belong to the joining");
    decide(caller, *hello);
  });
}

// Everybody of this job is kept, even who makes the joining fail: that is how they get the verdict.
void TcpServer::decide(const CallerPtr& caller, const wire::Hello& hello) {
  if (const std::optional<Error>& verdict = roll_.verdict()) {
    const Roll::Late late = roll_.call_late(hello);
    if (late != Roll::Late::tell) return leave_lobby(caller);
    heard_.push_back(caller);
    send(caller, wire::Failed::of(verdict->status(), verdict->what()));
  } else {
    const Roll::Place place = roll_.call(hello);
    if (place == Roll::Place::none) return stranger(caller, "said something that does not belong to the joining");
    heard_.push_back(caller);
    wire::Accepted accepted;
    accepted.server = roll_.identity(0);
    send(caller, accepted);
    if (place == Roll::Place::seat) watch(caller, hello.identity.rank);
  }
  caller->limit.cancel();
  std::erase(lobby_, caller);
}

// Until it is told, a rank says nothing more: whatever comes is its end.
void TcpServer::watch(const CallerPtr& caller, std::int32_t rank) {
  caller->socket.async_read_some(asio::buffer(caller->more), [this, caller, rank](const error_code&, std::size_t) {
    if (over_) return;
    const Identity& identity = roll_.identity(static_cast<std::size_t>(rank));
    roll_.settle({ZC_PEER_LOST, rank_text(identity) + " ended while the communicator was being created"});
  });
}

void TcpServer::stranger(const CallerPtr& caller, const char* what) {
  ++strangers_;
  if (strangers_ <= kMostLogged)
    log(ZC_LOG_WARN, "rendezvous on %s: %s %s, and was turned away", listens_on_.c_str(), caller->from.c_str(), what);
  leave_lobby(caller);
}

// By value: a reference may be one of those that are erased.
void TcpServer::leave_lobby(CallerPtr caller) {  // NOLINT(performance-unnecessary-value-param)
  caller->gone = true;
  error_code ignored;
  caller->limit.cancel();
  caller->socket.close(ignored);
  std::erase(lobby_, caller);
}

// One that has proved something stays as long as there is another.
void TcpServer::drop_oldest() {
  const auto unproved = [](const CallerPtr& caller) { return caller->greeting_bytes < sizeof caller->greeting; };
  const auto found = std::find_if(lobby_.begin(), lobby_.end(), unproved);
  const CallerPtr oldest = found != lobby_.end() ? *found : lobby_.front();
  if (oldest->waits) return leave_lobby(oldest);
  stranger(oldest, "was one of too many that did not say who they are");
}

template <class Message>
void TcpServer::send(const CallerPtr& caller, const Message& message) {
  // The one before may still be on its way: each has its own bytes. Asio wants one write at a time.
  caller->sent.push_back(caller->seal->close(wire::reply_of(message)));
  ++unsent_;
  if (caller->sent.size() > 1) return;
  write_next(caller);
}

void TcpServer::write_next(const CallerPtr& caller) {
  asio::async_write(caller->socket, asio::buffer(caller->sent.front()),
                    [this, caller](const error_code& error, std::size_t) {
                      // A connection that failed is heard of by watch().
                      if (error) {
                        unsent_ -= std::exchange(caller->sent, {}).size();
                        return;
                      }
                      --unsent_;
                      caller->sent.erase(caller->sent.begin());
                      if (!caller->sent.empty()) write_next(caller);
                    });
}

// Serves everybody until it is done, the time is over, or the earliest deadline has passed.
void TcpServer::run(FunctionRef<bool()> done, std::int64_t limit_ns) {
  const Deadline limit = Deadline::after(limit_ns);
  const bool gathering = !over_ && !roll_.verdict();
  for (;;) {
    if (done()) return;
    const std::int64_t left_ns = gathering ? std::min(limit.left_ns(), roll_.left_ns()) : limit.left_ns();
    // What came before the deadline counts, even if this rank looks at it later.
    io_.restart();
    if (left_ns == 0) {
      constexpr int kMostPolls = 10'000;
      for (int turn = 0; turn < kMostPolls && !done() && io_.poll_one() > 0; ++turn) {
      }
      return;
    }
    io_.run_one_for(std::chrono::nanoseconds(std::min<std::int64_t>(left_ns, 100'000'000)));
  }
}

void TcpServer::fail() {
  const Error& verdict = *roll_.verdict();
  const wire::Failed message = wire::Failed::of(verdict.status(), verdict.what());
  for (const CallerPtr& caller : heard_) send(caller, message);
  // Without this the others would look for rank 0 until their deadline.
  run([&] { return unsent_ == 0 && roll_.all_here(); },
      std::min(kLateComersNs, std::max(roll_.left_ns(), kSendNs / 8)));
  throw Error(verdict);
}

std::string TcpServer::missing_text() const {
  std::string text = roll_.missing_text(
      format("%s, which listens on %s", rank_text(roll_.identity(0)).c_str(), listens_on_.c_str()), strangers_);
  if (other_keys_ > 0)
    text += format(
        ", of which %zu spoke for this job with another key than rank 0's (fingerprint %s, %s), the last from "
        "%s: give all hosts the same ZC_KEY_FILE",
        other_keys_, key_.fingerprint().c_str(), key_.path().c_str(), last_other_key_.c_str());
  return text;
}

}  // namespace zerocomm::boot
