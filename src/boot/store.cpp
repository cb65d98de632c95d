#include "boot/store.hpp"

#include "boot/local_socket.hpp"
#include "boot/rendezvous_verdict.hpp"
#include "boot/roll.hpp"
#include "boot/unique_id.hpp"

#include "base/clock.hpp"
#include "base/log.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

// Rank 0 puts a number that it has drawn (key "zero"); each other rank answers with one of its own and with rank 0's
// ("hello/<rank>"); rank 0 answers each with that rank's ("verdict/<rank>"). So nobody believes what was left by
// others.
namespace zerocomm::boot {
namespace {

constexpr std::int64_t kGraceNs = 1'000'000'000;       // rank 0 is the one that says who is missing
constexpr std::int64_t kLateComersNs = 1'000'000'000;  // after an error, to tell them
constexpr std::int64_t kProgressNs = 1'000'000;

using Drawn = std::array<std::uint64_t, 2>;

struct Zero {
  std::uint64_t magic = wire::kMagic;
  Drawn zero{};
};
struct StoreHello {
  Drawn zero{}, own{};
  wire::Hello hello;
};
struct StoreVerdict {
  Drawn own{};
  wire::Met met;  // good if its job is no empty text, else
  wire::Failed failed;
};
static_assert(wire::Plain<Zero> && wire::Plain<StoreHello> && wire::Plain<StoreVerdict>);
static_assert(sizeof(StoreHello) <= ZC_STORE_VALUE_BYTES && sizeof(StoreVerdict) <= ZC_STORE_VALUE_BYTES);

std::uint64_t store_job_hash(const std::string& job) noexcept { return hash_text(job, 0xc0ac29b7c97c50ddu); }

// Nobody else must guess it, but that is no secret: the store is the caller's.
Drawn draw() {
  const std::string text = make_unique_job();
  return {hash_text(text, 1), hash_text(text, 2)};
}

// The caller's functions, with keys of this joining, and with errors that say what was done.
class Store {
 public:
  Store(const JoinRequest& request, const zc_store& store)
      : request_(request),
        store_(store),
        prefix_(format("zerocomm/%016llx%016llx/",
                       static_cast<unsigned long long>(hash_text(request.job, 0xbe5466cf34e90c6cu)),
                       static_cast<unsigned long long>(hash_text(request.job, 0x9b30952c2f6a1e5au)))) {}

  std::string key(const char* name) const { return prefix_ + name; }
  std::string key(const char* name, std::size_t rank) const { return prefix_ + name + "/" + std::to_string(rank); }

  template <class Value>
  void put(const std::string& key, const Value& value) const {
    check("put", key, store_.put(store_.context, key.c_str(), &value, sizeof value));
  }
  // Nothing: it is not there, or none of ours.
  template <class Value>
  std::optional<Value> get(const std::string& key) const {
    std::array<std::byte, ZC_STORE_VALUE_BYTES> room;
    std::size_t value_bytes = 0;
    const zc_status status = store_.get(store_.context, key.c_str(), room.data(), room.size(), &value_bytes);
    if (status == ZC_AGAIN) return std::nullopt;
    check("get", key, status);
    if (value_bytes != sizeof(Value)) return std::nullopt;
    Value value;
    std::memcpy(&value, room.data(), sizeof value);
    return value;
  }
  void remove(const std::string& key) const noexcept {
    const zc_status status = store_.remove(store_.context, key.c_str());
    if (status != ZC_OK)
      log(ZC_LOG_WARN, "rank %d: the store's remove of '%s' returned %s", request_.rank, key.c_str(),
          zc_status_name(status));
  }
  // Between two looks.
  void wait(Pauses& pauses, std::int64_t left_ns) const {
    if (request_.progress)
      if (auto error = request_.progress()) throw Error(*error);
    pauses.sleep(request_.progress ? std::min(kProgressNs, left_ns) : left_ns);
  }

 private:
  void check(const char* what, const std::string& key, zc_status status) const {
    ZC_REQUIRE(status == ZC_OK, ZC_TRANSPORT, "rank %d: the store's %s of '%s' returned %s", request_.rank, what,
               key.c_str(), zc_status_name(status));
  }

  const JoinRequest& request_;
  const zc_store& store_;
  std::string prefix_;
};

// Rank 0's side.
class StoreServer {
 public:
  StoreServer(const JoinRequest& request, const zc_store& store)
      : store_(request, store),
        deadline_(Deadline::after(request.deadline_ns)),
        roll_(request, own_identity(0), deadline_, store_job_hash(request.job), false),
        seen_(roll_.ranks()) {}

  Meeting meet() {
    try {
      gather();
    } catch (const Error& error) {
      roll_.settle(error);
    }
    if (!roll_.verdict() && !roll_.all_here())
      roll_.settle({ZC_TIMEOUT, roll_.missing_text(rank_text(roll_.identity(0)) + " over the caller's store", 0)});
    if (!roll_.verdict())
      if (auto error = several_hosts(roll_.identities())) roll_.settle(*std::move(error));
    if (roll_.verdict()) fail();
    StoreVerdict verdict;
    const std::string job = make_unique_job();
    wire::put_text(verdict.met.job, job);
    for (std::size_t rank = 1; rank < roll_.ranks(); ++rank) tell(rank, verdict);
    store_.remove(store_.key("zero"));
    return {job, 0};
  }

