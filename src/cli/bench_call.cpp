#include "cli/bench_call.hpp"

#include "cli/bench_pattern.hpp"

#include <numeric>

namespace zerocomm::cli {
namespace {

// Where each block of a vector begins.
std::size_t offset_of(const std::vector<std::size_t>& counts, std::int32_t rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
}

void make_exchange(const BenchRequest& request, std::int32_t rank, std::int32_t ranks, BenchCall& call) {
  const auto parts = static_cast<std::size_t>(ranks);
  call.counts = block_counts(request.count, ranks, request.skewed, request.root);
  call.recv_counts = std::vector<std::size_t>(parts, call.counts[static_cast<std::size_t>(rank)]);
  call.send_count = request.count;
  call.recv_count = call.recv_counts[0] * parts;
}

}  // namespace

BenchCall make_call(const BenchRequest& request, zc_comm* comm, std::int32_t rank, std::int32_t ranks, std::byte* first,
                    std::byte* second) {
  BenchCall call;
  call.comm = comm;
  call.collective = request.collective;
  call.dtype = request.dtype;
  call.op = request.op;
  call.root = request.root;
  call.options.struct_size = sizeof call.options;
  if (request.op == ZC_OP_PREMUL_SUM) call.options.premul = kBenchFactor;
  const bool in = request.place == BenchPlace::in;
  const std::vector<std::size_t> counts = block_counts(request.count, ranks, request.skewed, request.root);
  const std::size_t own = counts[static_cast<std::size_t>(rank)], offset = offset_of(counts, rank);
  const std::size_t offset_bytes = offset * zc_dtype_bytes(request.dtype);
  call.send = first;
  call.recv = in ? first : second;
  call.count = request.count;
  call.send_count = call.recv_count = request.count;
  switch (request.collective) {
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_v:
      if (in) call.recv = first + offset_bytes;
      call.count = own;
      call.recv_count = own;
      call.counts = counts;
      call.send_offset = offset;
      break;
    case Collective::all_gather:
    case Collective::all_gather_v:
      if (in) call.send = first + offset_bytes;
      call.count = own;
      call.send_count = own;
      call.counts = counts;
      break;
    case Collective::broadcast:
      call.send_count = rank == request.root ? request.count : 0;
      break;
    case Collective::reduce:
      if (rank != request.root) call.recv_count = 0;
      break;
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      make_exchange(request, rank, ranks, call);
      call.count = own;
      call.send_offset = offset;
      break;
    case Collective::barrier:
      call.send_count = call.recv_count = 0;
      break;
    case Collective::all_reduce:
      break;
  }
  return call;
}

zc_status BenchCall::operator()() const {
  switch (collective) {
    case Collective::all_reduce:
      return zc_all_reduce(comm, send, recv, count, dtype, op, &options);
    case Collective::reduce_scatter:
      return zc_reduce_scatter(comm, send, recv, count, dtype, op, &options);
    case Collective::all_gather:
      return zc_all_gather(comm, send, recv, count, dtype, &options);
    case Collective::broadcast:
      return zc_broadcast(comm, send, count, dtype, root, &options);
    case Collective::reduce:
      return zc_reduce(comm, send, recv, count, dtype, op, root, &options);
    case Collective::all_to_all:
      return zc_all_to_all(comm, send, recv, count, dtype, &options);
    case Collective::barrier:
      return zc_barrier(comm, &options);
    case Collective::reduce_scatter_v:
      return zc_reduce_scatter_v(comm, send, recv, counts.data(), dtype, op, &options);
    case Collective::all_gather_v:
      return zc_all_gather_v(comm, send, recv, counts.data(), dtype, &options);
    case Collective::all_to_all_v:
      return zc_all_to_all_v(comm, send, counts.data(), recv, recv_counts.data(), dtype, &options);
  }
  return ZC_INTERNAL;
}

}  // namespace zerocomm::cli
