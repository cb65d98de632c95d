// comm.h: making communicators.
#include "base/config.hpp"
#include "base/log.hpp"
#include "boot/unique_id.hpp"
#include "capi/guard.hpp"
#include "comm/create.hpp"
#include "device/level.hpp"
#include "transport/thread_group.hpp"

#include <cstring>
#include <vector>

namespace {

using namespace zerocomm;
using capi::guard;
using capi::read_struct;

constexpr std::int64_t kDefaultDeadlineNs = 600'000'000'000;
constexpr std::int64_t kDefaultInitDeadlineNs = 60'000'000'000;
constexpr std::int32_t kMostRanks = 1024;

// A duration that the program gave, else a variable in milliseconds, else a default.
std::int64_t choose_deadline(std::int64_t given_ns, const char* variable, std::int64_t fallback_ns) {
  if (given_ns != 0) return given_ns;
  const auto milliseconds = integer_variable(variable, 1, 1'000'000'000);
  return milliseconds ? *milliseconds * 1'000'000 : fallback_ns;
}

// The time to spin is 0 until it is known how many ranks share how many cores.
comm::Settings make_settings(const zc_comm_config& config) {
  const device::LevelChoice& kernels = device::level_choice();
  ZC_REQUIRE(kernels.status == ZC_OK, kernels.status, "%s", kernels.why.c_str());
  comm::Settings settings;
  settings.deadline_ns =
      choose_deadline(capi::check_deadline(config.deadline_ns), "ZC_DEADLINE_MS", kDefaultDeadlineNs);
  settings.spin_ns = config.spin_ns;
  if (const auto nanoseconds = integer_variable("ZC_SPIN_NS", 0, 1'000'000'000); settings.spin_ns == 0 && nanoseconds)
    settings.spin_ns = *nanoseconds == 0 ? ZC_POLL : *nanoseconds;
  ZC_REQUIRE(config.reproducible >= ZC_SWITCH_DEFAULT && config.reproducible <= ZC_OFF, ZC_ARGUMENT,
             "reproducible %d is neither ZC_ON nor ZC_OFF", static_cast<int>(config.reproducible));
  settings.reproducible = config.reproducible != ZC_OFF;
  constexpr std::int32_t kMost = transport::Control::kMostRequests;
  ZC_REQUIRE(config.requests >= 0 && config.requests <= kMost, ZC_ARGUMENT,
             "requests is %d; a rank has 1 to %d of them, 0 for the default", config.requests, kMost);
  if (config.requests != 0) settings.requests = config.requests;
  settings.helper_thread = config.helper_thread != 0;
  settings.selection = comm::Selection::of_environment();
  return settings;
}

void check_ranks(std::int32_t ranks) {
  ZC_REQUIRE(ranks >= 1 && ranks <= kMostRanks, ZC_ARGUMENT, "%d ranks: a communicator has 1 to %d", ranks, kMostRanks);
}

void log_creation(const comm::Comm& comm) {
  log(ZC_LOG_INFO, "rank %d of %d, %s: deadline %lld ms, spin %lld ns", comm.rank(), comm.ranks(), comm.group().name(),
      static_cast<long long>(comm.settings().deadline_ns / 1'000'000), static_cast<long long>(comm.settings().spin_ns));
}

zc_comm* hand_out(std::shared_ptr<zc_comm> comm) {
  zc_comm* const handle = comm.get();
  handle->handle = std::move(comm);
  return handle;
}

}  // namespace

zc_status zc_unique_id_create(zc_unique_id* id) {
  return guard([&] {
    ZC_REQUIRE(id != nullptr, ZC_ARGUMENT, "id is NULL");
    const std::string text = boot::make_unique_job();
    ZC_ASSERT(text.size() < sizeof id->text);
    std::memset(id->text, 0, sizeof id->text);
    std::memcpy(id->text, text.data(), text.size());
    return ZC_OK;
  });
}

zc_status zc_comm_create(const zc_comm_config* config, zc_comm** comm) {
  return guard([&] {
    ZC_REQUIRE(comm != nullptr, ZC_ARGUMENT, "comm is NULL");
    const zc_comm_config mine = read_struct(config, "zc_comm_config");
    comm::ProcessSpec spec;
    spec.settings = make_settings(mine);
    ZC_REQUIRE(mine.init_deadline_ns >= 0, ZC_ARGUMENT, "init_deadline_ns is %lld: making a communicator waits",
               static_cast<long long>(mine.init_deadline_ns));
    spec.init_deadline_ns = choose_deadline(mine.init_deadline_ns, "ZC_INIT_DEADLINE_MS", kDefaultInitDeadlineNs);
    if (mine.topology != nullptr) spec.topology = mine.topology;
    ZC_REQUIRE(mine.ranks != 0 || mine.rank == 0, ZC_ARGUMENT, "rank %d is given without the number of ranks",
               mine.rank);
    if (mine.ranks != 0) check_ranks(mine.ranks);
    ZC_REQUIRE(mine.ranks == 0 || (mine.rank >= 0 && mine.rank < mine.ranks), ZC_ARGUMENT,
               "rank %d is not one from 0 to %d", mine.rank, mine.ranks - 1);
    spec.ranks = mine.ranks;
    spec.rank = mine.rank;
    if (mine.id != nullptr) {
      const std::string text(mine.id->text, strnlen(mine.id->text, sizeof mine.id->text));
      ZC_REQUIRE(boot::is_unique_job(text), ZC_ARGUMENT, "the id is not one of zc_unique_id_create");
      spec.job = text;
    }
    if (mine.store != nullptr) {
      const zc_store store = read_struct(mine.store, "zc_store");
      ZC_REQUIRE(store.put != nullptr && store.get != nullptr && store.remove != nullptr, ZC_ARGUMENT,
                 "a zc_store has the functions put, get and remove; progress alone may be NULL");
      spec.store = store;
    }
    comm::complete(spec);
    check_ranks(spec.ranks);
    *comm = hand_out(comm::create_process_comm(spec));
    log_creation(**comm);
    return ZC_OK;
  });
}

zc_status zc_comm_create_threads(int32_t ranks, const zc_comm_config* config, zc_comm** comms) {
  return guard([&] {
    check_ranks(ranks);
    ZC_REQUIRE(comms != nullptr, ZC_ARGUMENT, "comms is NULL");
    const zc_comm_config mine = read_struct(config, "zc_comm_config");
    ZC_REQUIRE(
        mine.ranks == 0 && mine.rank == 0 && mine.id == nullptr && mine.init_deadline_ns == 0 && mine.store == nullptr,
        ZC_ARGUMENT, "ranks, rank, id, init_deadline_ns and store are for communicators of processes");
    comm::Settings settings = make_settings(mine);
    comm::choose_spin(settings, ranks, usable_cores());
    auto group = std::make_shared<transport::ThreadGroup>(
        mine.topology ? topo::parse_topology(mine.topology, ranks) : topo::one_node(ranks), settings.requests);
    std::vector<std::shared_ptr<zc_comm>> made;
    made.reserve(static_cast<std::size_t>(ranks));
    for (std::int32_t rank = 0; rank < ranks; ++rank) made.push_back(std::make_shared<zc_comm>(group, rank, settings));
    for (std::int32_t rank = 0; rank < ranks; ++rank)
      comms[rank] = hand_out(std::move(made[static_cast<std::size_t>(rank)]));
    log_creation(*comms[0]);
    return ZC_OK;
  });
}
