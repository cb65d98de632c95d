#include "boot/rendezvous.hpp"

#include "boot/rendezvous_client.hpp"
#include "boot/rendezvous_server.hpp"

#include "base/check.hpp"

#include <new>
#include <utility>

namespace zerocomm::boot {

// One of the two sides is there until the second step is done. A rank alone has none.
struct Rendezvous::State {
  std::vector<Identity> ranks;
  Descriptor segment;
  std::unique_ptr<Server> server;
  std::unique_ptr<Client> client;
  std::uint64_t strangers = 0;
  bool joining = true;

  void close() noexcept {
    server.reset();
    client.reset();
    joining = false;
  }
};

namespace {

Descriptor make(FunctionRef<Descriptor(const std::vector<Identity>&)> make_segment,
                const std::vector<Identity>& ranks) {
  Descriptor segment = make_segment(ranks);
  ZC_ASSERT(segment);
  return segment;
}

void check(const JoinRequest& request) {
  ZC_REQUIRE(request.ranks >= 1 && request.ranks <= kMostRanks, ZC_ARGUMENT, "ranks is %d, not in 1..%d", request.ranks,
             kMostRanks);
  ZC_REQUIRE(request.rank >= 0 && request.rank < request.ranks, ZC_ARGUMENT, "rank is %d, not in 0..%d", request.rank,
             request.ranks - 1);
  ZC_REQUIRE(request.ranks == 1 || !request.job.empty(), ZC_ARGUMENT,
             "%d ranks cannot find each other: nothing names their job", request.ranks);
}

}  // namespace

Rendezvous::Rendezvous(std::unique_ptr<State> state) : state_(std::move(state)) {}
Rendezvous::~Rendezvous() = default;

std::unique_ptr<Rendezvous> Rendezvous::join(const JoinRequest& request,
                                             FunctionRef<Descriptor(const std::vector<Identity>&)> make_segment) {
  check(request);
  const Deadline deadline = Deadline::after(request.deadline_ns);
  const Identity own = own_identity(request.rank);
  auto state = std::make_unique<State>();
  if (request.ranks == 1) {
    state->ranks = {own};
    state->segment = make(make_segment, state->ranks);
  } else if (request.rank == 0) {
    state->server = std::make_unique<Server>(request, own, deadline);
    state->server->gather();
    state->ranks = state->server->identities();
    state->strangers = state->server->strangers();
    try {
      state->segment = make(make_segment, state->ranks);
    } catch (const Error& error) {
      state->server->tell_all(error.status(), error.what());
      throw;
    } catch (const std::bad_alloc&) {
      state->server->tell_all(ZC_NO_MEMORY, "rank 0 had no memory while it made the shared segment");
      throw;
    }
    state->server->welcome(state->segment.get());
  } else {
    state->client = std::make_unique<Client>(request, own, deadline);
    state->client->join();
    state->client->receive_welcome(state->ranks, state->segment, state->strangers);
  }
  return std::unique_ptr<Rendezvous>(new Rendezvous(std::move(state)));
}

const std::vector<Identity>& Rendezvous::ranks() const { return state_->ranks; }
const Descriptor& Rendezvous::segment() const { return state_->segment; }
std::uint64_t Rendezvous::strangers() const { return state_->strangers; }

void Rendezvous::confirm() {
  ZC_REQUIRE(state_->joining, ZC_STATE, "this joining is over");
  try {
    if (state_->server) state_->server->confirm();
    if (state_->client) state_->client->confirm();
  } catch (...) {
    state_->close();
    throw;
  }
  state_->close();
}

void Rendezvous::give_up(int status, const std::string& text) noexcept {
  if (!state_->joining) return;
  if (state_->server) state_->server->tell_all(status, text);
  if (state_->client) state_->client->give_up(status, text);
  state_->close();
}

}  // namespace zerocomm::boot
