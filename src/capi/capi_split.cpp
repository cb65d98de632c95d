// comm.h: communicators out of communicators.
#include "base/log.hpp"
#include "capi/guard.hpp"
#include "comm/split.hpp"

namespace {

using namespace zerocomm;
using capi::guard;
using capi::read_struct;

// Everything of one rank's arguments that can be wrong on this rank alone.
void read_arguments(const comm::Comm& parent, const zc_comm_config* config, zc_comm* const* child,
                    comm::SplitSpec& spec) {
  ZC_REQUIRE(child != nullptr, ZC_ARGUMENT, "child is NULL");
  ZC_REQUIRE(spec.color >= 0 || spec.color == ZC_NONE, ZC_ARGUMENT, "colour %d: it is 0 or more, or ZC_NONE",
             spec.color);
  const zc_comm_config mine = read_struct(config, "zc_comm_config");
  ZC_REQUIRE(mine.ranks == 0 && mine.rank == 0 && mine.id == nullptr && mine.init_deadline_ns == 0, ZC_ARGUMENT,
             "ranks, rank, id and init_deadline_ns are for zc_comm_create");
  spec.settings = parent.settings();
  if (capi::check_deadline(mine.deadline_ns) != 0) spec.settings.deadline_ns = mine.deadline_ns;
  if (mine.spin_ns != 0) {
    spec.settings.spin_ns = mine.spin_ns > 0 ? mine.spin_ns : 0;
    spec.settings.yield_ns = mine.spin_ns > 0 ? kYieldNs : 0;
  }
  ZC_REQUIRE(mine.requests == 0 || mine.requests == parent.control().requests(), ZC_ARGUMENT,
             "requests is %d; a child has as many as its parent, %d", mine.requests, parent.control().requests());
  ZC_REQUIRE(mine.reproducible >= ZC_SWITCH_DEFAULT && mine.reproducible <= ZC_OFF, ZC_ARGUMENT,
             "reproducible %d is neither ZC_ON nor ZC_OFF", static_cast<int>(mine.reproducible));
  if (mine.reproducible != ZC_SWITCH_DEFAULT) spec.settings.reproducible = mine.reproducible == ZC_ON;
  spec.settings.helper_thread = mine.helper_thread != 0;
  if (mine.topology != nullptr) spec.topology = mine.topology;
}

}  // namespace

zc_status zc_comm_split(zc_comm* comm, int32_t color, int32_t key, const zc_comm_config* config, zc_comm** child) {
  return guard([&]() -> zc_status {
    ZC_REQUIRE(comm != nullptr, ZC_ARGUMENT, "comm is NULL");
    if (child != nullptr) *child = nullptr;
    comm::SplitSpec spec;
    spec.color = color;
    spec.key = key;
    spec.refused = guard([&] {
      read_arguments(*comm, config, child, spec);
      return ZC_OK;
    });
    if (spec.refused != ZC_OK) spec.refusal = zc_last_error();
    std::shared_ptr<zc_comm> made;
    ZC_TRY(comm::split(*comm, spec, &made));
    if (!made) return ZC_OK;
    log(ZC_LOG_INFO, "rank %d of %d, split off as the rank %d of %d of colour %d", made->rank(), made->ranks(),
        comm->rank(), comm->ranks(), color);
    *child = made.get();
    (*child)->handle = std::move(made);
    return ZC_OK;
  });
}
