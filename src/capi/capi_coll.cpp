// coll.h: the collectives. Arguments that belong to all of them are read here; the rest is in src/comm/native.cpp.
#include "capi/guard.hpp"
#include "capi/handles_schedule.hpp"
#include "comm/native.hpp"

#include <cmath>

namespace {

using namespace zerocomm;
using capi::guard;

// Which options mean something: reductions have a factor and a second dtype; gathers name the latter only to refuse it
// themselves.
enum class Kind { reduction, gather, plain, pair };

comm::Options read_options(const zc_comm* comm, const zc_coll_options* options, Kind kind) {
  ZC_REQUIRE(comm != nullptr, ZC_ARGUMENT, "the communicator is NULL");
  const zc_coll_options mine = capi::read_struct(options, "zc_coll_options");
  if (mine.request != nullptr) *mine.request = nullptr;  // also where the call is refused
  ZC_REQUIRE(mine.stream == nullptr, ZC_UNSUPPORTED,
             "rank %d: a stream was given, and this library was built for host memory only", comm->rank());
  ZC_REQUIRE(mine.traffic >= ZC_TRAFFIC_DEFAULT && mine.traffic <= ZC_TRAFFIC_CONTROL, ZC_ARGUMENT,
             "rank %d: traffic %d is none", comm->rank(), static_cast<int>(mine.traffic));
  ZC_REQUIRE(kind != Kind::pair ||
                 (mine.algorithm == nullptr && mine.schedule == nullptr && mine.reproducible == ZC_SWITCH_DEFAULT),
             ZC_ARGUMENT,
             "rank %d: what goes from one rank to another has no schedule: algorithm, schedule and "
             "reproducible mean nothing here",
             comm->rank());
  ZC_REQUIRE(mine.request != nullptr || mine.tag == 0 || kind == Kind::pair, ZC_ARGUMENT,
             "rank %d: tag %lld without a request: blocking collectives are matched by their order", comm->rank(),
             static_cast<long long>(mine.tag));
  ZC_REQUIRE(mine.deadline_ns >= 0, ZC_ARGUMENT, "rank %d: a collective waits for all ranks and cannot be polled",
             comm->rank());
  comm::Options result;
  result.request = mine.request;
  result.tag = mine.tag;
  result.deadline_ns = mine.deadline_ns;
  result.output_dtype = mine.output_dtype;
  result.traffic = mine.traffic == ZC_TRAFFIC_CONTROL ? ZC_TRAFFIC_CONTROL : ZC_TRAFFIC_DATA;
  const bool named_zero = mine.premul == 0 && __builtin_signbit(mine.premul) != 0;
  result.premul = mine.premul != 0 ? mine.premul : named_zero ? 0.0 : 1.0;
  ZC_REQUIRE(std::isfinite(mine.premul), ZC_ARGUMENT, "rank %d: premul is not finite", comm->rank());
  ZC_REQUIRE(kind == Kind::reduction || (mine.premul == 0 && !named_zero), ZC_ARGUMENT,
             "rank %d: premul is for reductions, and this call reduces nothing", comm->rank());
  ZC_REQUIRE(mine.reproducible >= ZC_SWITCH_DEFAULT && mine.reproducible <= ZC_OFF, ZC_ARGUMENT,
             "rank %d: reproducible %d is neither ZC_ON nor ZC_OFF", comm->rank(), static_cast<int>(mine.reproducible));
  result.schedule.algorithm = mine.algorithm;
  if (mine.schedule != nullptr) result.schedule.schedule = &mine.schedule->value;
  result.schedule.reproducible =
      mine.reproducible == ZC_SWITCH_DEFAULT ? comm->settings().reproducible : mine.reproducible == ZC_ON;
  ZC_REQUIRE((kind != Kind::plain && kind != Kind::pair) || mine.output_dtype == ZC_DTYPE_NONE, ZC_ARGUMENT,
             "rank %d: this call has no second dtype", comm->rank());
  return result;
}

// Runs `body` with the options read, unless the communicator is dead already.
template <class Body>
zc_status collective(zc_comm* comm, const zc_coll_options* options, Kind kind, Body&& body) noexcept {
  return guard([&]() -> zc_status {
    const comm::Options mine = read_options(comm, options, kind);
    ZC_TRY(comm->check_alive());
    return body(mine);
  });
}

void check_counts(const zc_comm* comm, const size_t* counts) {
  ZC_REQUIRE(counts != nullptr, ZC_ARGUMENT, "rank %d: counts is NULL", comm->rank());
}

}  // namespace

