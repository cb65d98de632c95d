// info.h.
#include "base/config.hpp"
#include "base/memory_limit.hpp"
#include "base/wait.hpp"
#include "boot/way.hpp"
#include "capi/guard.hpp"
#include "comm/selection.hpp"
#include "device/level.hpp"
#include "transport/probe.hpp"
#include "transport/shm_arena.hpp"

#include <zerocomm/info.h>
#include <zerocomm/version.h>

#include <string>

namespace {

using namespace zerocomm;

class Facts {
 public:
  Facts(zc_info_fn callback, void* context) : callback_(callback), context_(context) {}
  void section(const char* name) { section_ = name; }
  void tell(const char* name, const std::string& value, const std::string& why = "") const {
    callback_(context_, section_, name, value.c_str(), why.c_str());
  }

 private:
  zc_info_fn callback_;
  void* context_;
  const char* section_ = "";
};

void tell_build(Facts& facts) {
  facts.section("build");
  facts.tell("version", zc_version_text());
  facts.tell("compiler", __VERSION__);
  facts.tell("transports", "threads, shared memory");
  facts.tell("schedules", "direct");
  facts.tell("TCP rendezvous", boot::has_tcp() ? "yes" : "no", boot::has_tcp() ? "" : boot::kNoTcp);
  for (const char* part : {"CUDA", "NCCL", "UCX", "hwloc"}) facts.tell(part, "no", "not part of this version");
}

void tell_probe(const Facts& facts, const char* name, const transport::Probe& probe) {
  facts.tell(name, probe.works ? "yes" : "no", probe.why);
}

void tell_host(Facts& facts) {
  facts.section("host");
  const int affinity = affinity_cores(), usable = usable_cores();
  facts.tell("usable cores", std::to_string(usable),
             format("affinity %d%s", affinity, usable < affinity ? ", less by the CPU quota of a cgroup" : ""));
  facts.tell("spin before sleeping", format("%lld ns", static_cast<long long>(default_spin_ns(usable, usable))),
             format("with no more ranks than cores; 0 with more. Then the core is offered to others for %lld ns",
                    static_cast<long long>(kYieldNs)));
  const device::LevelChoice& kernels = device::level_choice();
  facts.tell("kernels", kernels.status == ZC_OK ? device::level_name(kernels.level) : "cannot be had", kernels.why);
  const MemoryRoom room = memory_room();
  facts.tell("memory left", format("%llu bytes", static_cast<unsigned long long>(room.left_bytes)), room.limit_text);
  facts.tell("extent of shared memory",
             format("%llu bytes", static_cast<unsigned long long>(transport::ShmArena::default_bytes())),
             "address space, of which only what is used takes memory");
  tell_probe(facts, "sealed memfd", transport::probe_memfd());
  tell_probe(facts, "futex_waitv", transport::probe_futex_waitv());
  tell_probe(facts, "process_vm_readv", transport::probe_private_read());
}

void tell_way(const Facts& facts, const boot::Launch& launch) {
  try {
    const boot::Way way = boot::choose_way([](const char* name) { return text_variable(name); }, launch);
    facts.tell("rendezvous", way.tcp ? "TCP at " + boot::tcp_text(*way.tcp) : "local socket", way.why);
  } catch (const Error& error) {
    facts.tell("rendezvous", "cannot be had", error.what());
  }
}

void tell_launch(Facts& facts) {
  facts.section("launch");
  try {
    const boot::Launch launch = boot::detect_launch([](const char* name) { return text_variable(name); },
                                                    [] { return boot::ancestor_text(boot::kHydraProcess); });
    std::string used;
    for (const std::string& variable : launch.used) used += (used.empty() ? "" : ", ") + variable;
    facts.tell("launcher", boot::launcher_name(launch.launcher), used);
    if (launch.launcher == boot::Launcher::none) return;
    facts.tell("rank", std::to_string(launch.rank));
    facts.tell("ranks", std::to_string(launch.ranks));
    facts.tell("local rank", std::to_string(launch.local_rank));
    facts.tell("local ranks", std::to_string(launch.local_ranks));
    facts.tell("job", launch.job);
    tell_way(facts, launch);
  } catch (const Error& error) {
    facts.tell("launcher", "cannot be told", error.what());
  }
}

void tell_selection(Facts& facts) {
  facts.section("selection");
  try {
    comm::Selection::of_environment().print(
        [&](const char* name, const std::string& value, const std::string& why) { facts.tell(name, value, why); });
  } catch (const Error& error) {
    facts.tell("forms", "cannot be had", error.what());
  }
}

void tell_variables(Facts& facts) {
  facts.section("variables");
  for (const Variable& variable : variables()) {
    const std::optional<std::string> value = text_variable(variable.name);
    facts.tell(variable.name, value ? *value : "not set", format("%s: %s", variable.unit, variable.meaning));
  }
}

}  // namespace

zc_status zc_info(zc_info_fn callback, void* context) {
  return capi::guard([&] {
    ZC_REQUIRE(callback != nullptr, ZC_ARGUMENT, "callback is NULL");
    Facts facts(callback, context);
    tell_build(facts);
    tell_host(facts);
    tell_selection(facts);
    tell_launch(facts);
    tell_variables(facts);
    return ZC_OK;
  });
}
