#include "comm/create.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/config.hpp"
#include "base/memory.hpp"
#include "boot/launch.hpp"
#include "boot/rendezvous.hpp"
#include "boot/store.hpp"
#include "comm/call.hpp"
#include "transport/shm_group.hpp"

#include <zerocomm/version.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <map>
#include <mutex>

namespace zerocomm::comm {
namespace {

// How many communicators this rank has begun to make in this job: ranks match them by order.
std::uint64_t next_ordinal(const std::string& job, std::int32_t rank) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::int32_t>, std::uint64_t> ordinals;
  const std::lock_guard lock(mutex);
  return ordinals[{job, rank}]++;
}

// Cores that the ranks have together: the union of their masks, less where a quota binds.
int cores_of(const std::vector<boot::Identity>& ranks) {
  std::array<std::uint64_t, 16> all{};
  int quota = 0;
  const auto count = [](const std::array<std::uint64_t, 16>& mask) {
    int cores = 0;
    for (const std::uint64_t word : mask) cores += std::popcount(word);
    return cores;
  };
  for (const boot::Identity& rank : ranks) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] |= rank.cpu_mask[i];
    if (rank.usable_cores < count(rank.cpu_mask))
      quota = quota == 0 ? rank.usable_cores : std::min(quota, rank.usable_cores);
  }
  const int cores = std::max(count(all), 1);
  return quota > 0 ? std::min(cores, quota) : cores;
}

std::uint64_t hash_text(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

std::uint64_t arena_bytes() {
  const auto asked = integer_variable("ZC_SHM_BYTES", 1 << 20, std::int64_t{1} << 46);
  return asked ? static_cast<std::uint64_t>(*asked) / kPageBytes * kPageBytes : transport::ShmArena::default_bytes();
}

enum class PrivateCopy : std::uint8_t { choose, staging, read };
struct CopyName {
  const char* name;
  PrivateCopy copy;
};
constexpr CopyName kCopies[] = {
    {"auto", PrivateCopy::choose}, {"staging", PrivateCopy::staging}, {"read", PrivateCopy::read}};

const CopyName& asked_copy() {
  const std::optional<std::string> text = text_variable("ZC_COPY");
  if (!text) return kCopies[0];
  for (const CopyName& row : kCopies)
    if (*text == row.name) return row;
  throw Error(ZC_ARGUMENT, format("the variable ZC_COPY is \"%.40s\"; it takes auto, staging or read", text->c_str()));
}

// All ranks try, and all learn what came of it. Throws Error if reading was asked for and some rank cannot.
void choose_private_copy(zc_comm& comm, transport::ShmGroup& group, const CopyName& asked, std::int64_t deadline_ns) {
  group.probe_private_reads(asked.copy != PrivateCopy::staging);
  comm.control().ring_all();
  std::int32_t next = 0;
  const auto ready = [&]() -> int {
    while (next < comm.ranks() && comm.control().rank(next).private_read.verdict.load() != 0) ++next;
    return next == comm.ranks();
  };
  const auto name_culprit = [&](std::int32_t* culprit, char* text, std::size_t capacity_bytes) {
    *culprit = next;
    std::snprintf(text, capacity_bytes, "rank %d has not said what memory it can read", next);
  };
  FunctionRef<void(std::int32_t*, char*, std::size_t)> blame = name_culprit;
  WaitSpec spec;
  spec.deadline_ns = deadline_ns;
  spec.blame = &blame;
  spec.label = "zc_comm_create";
  if (const zc_status status = comm.wait(ready, spec); status != ZC_OK) throw Error(status, zc_last_error());
  ZC_REQUIRE(asked.copy != PrivateCopy::read || group.can_read_private(), ZC_UNSUPPORTED,
             "rank %d: ZC_COPY asks for process_vm_readv, and that cannot be had: %s", comm.rank(),
             group.private_copy().c_str());
  comm.private_copy = group.private_copy();
}

// Where the kernel cannot vouch for the others, the ranks meet twice: first to agree and to see that they are on one
// host, then there, under a name that they have drawn for that. Shortens the deadline by what it took.
boot::Meeting meet(const ProcessSpec& spec, boot::JoinRequest& request) {
  if (spec.ranks == 1 || !(spec.store || spec.way.tcp)) return {};
  const Deadline deadline = Deadline::after(request.deadline_ns);
  if (spec.store) request.progress = boot::progress_of(*spec.store, spec.rank);
  boot::Meeting meeting =
      spec.store ? boot::meet_over_store(request, *spec.store) : boot::meet_over_tcp(request, *spec.way.tcp);
  request.job = meeting.job;
  request.deadline_ns = deadline.left_ns();
  return meeting;
}

}  // namespace

