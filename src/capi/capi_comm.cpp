// comm.h and mem.h: communicators, waits, progress, memory.
#include "base/float_env.hpp"
#include "capi/guard.hpp"
#include "comm/call.hpp"
#include "comm/comm.hpp"
#include "comm/progress.hpp"
#include "device/convert.hpp"
#include "device/reduce.hpp"

#include <zerocomm/mem.h>

#include <cstdio>
#include <cstring>

namespace {

using namespace zerocomm;
using capi::guard;
using capi::read_struct;
using capi::write_struct;

const zc_comm& checked(const zc_comm* comm) {
  ZC_REQUIRE(comm != nullptr, ZC_ARGUMENT, "the communicator is NULL");
  return *comm;
}

template <class Value>
zc_status put(Value* to, Value value, const char* name) {
  ZC_REQUIRE(to != nullptr, ZC_ARGUMENT, "%s is NULL", name);
  *to = value;
  return ZC_OK;
}

}  // namespace

zc_status zc_comm_destroy(zc_comm* comm) {
  if (comm == nullptr) return ZC_OK;
  return guard([&]() -> zc_status {
    ZC_TRY(comm->check_process());
    comm->detach();
    const std::shared_ptr<comm::Comm> last = std::move(comm->handle);
    return ZC_OK;
  });
}

zc_status zc_comm_rank(const zc_comm* comm, int32_t* rank) {
  return guard([&] { return put(rank, checked(comm).rank(), "rank"); });
}

zc_status zc_comm_size(const zc_comm* comm, int32_t* ranks) {
  return guard([&] { return put(ranks, checked(comm).ranks(), "ranks"); });
}

zc_status zc_comm_node(const zc_comm* comm, int32_t rank, int32_t* node) {
  return guard([&] {
    const auto& nodes = checked(comm).group().topology().node_of_rank;
    ZC_REQUIRE(rank >= 0 && rank < comm->ranks(), ZC_ARGUMENT, "rank %d is not one from 0 to %d", rank,
               comm->ranks() - 1);
    return put(node, nodes[static_cast<std::size_t>(rank)], "node");
  });
}

zc_status zc_comm_status(const zc_comm* comm) {
  return guard([&] { return checked(comm).check_alive(); });
}

zc_status zc_comm_abort(zc_comm* comm) {
  return guard([&]() -> zc_status {
    ZC_TRY(checked(comm).check_process());
    comm->abort();
    return ZC_OK;
  });
}

zc_status zc_comm_get_info(const zc_comm* comm, zc_comm_info* info) {
  return guard([&] {
    zc_comm_info mine{};
    mine.ranks = checked(comm).ranks();
    mine.rank = comm->rank();
    mine.nodes = static_cast<std::int32_t>(comm->group().topology().node_names.size());
    mine.deadline_ns = comm->settings().deadline_ns;
    mine.spin_ns = comm->settings().spin_ns;
    mine.reproducible = comm->settings().reproducible ? 1 : 0;
    mine.transport = comm->group().name();
    mine.schedule = "direct";
    mine.private_copy = comm->private_copy.c_str();
    mine.strangers = comm->strangers;
    write_struct(mine, info, "zc_comm_info");
    return ZC_OK;
  });
}

zc_status zc_comm_flight(const zc_comm* comm, int32_t rank, uint64_t back, zc_flight_record* record) {
  return guard([&]() -> zc_status {
    ZC_TRY(checked(comm).check_process());
    ZC_REQUIRE(rank >= 0 && rank < comm->ranks(), ZC_ARGUMENT, "rank %d is not one from 0 to %d", rank,
               comm->ranks() - 1);
    const transport::FlightRing& ring = comm->control().flight(rank);
    const std::uint64_t last = ring.last();
    transport::FlightRecord found;
    if (back >= last || back >= transport::kFlightRecords || !ring.read(last - back, &found))
      return fail(ZC_AGAIN, "rank %d has no record %llu back", rank, static_cast<unsigned long long>(back));
    zc_flight_record mine{};
    mine.number = found.number;
    mine.begin_ns = found.begin_ns;
    mine.end_ns = found.end_ns;
    mine.status = static_cast<zc_status>(found.status);
    mine.value = found.call;
    if (found.kind == 0)
      std::memcpy(mine.what, found.label, sizeof found.label);
    else if (found.is_keyed())
      std::snprintf(mine.what, sizeof mine.what, "%s, tag %lld", comm::describe_brief(found.brief).c_str(),
                    static_cast<long long>(found.tag()));
    else
      std::snprintf(mine.what, sizeof mine.what, "%s", comm::describe_brief(found.brief).c_str());
    write_struct(mine, record, "zc_flight_record");
    return ZC_OK;
  });
}

zc_status zc_comm_note(zc_comm* comm, const char* label, uint64_t value) {
  return guard([&]() -> zc_status {
    ZC_TRY(checked(comm).check_process());
    ZC_REQUIRE(label != nullptr, ZC_ARGUMENT, "label is NULL");
    comm->note(label, value);
    return ZC_OK;
  });
}

zc_status zc_comm_stats(const zc_comm* comm, zc_stats* stats) {
  return guard([&] {
    write_struct(checked(comm).counters().read(), stats, "zc_stats");
    return ZC_OK;
  });
}