 private:
  void gather() {
    Zero zero;
    zero.zero = zero_;
    store_.put(store_.key("zero"), zero);
    for (Pauses pauses;;) {
      const std::int64_t left_ns = roll_.left_ns();  // what came before the deadline counts
      for (std::size_t rank = 1; rank < roll_.ranks() && !roll_.verdict(); ++rank) look(rank);
      if (roll_.verdict() || roll_.all_here() || left_ns == 0) return;
      store_.wait(pauses, left_ns);
    }
  }

  // True if a rank is heard of for the first time.
  bool look(std::size_t rank) {
    if (seen_[rank]) return false;
    const auto found = store_.get<StoreHello>(store_.key("hello", rank));
    if (!found || found->zero != zero_ || found->hello.identity.rank != static_cast<std::int32_t>(rank)) return false;
    seen_[rank] = found->own;
    if (roll_.verdict())
      roll_.call_late(found->hello);
    else
      roll_.call(found->hello);
    return true;
  }

  void tell(std::size_t rank, StoreVerdict verdict) const {
    if (!seen_[rank]) return;
    verdict.own = *seen_[rank];
    store_.put(store_.key("verdict", rank), verdict);
  }

  // Best effort: the store may be what has failed.
  [[noreturn]] void fail() {
    const Error error = *roll_.verdict();
    StoreVerdict verdict;
    verdict.failed = wire::Failed::of(error.status(), error.what());
    try {
      for (std::size_t rank = 1; rank < roll_.ranks(); ++rank) tell(rank, verdict);
      const Deadline limit = Deadline::after(std::min(kLateComersNs, roll_.left_ns()));
      for (Pauses pauses; !roll_.all_here() && limit.left_ns() > 0; store_.wait(pauses, limit.left_ns()))
        for (std::size_t rank = 1; rank < roll_.ranks(); ++rank)
          if (look(rank)) tell(rank, verdict);
    } catch (const Error& again) {
      log(ZC_LOG_WARN, "rank 0 could not tell all others why it failed: %s", again.what());
    }
    store_.remove(store_.key("zero"));
    throw Error(error);
  }

  Store store_;
  Deadline deadline_;
  Roll roll_;
  Drawn zero_ = draw();
  std::vector<std::optional<Drawn>> seen_;  // what each has drawn
};

Meeting meet_as_other(const JoinRequest& request, const zc_store& caller) {
  const Store store(request, caller);
  const Deadline deadline = Deadline::after(request.deadline_ns);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() - kGraceNs;
  const Deadline answer = Deadline::after(std::min(deadline.left_ns(), kMost) + kGraceNs);
  const auto rank = static_cast<std::size_t>(request.rank);
  StoreHello hello;
  hello.own = draw();
  bool said = false;
  for (Pauses pauses;;) {
    const std::int64_t left_ns = said ? answer.left_ns() : deadline.left_ns();
    const auto zero = store.get<Zero>(store.key("zero"));
    if (zero && zero->magic == wire::kMagic && (!said || zero->zero != hello.zero)) {
      hello.zero = zero->zero;
      hello.hello =
          wire::Hello::of(request, own_identity(request.rank), store_job_hash(request.job), deadline.left_ns());
      store.put(store.key("hello", rank), hello);
      said = true;
    }
    const auto verdict = store.get<StoreVerdict>(store.key("verdict", rank));
    if (verdict && verdict->own == hello.own) {
      store.remove(store.key("verdict", rank));
      store.remove(store.key("hello", rank));
      if (verdict->met.job[0] == '\0') throw verdict->failed.error();
      return {wire::get_text(verdict->met.job), verdict->met.strangers};
    }
    if (left_ns == 0) {
      if (said) store.remove(store.key("hello", rank));
      throw Error(ZC_TIMEOUT, format("rank %d: rank 0 did not %s within %s: %s", request.rank, said ? "answer" : "come",
                                     seconds_text(request.deadline_ns).c_str(),
                                     said ? ("the store has no '" + store.key("verdict", rank) + "' of it").c_str()
                                          : ("the store has no '" + store.key("zero") + "'").c_str()));
    }
    store.wait(pauses, left_ns);
  }
}

}  // namespace

Meeting meet_over_store(const JoinRequest& request, const zc_store& store) {
  return request.rank == 0 ? StoreServer(request, store).meet() : meet_as_other(request, store);
}

std::function<std::optional<Error>()> progress_of(const zc_store& store, std::int32_t rank) {
  if (store.progress == nullptr) return {};
  return [store, rank]() -> std::optional<Error> {
    const zc_status status = store.progress(store.context);
    if (status == ZC_OK) return std::nullopt;
    return Error(ZC_TRANSPORT, format("rank %d: the store's progress returned %s", rank, zc_status_name(status)));
  };
}

}  // namespace zerocomm::boot