void complete(ProcessSpec& spec) {
  if (spec.ranks == 1 && spec.job.empty()) spec.job = "alone";  // nobody to meet
  if (spec.store && spec.ranks != 0 && spec.job.empty()) spec.job = "store";
  const auto lookup = [](const char* name) { return text_variable(name); };
  boot::Launch launch;
  if (spec.ranks == 0 || spec.job.empty()) {
    launch = boot::detect_launch(lookup, [] { return boot::ancestor_text(boot::kHydraProcess); });
    ZC_REQUIRE(launch.launcher != boot::Launcher::none, ZC_ARGUMENT,
               "no launcher: start the ranks with zc run, srun, torchrun or mpirun, or give %s in zc_comm_config",
               spec.ranks == 0 ? "ranks, rank and id" : "an id");
  }
  if (spec.ranks == 0) {
    spec.ranks = launch.ranks;
    spec.rank = launch.rank;
  }
  if (!spec.store && spec.ranks > 1) spec.way = boot::choose_way(lookup, launch);
  const bool everywhere = spec.store || spec.way.tcp;
  if (spec.job.empty())
    spec.job =
        std::string(boot::launcher_name(launch.launcher)) + " " + (everywhere ? launch.job_everywhere : launch.job);
}

void choose_spin(Settings& settings, std::int32_t ranks, int cores) {
  settings.yield_ns = settings.spin_ns < 0 ? 0 : kYieldNs;
  if (settings.spin_ns == 0) settings.spin_ns = default_spin_ns(ranks, cores);
  if (settings.spin_ns < 0) settings.spin_ns = 0;
}

std::shared_ptr<zc_comm> create_process_comm(const ProcessSpec& spec) {
  const std::uint64_t ordinal = next_ordinal(spec.job, spec.rank);  // before anything that may fail on one rank alone
  topo::Topology topology =
      spec.topology.empty() ? topo::one_node(spec.ranks) : topo::parse_topology(spec.topology, spec.ranks);
  boot::JoinRequest request;
  request.job = format("%s #%llu", spec.job.c_str(), static_cast<unsigned long long>(ordinal));
  request.rank = spec.rank;
  request.ranks = spec.ranks;
  const CopyName& copy = asked_copy();
  request.agreed_text = format(
      "version %d, control segment of %zu bytes, %d requests, ZC_COPY %s, reproducible %s, topology \"%s\", "
      "selection #%016llx",
      ZC_VERSION, transport::Control::bytes(spec.ranks, spec.settings.requests), spec.settings.requests, copy.name,
      spec.settings.reproducible ? "on" : "off", spec.topology.c_str(),
      static_cast<unsigned long long>(spec.settings.selection.fingerprint()));
  request.agreed = hash_text(request.agreed_text);
  request.deadline_ns = spec.init_deadline_ns;
  const std::uint64_t bytes = arena_bytes();
  const boot::Meeting meeting = meet(spec, request);
  const std::unique_ptr<boot::Rendezvous> rendezvous =
      boot::Rendezvous::join(request, [&](const std::vector<boot::Identity>&) {
        return transport::ShmGroup::create(spec.ranks, spec.settings.requests, bytes);
      });
  std::shared_ptr<zc_comm> comm;
  try {
    auto group = std::make_shared<transport::ShmGroup>(rendezvous->segment(), std::move(topology), spec.rank);
    transport::ShmGroup* const shared = group.get();
    Settings settings = spec.settings;
    choose_spin(settings, spec.ranks, cores_of(rendezvous->ranks()));
    comm = std::make_shared<zc_comm>(std::move(group), spec.rank, settings);
    comm->strangers = meeting.strangers + rendezvous->strangers();
    comm->stand(transport::Keeper::of_process());
    rendezvous->confirm();
    choose_private_copy(*comm, *shared, copy, spec.init_deadline_ns);
  } catch (const std::exception& failure) {
    const auto* error = dynamic_cast<const Error*>(&failure);
    rendezvous->give_up(error != nullptr ? error->status() : ZC_INTERNAL, failure.what());
    if (comm) comm->detach();
    throw;
  }
  return comm;
}

}  // namespace zerocomm::comm
