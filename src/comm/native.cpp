#include "comm/native.hpp"

#include "base/check.hpp"
#include "comm/blocks.hpp"
#include "comm/collective.hpp"
#include "comm/requests.hpp"
#include "comm/scheduled.hpp"
#include "comm/transfer.hpp"
#include "device/reduce.hpp"

#include <bit>

namespace zerocomm::comm {
namespace {

void check_pointer(const Comm& comm, const char* what, const void* pointer, std::size_t bytes, zc_dtype dtype) {
  if (bytes == 0) return;
  ZC_REQUIRE(pointer != nullptr, ZC_ARGUMENT, "rank %d: %s is NULL, and %zu bytes are expected there", comm.rank(),
             what, bytes);
  ZC_REQUIRE(bytes <= UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(pointer), ZC_ARGUMENT,
             "rank %d: %s = %p with %zu bytes ends beyond all addresses", comm.rank(), what, pointer, bytes);
  ZC_REQUIRE(reinterpret_cast<std::uintptr_t>(pointer) % zc_dtype_bytes(dtype) == 0, ZC_ALIGNMENT,
             "rank %d: %s = %p is not aligned to an element of %s", comm.rank(), what, pointer, zc_dtype_name(dtype));
}

void check_dtype(const Comm& comm, zc_dtype dtype) {
  ZC_REQUIRE(zc_dtype_bytes(dtype) != 0, ZC_ARGUMENT, "rank %d: dtype %d is none", comm.rank(),
             static_cast<int>(dtype));
}

// Throws unless the two ranges are disjoint, exactly in place or empty. Returns what CallRecord::in_place says of them.
std::uint32_t check_aliasing(const Comm& comm, const char* name, const void* send, std::size_t send_bytes,
                             const void* recv, std::size_t recv_bytes, const void* send_in_place,
                             const void* recv_in_place, const char* hint) {
  const Relation relation = relate(send, send_bytes, recv, recv_bytes, send_in_place, recv_in_place);
  ZC_REQUIRE(relation != Relation::overlapping, ZC_ARGUMENT,
             "rank %d: %s: send [%p, %p) and recv [%p, %p) overlap; they must be disjoint, or in place with send %p "
             "and recv %p%s",
             comm.rank(), name, send, static_cast<const void*>(static_cast<const std::byte*>(send) + send_bytes), recv,
             static_cast<const void*>(static_cast<const std::byte*>(recv) + recv_bytes), send_in_place, recv_in_place,
             hint);
  return relation == Relation::empty ? transport::CallRecord::kEitherPlace : relation == Relation::in_place;
}

transport::CallRecord record(Collective collective, std::size_t count, zc_dtype dtype) {
  transport::CallRecord call;
  call.collective = static_cast<std::uint32_t>(collective);
  call.count = count;
  call.dtype = dtype;
  return call;
}

Operation operation(const transport::CallRecord& call, const Options& options) {
  Operation what;
  what.call = call;
  what.deadline_ns = options.deadline_ns;
  what.traffic = options.traffic;
  what.held = options.held;
  return what;
}

void check_root(const Comm& comm, std::int32_t root) {
  ZC_REQUIRE(root >= 0 && root < comm.ranks(), ZC_ARGUMENT, "rank %d: root %d is not a rank from 0 to %d", comm.rank(),
             root, comm.ranks() - 1);
}

// A reduction's dtypes and operation, checked and written into its record. Returns the output dtype.
zc_dtype record_reduction(const Comm& comm, transport::CallRecord* call, zc_op op, const Options& options) {
  const auto dtype = static_cast<zc_dtype>(call->dtype);
  check_dtype(comm, dtype);
  const zc_dtype output = options.output_dtype == ZC_DTYPE_NONE ? dtype : options.output_dtype;
  const zc_status status = device::check_reduce(dtype, output, op);
  ZC_REQUIRE(status == ZC_OK, status, "rank %d: %s", comm.rank(), zc_last_error());
  call->output_dtype = output;
  call->op = op;
  ZC_REQUIRE(
      op == ZC_OP_PREMUL_SUM || std::bit_cast<std::uint64_t>(options.premul) == std::bit_cast<std::uint64_t>(1.0),
      ZC_ARGUMENT, "rank %d: premul is the factor of ZC_OP_PREMUL_SUM, and the operation is %s", comm.rank(),
      zc_op_name(op));
  call->premul_bits = op == ZC_OP_PREMUL_SUM ? std::bit_cast<std::uint64_t>(options.premul) : 0;
  return output;
}

// Buffers of a call, checked: pointers, alignment, overlap. A rank whose buffer is empty or not used fits both places.
struct Buffers {
  const char* name;
  const void* send = nullptr;
  std::size_t send_bytes = 0;
  void* recv = nullptr;
  std::size_t recv_bytes = 0;
  zc_dtype output_dtype = ZC_DTYPE_NONE;
  const void* send_in_place = nullptr;
  const void* recv_in_place = nullptr;
  const char* hint = "";
};
void take(const Comm& comm, Operation& what, const Buffers& buffers) {
  check_pointer(comm, "send", buffers.send, buffers.send_bytes, what.dtype());
  check_pointer(comm, "recv", buffers.recv, buffers.recv_bytes,
                buffers.output_dtype == ZC_DTYPE_NONE ? what.dtype() : buffers.output_dtype);
  what.call.in_place = check_aliasing(comm, buffers.name, buffers.send, buffers.send_bytes, buffers.recv,
                                      buffers.recv_bytes, buffers.send_in_place, buffers.recv_in_place, buffers.hint);
  what.send = buffers.send, what.send_bytes = buffers.send_bytes;
  what.recv = buffers.recv, what.recv_bytes = buffers.recv_bytes;
}

const void* place(const void* base, std::size_t elements, zc_dtype dtype) {
  return base == nullptr ? nullptr : at(base, elements, dtype);
}

zc_status submit(Comm& comm, Operation& what, const Options& options) {
  choose_schedule(comm, what, options.schedule);
  // What ranks tell each other, the library's own calls among it, always works.
  if (what.plan == nullptr && what.traffic == ZC_TRAFFIC_CONTROL &&
      comm.settings().selection.changes(what.collective()))
    what.call.schedule = transport::CallRecord::kByTable;
  if (options.request != nullptr) return comm.requests().make(what, options.tag, options.request);
  const bool has_scratch = what.plan != nullptr && what.plan->program->scratch_chunks() != 0;
  if (has_scratch || always_stages(comm, what)) comm.group().prepare_staging();
  return run_collective(comm, what, nullptr);
}

// A send or a receive, which other calls of the communicator do not wait for: a request in both forms.
Operation between_two(const Comm& comm, Collective collective, std::size_t count, zc_dtype dtype, std::int32_t peer,
                      const Options& options) {
  check_dtype(comm, dtype);
  ZC_REQUIRE(peer >= 0 && peer < comm.ranks(), ZC_ARGUMENT, "rank %d: rank %d is not one from 0 to %d", comm.rank(),
             peer, comm.ranks() - 1);
  ZC_REQUIRE(peer != comm.rank(), ZC_ARGUMENT, "rank %d: a rank sends nothing to itself", comm.rank());
  transport::CallRecord call = record(collective, count, dtype);
  call.root = peer;
  return operation(call, options);
}

zc_status submit_between_two(Comm& comm, const Operation& what, const Options& options) {
  if (options.request != nullptr) return comm.requests().make(what, options.tag, options.request);
  return comm.requests().make_and_wait(what, options.tag);
}

constexpr const char* kMpiScatter =
    " (recv == send is MPI_IN_PLACE's rule; here the result goes to the rank's own block)";
constexpr const char* kMpiGather =
    " (send == recv is not in place here: MPI_IN_PLACE's block lies at the rank's own place in recv)";

}  // namespace

zc_status all_reduce(Comm& comm, const void* send, void* recv, std::size_t count, zc_dtype dtype, zc_op op,
                     const Options& options) {
  transport::CallRecord call = record(Collective::all_reduce, count, dtype);
  const zc_dtype output = record_reduction(comm, &call, op, options);
  Operation what = operation(call, options);
  const std::size_t input_bytes = zc_dtype_bytes(dtype), output_bytes = zc_dtype_bytes(output);
  take(comm, what,
       {"zc_all_reduce", send, checked_mul(count, input_bytes), recv, checked_mul(count, output_bytes), output, send,
        output == dtype ? send : nullptr});  // with two dtypes there is no in-place form
  const auto ranks = static_cast<std::size_t>(comm.ranks());
  const std::size_t own = even_part(count, ranks, static_cast<std::size_t>(comm.rank())).count;
  what.logical_bytes = (ranks - 1) * own * input_bytes + (count - own) * output_bytes;
  return submit(comm, what, options);
}

zc_status reduce(Comm& comm, const void* send, void* recv, std::size_t count, zc_dtype dtype, zc_op op,
                 std::int32_t root, const Options& options) {
  transport::CallRecord call = record(Collective::reduce, count, dtype);
  const zc_dtype output = record_reduction(comm, &call, op, options);
  check_root(comm, root);
  call.root = root;
  Operation what = operation(call, options);
  const bool is_root = comm.rank() == root;
  const std::size_t bytes = checked_mul(count, zc_dtype_bytes(dtype));
  take(comm, what,
       {"zc_reduce", send, bytes, is_root ? recv : nullptr, is_root ? checked_mul(count, zc_dtype_bytes(output)) : 0,
        output, send, output == dtype ? send : nullptr});
  // By definition the root gets every other rank's contribution.
  what.logical_bytes = is_root ? checked_mul(static_cast<std::size_t>(comm.ranks()) - 1, bytes) : 0;
  return submit(comm, what, options);
}

zc_status reduce_scatter(Comm& comm, const void* send, void* recv, std::size_t count, const std::size_t* counts,
                         zc_dtype dtype, zc_op op, const Options& options) {
  const auto ranks = static_cast<std::size_t>(comm.ranks());
  const Blocks blocks(ranks, count, counts);
  transport::CallRecord call = record(counts ? Collective::reduce_scatter_v : Collective::reduce_scatter,
                                      counts ? blocks.total() : count, dtype);
  const zc_dtype output = record_reduction(comm, &call, op, options);
  call.counts_hash = blocks.hash();
  Operation what = operation(call, options);
  what.counts = counts;
  const std::size_t own_count = blocks.count(comm.rank());
  take(comm, what,
       {counts ? "zc_reduce_scatter_v" : "zc_reduce_scatter", send, checked_mul(blocks.total(), zc_dtype_bytes(dtype)),
        recv, checked_mul(own_count, zc_dtype_bytes(output)), output, send,
        output == dtype ? place(send, blocks.offset(comm.rank()), dtype) : nullptr, recv == send ? kMpiScatter : ""});
  what.logical_bytes = (ranks - 1) * own_count * zc_dtype_bytes(dtype);
  return submit(comm, what, options);
}

zc_status all_gather(Comm& comm, const void* send, void* recv, std::size_t count, const std::size_t* counts,
                     zc_dtype dtype, const Options& options) {
  check_dtype(comm, dtype);
  ZC_REQUIRE(options.output_dtype == ZC_DTYPE_NONE || options.output_dtype == dtype, ZC_UNSUPPORTED,
             "rank %d: an all-gather converts nothing: output dtype %s, dtype %s", comm.rank(),
             zc_dtype_name(options.output_dtype), zc_dtype_name(dtype));
  const auto ranks = static_cast<std::size_t>(comm.ranks());
  const Blocks blocks(ranks, count, counts);
  const std::size_t total = blocks.total(), own_count = blocks.count(comm.rank()),
                    element_bytes = zc_dtype_bytes(dtype);
  transport::CallRecord call =
      record(counts ? Collective::all_gather_v : Collective::all_gather, counts ? total : count, dtype);
  call.counts_hash = blocks.hash();
  Operation what = operation(call, options);
  what.counts = counts;
  take(comm, what,
       {counts ? "zc_all_gather_v" : "zc_all_gather", send, checked_mul(own_count, element_bytes), recv,
        checked_mul(total, element_bytes), ZC_DTYPE_NONE, place(recv, blocks.offset(comm.rank()), dtype), recv,
        recv == send ? kMpiGather : ""});
  what.logical_bytes = (total - own_count) * element_bytes;
  return submit(comm, what, options);
}

zc_status broadcast(Comm& comm, void* buffer, std::size_t count, zc_dtype dtype, std::int32_t root,
                    const Options& options) {
  check_dtype(comm, dtype);
  check_root(comm, root);
  transport::CallRecord call = record(Collective::broadcast, count, dtype);
  call.root = root;
  Operation what = operation(call, options);
  const std::size_t bytes = checked_mul(count, zc_dtype_bytes(dtype));
  check_pointer(comm, "buffer", buffer, bytes, dtype);
  what.send = buffer, what.send_bytes = bytes;
  what.recv = buffer, what.recv_bytes = bytes;
  what.logical_bytes = comm.rank() == root ? 0 : bytes;
  return submit(comm, what, options);
}

zc_status all_to_all(Comm& comm, const void* send, void* recv, std::size_t count, zc_dtype dtype,
                     const Options& options) {
  check_dtype(comm, dtype);
  Operation what = operation(record(Collective::all_to_all, count, dtype), options);
  const auto ranks = static_cast<std::size_t>(comm.ranks());
  const std::size_t block_bytes = checked_mul(count, zc_dtype_bytes(dtype)), bytes = checked_mul(ranks, block_bytes);
  take(comm, what, {"zc_all_to_all", send, bytes, recv, bytes, ZC_DTYPE_NONE, send, send});
  what.logical_bytes = (ranks - 1) * block_bytes;
  return submit(comm, what, options);
}

zc_status all_to_all_v(Comm& comm, const void* send, const std::size_t* send_counts, void* recv,
                       const std::size_t* recv_counts, zc_dtype dtype, const Options& options) {
  check_dtype(comm, dtype);
  Operation what = operation(record(Collective::all_to_all_v, 0, dtype), options);
  const auto ranks = static_cast<std::size_t>(comm.ranks());
  const Blocks sent(ranks, 0, send_counts), received(ranks, 0, recv_counts);
  const std::size_t element_bytes = zc_dtype_bytes(dtype);
  take(comm, what,
       {"zc_all_to_all_v", send, checked_mul(sent.total(), element_bytes), recv,
        checked_mul(received.total(), element_bytes), ZC_DTYPE_NONE, send, send});
  for (std::size_t rank = 0; what.in_place() && rank < ranks; ++rank)
    ZC_REQUIRE(send_counts[rank] == recv_counts[rank], ZC_ARGUMENT,
               "rank %d: zc_all_to_all_v in place exchanges blocks of one count: %zu elements go to rank %zu, %zu come",
               comm.rank(), send_counts[rank], rank, recv_counts[rank]);
  what.counts = send_counts;
  what.recv_counts = recv_counts;
  what.logical_bytes = (received.total() - received.count(comm.rank())) * element_bytes;
  return submit(comm, what, options);
}

zc_status gather_to_root(Comm& comm, const void* send, void* recv, std::size_t count, zc_dtype dtype, std::int32_t root,
                         const Options& options) {
  check_dtype(comm, dtype);
  check_root(comm, root);
  transport::CallRecord call = record(Collective::gather_to_root, count, dtype);
  call.root = root;
  Operation what = operation(call, options);
  const auto ranks = static_cast<std::size_t>(comm.ranks());
  const bool is_root = comm.rank() == root;
  const std::size_t bytes = checked_mul(count, zc_dtype_bytes(dtype)), all_bytes = checked_mul(ranks, bytes);
  void* const into = is_root ? recv : nullptr;
  take(comm, what,
       {"zc_gather_to_root", send, bytes, into, is_root ? all_bytes : 0, ZC_DTYPE_NONE,
        place(into, static_cast<std::size_t>(comm.rank()) * count, dtype), into,
        is_root && recv == send ? kMpiGather : ""});
  what.logical_bytes = is_root ? all_bytes - bytes : 0;
  return submit(comm, what, options);
}

zc_status scatter_from_root(Comm& comm, const void* send, void* recv, std::size_t count, zc_dtype dtype,
                            std::int32_t root, const Options& options) {
  check_dtype(comm, dtype);
  check_root(comm, root);
  transport::CallRecord call = record(Collective::scatter_from_root, count, dtype);
  call.root = root;
  Operation what = operation(call, options);
  const auto ranks = static_cast<std::size_t>(comm.ranks());
  const bool is_root = comm.rank() == root;
  const std::size_t bytes = checked_mul(count, zc_dtype_bytes(dtype)), all_bytes = checked_mul(ranks, bytes);
  const void* const from = is_root ? send : nullptr;
  take(comm, what,
       {"zc_scatter_from_root", from, is_root ? all_bytes : 0, recv, bytes, ZC_DTYPE_NONE, from,
        place(from, static_cast<std::size_t>(comm.rank()) * count, dtype), is_root && recv == send ? kMpiScatter : ""});
  what.logical_bytes = is_root ? 0 : bytes;
  return submit(comm, what, options);
}

zc_status send(Comm& comm, const void* send, std::size_t count, zc_dtype dtype, std::int32_t to,
               const Options& options) {
  Operation what = between_two(comm, Collective::send, count, dtype, to, options);
  what.send = send;
  what.send_bytes = checked_mul(count, zc_dtype_bytes(dtype));
  check_pointer(comm, "send", send, what.send_bytes, dtype);
  return submit_between_two(comm, what, options);
}

zc_status recv(Comm& comm, void* recv, std::size_t count, zc_dtype dtype, std::int32_t from, const Options& options) {
  Operation what = between_two(comm, Collective::recv, count, dtype, from, options);
  what.recv = recv;
  what.recv_bytes = checked_mul(count, zc_dtype_bytes(dtype));
  check_pointer(comm, "recv", recv, what.recv_bytes, dtype);
  what.logical_bytes = what.recv_bytes;
  return submit_between_two(comm, what, options);
}

zc_status barrier(Comm& comm, const Options& options) {
  Operation what = operation(record(Collective::barrier, 0, ZC_DTYPE_NONE), options);
  return submit(comm, what, options);
}

}  // namespace zerocomm::comm
