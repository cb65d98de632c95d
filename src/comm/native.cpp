#include "comm/native.hpp"

#include "base/check.hpp"
#include "base/math.hpp"
#include "comm/collective.hpp"
#include "comm/reduce_leaf.hpp"

#include <array>
#include <bit>
#include <numeric>

namespace zerocomm::comm {
namespace {

// Most ranks of a communicator: the arrays of addresses below live on the stack.
constexpr std::size_t kMostRanks = 1024;

// How a vector is cut into one block per rank.
class Blocks {
 public:
  Blocks(std::size_t ranks, std::size_t count, const std::size_t* counts)
      : ranks_(ranks), count_(count), counts_(counts) {}
  std::size_t count(std::int32_t rank) const { return counts_ ? counts_[rank] : count_; }
  std::size_t offset(std::int32_t rank) const {
    return counts_ ? std::accumulate(counts_, counts_ + rank, std::size_t{0}) : count_ * static_cast<std::size_t>(rank);
  }
  std::size_t total() const {
    if (!counts_) return checked_mul(count_, ranks_);
    std::size_t sum = 0;
    for (std::size_t rank = 0; rank < ranks_; ++rank) sum = checked_add(sum, counts_[rank]);
    return sum;
  }
  std::uint64_t hash() const { return counts_ ? hash_counts(counts_, ranks_) : 0; }

 private:
  std::size_t ranks_;
  std::size_t count_;
  const std::size_t* counts_;
};

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

const std::byte* at(const void* base, std::size_t elements, zc_dtype dtype) {
  return static_cast<const std::byte*>(base) + elements * zc_dtype_bytes(dtype);
}
std::byte* at(void* base, std::size_t elements, zc_dtype dtype) {
  return static_cast<std::byte*>(base) + elements * zc_dtype_bytes(dtype);
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
  Collect what{record(Collective::all_reduce, count, dtype), send, recv, options.deadline_ns, 0, options.traffic};
  what.call.output_dtype = output;
  what.call.op = op;
  what.call.in_place = in_place;
  what.call.premul_bits = op == ZC_OP_PREMUL_SUM ? std::bit_cast<std::uint64_t>(options.premul) : 0;
  what.logical_bytes = (ranks - 1) * own.count * zc_dtype_bytes(dtype) + (count - own.count) * zc_dtype_bytes(output);
  const auto move_share = [&](const Peers& peers) {
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
  };
  FunctionRef<void(const Peers&)> move = move_share;
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

  Collect what{record(counts ? Collective::reduce_scatter_v : Collective::reduce_scatter,
                      counts ? blocks.total() : count, dtype),
               send,
               recv,
               options.deadline_ns,
               0,
               options.traffic};
  what.call.output_dtype = output;
  what.call.op = op;
  what.call.in_place = in_place;
  what.call.counts_hash = blocks.hash();
  what.call.premul_bits = op == ZC_OP_PREMUL_SUM ? std::bit_cast<std::uint64_t>(options.premul) : 0;
  what.logical_bytes = (ranks - 1) * own_count * zc_dtype_bytes(dtype);
  const auto move_share = [&](const Peers& peers) {
    std::array<const void*, kMostRanks> inputs;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      inputs[rank] = at(peers.send(static_cast<std::int32_t>(rank)), own_offset, dtype);
    const std::int32_t self = comm.rank();
    reduce_over_ranks(comm, {inputs.data(), &recv, &self, 1, own_count, dtype, output, op, reduce_args(op, options),
                             options.traffic});
  };
  FunctionRef<void(const Peers&)> move = move_share;
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

  Collect what{record(counts ? Collective::all_gather_v : Collective::all_gather, counts ? total : count, dtype),
               send,
               recv,
               options.deadline_ns,
               (total - own_count) * element_bytes,
               options.traffic};
  what.call.in_place = in_place;
  what.call.counts_hash = blocks.hash();
  const auto move_share = [&](const Peers& peers) {
    // Each rank starts at its own block, so that no two ranks read the same source at once.
    for (std::int32_t step = 0; step < comm.ranks(); ++step) {
      const std::int32_t peer = (comm.rank() + step) % comm.ranks();
      if (peer == comm.rank() && in_place == 1) continue;
      comm.copy(at(recv, blocks.offset(peer), dtype), peers.send(peer), blocks.count(peer) * element_bytes, peer,
                options.traffic);
    }
  };
  FunctionRef<void(const Peers&)> move = move_share;
  return run_collective(comm, what, &move);
}

zc_status broadcast(Comm& comm, void* buffer, std::size_t count, zc_dtype dtype, std::int32_t root,
                    const Options& options) {
  check_dtype(comm, dtype);
  ZC_REQUIRE(root >= 0 && root < comm.ranks(), ZC_ARGUMENT, "rank %d: root %d is not a rank from 0 to %d", comm.rank(),
             root, comm.ranks() - 1);
  const std::size_t bytes = checked_mul(count, zc_dtype_bytes(dtype));
  check_pointer(comm, "buffer", buffer, bytes, dtype);
  Collect what{record(Collective::broadcast, count, dtype),
               buffer,
               buffer,
               options.deadline_ns,
               comm.rank() == root ? 0 : bytes,
               options.traffic};
  what.call.root = root;
  const auto move_share = [&](const Peers& peers) {
    if (comm.rank() != root) comm.copy(buffer, peers.send(root), bytes, root, options.traffic);
  };
  FunctionRef<void(const Peers&)> move = move_share;
  return run_collective(comm, what, &move);
}

zc_status barrier(Comm& comm, const Options& options) {
  Collect what;
  what.call = record(Collective::barrier, 0, ZC_DTYPE_NONE);
  what.deadline_ns = options.deadline_ns;
  return run_collective(comm, what, nullptr);
}

}  // namespace zerocomm::comm