zc_status zc_comm_stats_reset(zc_comm* comm) {
  return guard([&] {
    checked(comm).counters().reset();
    return ZC_OK;
  });
}

zc_status zc_comm_ledger(const zc_comm* comm, zc_ledger* ledger) {
  return guard([&] {
    zc_ledger mine{};
    mine.control_bytes = checked(comm).word_bytes.load() + comm->group().control_bytes(comm->rank());
    mine.window_bytes = comm->window_bytes.load();
    mine.memory_bytes = comm->memory_bytes.load();
    mine.total_bytes = mine.control_bytes + mine.window_bytes + mine.memory_bytes;
    write_struct(mine, ledger, "zc_ledger");
    return ZC_OK;
  });
}

zc_status zc_comm_wait(zc_comm* comm, zc_ready_fn ready, void* context, const zc_wait_options* options) {
  return guard([&] {
    checked(comm);
    ZC_REQUIRE(ready != nullptr, ZC_ARGUMENT, "rank %d: ready is NULL", comm->rank());
    const zc_wait_options mine = read_struct(options, "zc_wait_options");
    capi::check_deadline(mine.deadline_ns);
    const auto name_culprit = [&](std::int32_t* rank, char* text, std::size_t capacity_bytes) {
      mine.blame(context, rank, text, capacity_bytes);
    };
    FunctionRef<void(std::int32_t*, char*, std::size_t)> blame = name_culprit;
    const auto ask_for_more = [&] { return mine.extend_ns(context); };  // named: a FunctionRef keeps nothing alive
    FunctionRef<std::int64_t()> extend_ns = ask_for_more;
    ZC_TRY(comm->check_alive());
    return comm->wait([&] { return ready(context); }, {mine.deadline_ns, mine.label, mine.blame ? &blame : nullptr,
                                                       false, mine.extend_ns ? &extend_ns : nullptr});
  });
}

zc_status zc_progress_add(zc_comm* comm, zc_progress_fn progress, void* context, zc_progress** handle) {
  return guard([&] {
    ZC_REQUIRE(progress != nullptr && handle != nullptr, ZC_ARGUMENT, "progress or handle is NULL");
    *handle = comm::add_progress(progress, context, &checked(comm).control().header());
    return ZC_OK;
  });
}

zc_status zc_progress_remove(zc_progress* handle) {
  if (handle != nullptr) comm::remove_progress(handle);
  return ZC_OK;
}

zc_status zc_mem_alloc(zc_comm* comm, size_t bytes, void** memory) {
  return guard([&]() -> zc_status {
    ZC_TRY(checked(comm).check_process());
    ZC_REQUIRE(memory != nullptr, ZC_ARGUMENT, "rank %d: memory is NULL", comm->rank());
    auto segment = comm->group().allocate(comm->rank(), bytes == 0 ? 1 : bytes, "zc_mem_alloc");
    void* address = segment->address;
    const std::lock_guard lock(comm->memory_mutex);
    comm->memory_bytes.fetch_add(segment->bytes);
    comm->memory.emplace(address, std::move(segment));
    *memory = address;
    return ZC_OK;
  });
}

zc_status zc_mem_free(zc_comm* comm, void* memory) {
  if (memory == nullptr) return ZC_OK;
  return guard([&]() -> zc_status {
    ZC_TRY(checked(comm).check_process());
    const std::lock_guard lock(comm->memory_mutex);
    const auto found = comm->memory.find(memory);
    ZC_REQUIRE(found != comm->memory.end(), ZC_ARGUMENT, "rank %d: %p is not memory of zc_mem_alloc on this rank",
               comm->rank(), memory);
    comm->memory_bytes.fetch_sub(found->second->bytes);
    comm->memory.erase(found);
    return ZC_OK;
  });
}

zc_status zc_cast(const void* source, zc_dtype source_dtype, void* destination, zc_dtype destination_dtype,
                  size_t count) {
  return guard([&]() -> zc_status {
    ZC_REQUIRE(count == 0 || (source != nullptr && destination != nullptr), ZC_ARGUMENT,
               "source or destination is NULL");
    const DefaultFloatEnv environment;
    return device::convert(source_dtype, destination_dtype, source, destination, count);
  });
}

zc_status zc_reduce_local(const void* const* inputs, size_t input_count, void* output, size_t count, zc_dtype dtype,
                          zc_dtype output_dtype, zc_op op, int32_t accumulate) {
  return guard([&]() -> zc_status {
    ZC_REQUIRE(inputs != nullptr && input_count > 0 && (output != nullptr || count == 0), ZC_ARGUMENT,
               "inputs or output is NULL, or there is no input");
    ZC_REQUIRE(op != ZC_OP_PREMUL_SUM, ZC_UNSUPPORTED,
               "premul_sum needs a factor, which a local reduction does not take");
    const zc_dtype to = output_dtype == ZC_DTYPE_NONE ? dtype : output_dtype;
    ZC_TRY(device::check_reduce(dtype, to, op));
    device::ReduceArgs args;
    args.accumulate = accumulate != 0;
    const DefaultFloatEnv environment;
    device::find_reduce(dtype, to, op)(inputs, input_count, output, count, args);
    return ZC_OK;
  });
}