zc_status zc_all_reduce(zc_comm* comm, const void* send, void* recv, size_t count, zc_dtype dtype, zc_op op,
                        const zc_coll_options* options) {
  return collective(comm, options, Kind::reduction, [&](const comm::Options& mine) {
    return comm::all_reduce(*comm, send, recv, count, dtype, op, mine);
  });
}

zc_status zc_reduce_scatter(zc_comm* comm, const void* send, void* recv, size_t count, zc_dtype dtype, zc_op op,
                            const zc_coll_options* options) {
  return collective(comm, options, Kind::reduction, [&](const comm::Options& mine) {
    return comm::reduce_scatter(*comm, send, recv, count, nullptr, dtype, op, mine);
  });
}

zc_status zc_reduce_scatter_v(zc_comm* comm, const void* send, void* recv, const size_t* counts, zc_dtype dtype,
                              zc_op op, const zc_coll_options* options) {
  return collective(comm, options, Kind::reduction, [&](const comm::Options& mine) {
    check_counts(comm, counts);
    return comm::reduce_scatter(*comm, send, recv, 0, counts, dtype, op, mine);
  });
}

zc_status zc_all_gather(zc_comm* comm, const void* send, void* recv, size_t count, zc_dtype dtype,
                        const zc_coll_options* options) {
  return collective(comm, options, Kind::gather, [&](const comm::Options& mine) {
    return comm::all_gather(*comm, send, recv, count, nullptr, dtype, mine);
  });
}

zc_status zc_all_gather_v(zc_comm* comm, const void* send, void* recv, const size_t* counts, zc_dtype dtype,
                          const zc_coll_options* options) {
  return collective(comm, options, Kind::gather, [&](const comm::Options& mine) {
    check_counts(comm, counts);
    return comm::all_gather(*comm, send, recv, 0, counts, dtype, mine);
  });
}

zc_status zc_broadcast(zc_comm* comm, void* buffer, size_t count, zc_dtype dtype, int32_t root,
                       const zc_coll_options* options) {
  return collective(comm, options, Kind::plain, [&](const comm::Options& mine) {
    return comm::broadcast(*comm, buffer, count, dtype, root, mine);
  });
}

zc_status zc_reduce(zc_comm* comm, const void* send, void* recv, size_t count, zc_dtype dtype, zc_op op, int32_t root,
                    const zc_coll_options* options) {
  return collective(comm, options, Kind::reduction, [&](const comm::Options& mine) {
    return comm::reduce(*comm, send, recv, count, dtype, op, root, mine);
  });
}

zc_status zc_all_to_all(zc_comm* comm, const void* send, void* recv, size_t count, zc_dtype dtype,
                        const zc_coll_options* options) {
  return collective(comm, options, Kind::plain,
                    [&](const comm::Options& mine) { return comm::all_to_all(*comm, send, recv, count, dtype, mine); });
}

zc_status zc_all_to_all_v(zc_comm* comm, const void* send, const size_t* send_counts, void* recv,
                          const size_t* recv_counts, zc_dtype dtype, const zc_coll_options* options) {
  return collective(comm, options, Kind::plain, [&](const comm::Options& mine) {
    check_counts(comm, send_counts);
    check_counts(comm, recv_counts);
    return comm::all_to_all_v(*comm, send, send_counts, recv, recv_counts, dtype, mine);
  });
}

zc_status zc_gather_to_root(zc_comm* comm, const void* send, void* recv, size_t count, zc_dtype dtype, int32_t root,
                            const zc_coll_options* options) {
  return collective(comm, options, Kind::plain, [&](const comm::Options& mine) {
    return comm::gather_to_root(*comm, send, recv, count, dtype, root, mine);
  });
}

zc_status zc_scatter_from_root(zc_comm* comm, const void* send, void* recv, size_t count, zc_dtype dtype, int32_t root,
                               const zc_coll_options* options) {
  return collective(comm, options, Kind::plain, [&](const comm::Options& mine) {
    return comm::scatter_from_root(*comm, send, recv, count, dtype, root, mine);
  });
}

zc_status zc_send(zc_comm* comm, const void* send, size_t count, zc_dtype dtype, int32_t to,
                  const zc_coll_options* options) {
  return collective(comm, options, Kind::pair,
                    [&](const comm::Options& mine) { return comm::send(*comm, send, count, dtype, to, mine); });
}

zc_status zc_recv(zc_comm* comm, void* recv, size_t count, zc_dtype dtype, int32_t from,
                  const zc_coll_options* options) {
  return collective(comm, options, Kind::pair,
                    [&](const comm::Options& mine) { return comm::recv(*comm, recv, count, dtype, from, mine); });
}

zc_status zc_barrier(zc_comm* comm, const zc_coll_options* options) {
  return collective(comm, options, Kind::plain, [&](const comm::Options& mine) { return comm::barrier(*comm, mine); });
}
