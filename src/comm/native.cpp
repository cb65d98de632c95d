#include "comm/native.hpp"

#include "base/check.hpp"
#include "comm/blocks.hpp"
#include "comm/collective.hpp"
#include "comm/reduce_leaf.hpp"
#include "comm/staged.hpp"

#include <array>
#include <bit>

namespace zerocomm::comm {
namespace {

void check_pointer(const Comm& comm, const char* what, const void* pointer, std::size_t bytes, zc_dtype dtype) {
  if (bytes == 0) return;
  ZC_REQUIRE(pointer != nullptr, ZC_ARGUMENT, "rank %d: %s is NULL, and %zu bytes are expected there", comm.rank(),
             what, bytes);
  ZC_REQUIRE(reinterpret_cast<std::uintptr_t>(pointer) % zc_dtype_bytes(dtype) == 0, ZC_ALIGNMENT,
             "rank %d: %s = %p is not aligned to an element of %s", comm.rank(), what, pointer, zc_dtype_name(dtype));
}

void check_dtype(const Comm& comm, zc_dtype dtype) {
  ZC_REQUIRE(zc_dtype_bytes(dtype) != 0, ZC_ARGUMENT, "rank %d: dtype %d is none", comm.rank(),
             static_cast<int>(dtype));
}

void check_reduction(const Comm& comm, zc_dtype dtype, zc_dtype output_dtype, zc_op op) {
  const zc_status status = device::check_reduce(dtype, output_dtype, op);
  ZC_REQUIRE(status == ZC_OK, status, "rank %d: %s", comm.rank(), zc_last_error());
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

Collect collect(const transport::CallRecord& call, Touches touches, const Options& options) {
  Collect what;
  what.call = call;
  what.touches = touches;
  what.deadline_ns = options.deadline_ns;
  what.traffic = options.traffic;
  return what;
}

device::ReduceArgs reduce_args(zc_op op, const Options& options) {
  device::ReduceArgs args;
  if (op == ZC_OP_PREMUL_SUM) args.premul = options.premul;
  return args;
}

}  // namespace

zc_status all_reduce(Comm& comm, const void* send, void* recv, std::size_t count, zc_dtype dtype, zc_op op,
                     const Options& options) {
  check_dtype(comm, dtype);
  const zc_dtype output = options.output_dtype == ZC_DTYPE_NONE ? dtype : options.output_dtype;
  check_reduction(comm, dtype, output, op);
  const std::size_t send_bytes = checked_mul(count, zc_dtype_bytes(dtype)),
                    recv_bytes = checked_mul(count, zc_dtype_bytes(output));
  check_pointer(comm, "send", send, send_bytes, dtype);
  check_pointer(comm, "recv", recv, recv_bytes, output);
  const void* const same = output == dtype ? send : nullptr;  // with two dtypes there is no in-place form
  const std::uint32_t in_place =
      check_aliasing(comm, "zc_all_reduce", send, send_bytes, recv, recv_bytes, send, same, "");

  const auto ranks = static_cast<std::size_t>(comm.ranks());
  const Part own = even_part(count, ranks, static_cast<std::size_t>(comm.rank()));
  Collect what = collect(record(Collective::all_reduce, count, dtype), Touches::both_of_all, options);
  what.send = send, what.send_bytes = send_bytes;
  what.recv = recv, what.recv_bytes = recv_bytes;
  what.call.output_dtype = output;
  what.call.op = op;
  what.call.in_place = in_place;
  what.call.premul_bits = op == ZC_OP_PREMUL_SUM ? std::bit_cast<std::uint64_t>(options.premul) : 0;
  what.logical_bytes = (ranks - 1) * own.count * zc_dtype_bytes(dtype) + (count - own.count) * zc_dtype_bytes(output);
  const auto move_share = [&](const Peers& peers) -> zc_status {
    std::array<const void*, kMostRanks> inputs;
    std::array<void*, kMostRanks> outputs;
    std::array<std::int32_t, kMostRanks> output_ranks;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto peer = static_cast<std::int32_t>(rank);
      inputs[rank] = at(peers.send(peer), own.offset, dtype);
      outputs[rank] = at(peers.recv(peer), own.offset, output);
      output_ranks[rank] = peer;
    }
    reduce_over_ranks(comm, {inputs.data(), outputs.data(), output_ranks.data(), ranks, own.count, dtype, output, op,
                             reduce_args(op, options), options.traffic});
    return ZC_OK;
  };
  const auto move_staged = [&](Staging& staging) {
    return staged_all_reduce(comm, staging, send, recv, count, {dtype, output, op, reduce_args(op, options)},
                             options.traffic);
  };
  FunctionRef<zc_status(Staging&)> staged = move_staged;
  what.staged = &staged;
  FunctionRef<zc_status(const Peers&)> move = move_share;
  return run_collective(comm, what, &move);
}

zc_status reduce_scatter(Comm& comm, const void* send, void* recv, std::size_t count, const std::size_t* counts,
                         zc_dtype dtype, zc_op op, const Options& options) {
  check_dtype(comm, dtype);
  const zc_dtype output = options.output_dtype == ZC_DTYPE_NONE ? dtype : options.output_dtype;
  check_reduction(comm, dtype, output, op);
  const auto ranks = static_cast<std::size_t>(comm.ranks());
  const Blocks blocks(ranks, count, counts);
  const std::size_t own_count = blocks.count(comm.rank()), own_offset = blocks.offset(comm.rank());
  const std::size_t send_bytes = checked_mul(blocks.total(), zc_dtype_bytes(dtype));
  const std::size_t recv_bytes = checked_mul(own_count, zc_dtype_bytes(output));
  check_pointer(comm, "send", send, send_bytes, dtype);
  check_pointer(comm, "recv", recv, recv_bytes, output);
  const char* name = counts ? "zc_reduce_scatter_v" : "zc_reduce_scatter";
  const void* const expected = output == dtype && send != nullptr ? at(send, own_offset, dtype) : nullptr;
  const std::uint32_t in_place = check_aliasing(
      comm, name, send, send_bytes, recv, recv_bytes, send, expected,
      recv == send ? " (recv == send is MPI_IN_PLACE's rule; here the result goes to the rank's own block)" : "");

  Collect what = collect(record(counts ? Collective::reduce_scatter_v : Collective::reduce_scatter,
                                counts ? blocks.total() : count, dtype),
                         Touches::send_of_all, options);
  what.send = send, what.send_bytes = send_bytes;
  what.call.output_dtype = output;
  what.call.op = op;
  what.call.in_place = in_place;
  what.call.counts_hash = blocks.hash();
  what.call.premul_bits = op == ZC_OP_PREMUL_SUM ? std::bit_cast<std::uint64_t>(options.premul) : 0;
  what.logical_bytes = (ranks - 1) * own_count * zc_dtype_bytes(dtype);
  const auto move_share = [&](const Peers& peers) -> zc_status {
    std::array<const void*, kMostRanks> inputs;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      inputs[rank] = at(peers.send(static_cast<std::int32_t>(rank)), own_offset, dtype);
    const std::int32_t self = comm.rank();
    reduce_over_ranks(comm, {inputs.data(), &recv, &self, 1, own_count, dtype, output, op, reduce_args(op, options),
                             options.traffic});
    return ZC_OK;
  };
  const auto move_staged = [&](Staging& staging) {
    return staged_reduce_scatter(comm, staging, send, recv, blocks, {dtype, output, op, reduce_args(op, options)},
                                 options.traffic);
  };
  FunctionRef<zc_status(Staging&)> staged = move_staged;
  what.staged = &staged;
  FunctionRef<zc_status(const Peers&)> move = move_share;
  return run_collective(comm, what, &move);
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
  const std::size_t send_bytes = checked_mul(own_count, element_bytes), recv_bytes = checked_mul(total, element_bytes);
  check_pointer(comm, "send", send, send_bytes, dtype);
  check_pointer(comm, "recv", recv, recv_bytes, dtype);
  const void* const expected = recv != nullptr ? at(recv, blocks.offset(comm.rank()), dtype) : nullptr;
  const std::uint32_t in_place = check_aliasing(comm, counts ? "zc_all_gather_v" : "zc_all_gather", send, send_bytes,
                                                recv, recv_bytes, expected, recv, "");

  Collect what =
      collect(record(counts ? Collective::all_gather_v : Collective::all_gather, counts ? total : count, dtype),
              Touches::send_of_all, options);
  what.send = send, what.send_bytes = send_bytes;
  what.logical_bytes = (total - own_count) * element_bytes;
  what.call.in_place = in_place;
  what.call.counts_hash = blocks.hash();
  const auto move_share = [&](const Peers& peers) -> zc_status {
    // Each rank starts at its own block, so that no two ranks read the same source at once.
    for (std::int32_t step = 0; step < comm.ranks(); ++step) {
      const std::int32_t peer = (comm.rank() + step) % comm.ranks();
      if (peer == comm.rank() && in_place == 1) continue;
      ZC_TRY(peers.copy_from(peer, 0, at(recv, blocks.offset(peer), dtype), blocks.count(peer) * element_bytes,
                             options.traffic));
    }
    return ZC_OK;
  };
  what.copies_alone = true;
  const auto move_staged = [&](Staging& staging) {
    return staged_all_gather(comm, staging, send, recv, blocks, dtype, in_place == 1, options.traffic);
  };
  FunctionRef<zc_status(Staging&)> staged = move_staged;
  what.staged = &staged;
  FunctionRef<zc_status(const Peers&)> move = move_share;
  return run_collective(comm, what, &move);
}

zc_status broadcast(Comm& comm, void* buffer, std::size_t count, zc_dtype dtype, std::int32_t root,
                    const Options& options) {
  check_dtype(comm, dtype);
  ZC_REQUIRE(root >= 0 && root < comm.ranks(), ZC_ARGUMENT, "rank %d: root %d is not a rank from 0 to %d", comm.rank(),
             root, comm.ranks() - 1);
  const std::size_t bytes = checked_mul(count, zc_dtype_bytes(dtype));
  check_pointer(comm, "buffer", buffer, bytes, dtype);
  Collect what = collect(record(Collective::broadcast, count, dtype), Touches::send_of_root, options);
  what.send = buffer, what.send_bytes = bytes;
  what.logical_bytes = comm.rank() == root ? 0 : bytes;
  what.call.root = root;
  const auto move_share = [&](const Peers& peers) -> zc_status {
    return comm.rank() == root ? ZC_OK : peers.copy_from(root, 0, buffer, bytes, options.traffic);
  };
  what.copies_alone = true;
  const auto move_staged = [&](Staging& staging) {
    return staged_broadcast(comm, staging, buffer, bytes, root, options.traffic);
  };
  FunctionRef<zc_status(Staging&)> staged = move_staged;
  what.staged = &staged;
  FunctionRef<zc_status(const Peers&)> move = move_share;
  return run_collective(comm, what, &move);
}

zc_status barrier(Comm& comm, const Options& options) {
  Collect what;
  what.call = record(Collective::barrier, 0, ZC_DTYPE_NONE);
  what.deadline_ns = options.deadline_ns;
  return run_collective(comm, what, nullptr);
}

}  // namespace zerocomm::comm
