#include "comm/reductions.hpp"

#include "comm/reduce_leaf.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace zerocomm::comm {
namespace {

bool scatters(const Operation& operation) {
  return operation.collective() == Collective::reduce_scatter || operation.collective() == Collective::reduce_scatter_v;
}
bool is_rooted(const Operation& operation) { return operation.collective() == Collective::reduce; }

void reduce_to(const Comm& comm, const Operation& operation, const void* const* inputs, void* const* outputs,
               const std::int32_t* output_ranks, std::size_t output_count, std::size_t count) noexcept {
  device::ReduceArgs args;
  if (operation.op() == ZC_OP_PREMUL_SUM) args.premul = std::bit_cast<double>(operation.call.premul_bits);
  reduce_over_ranks(comm, {inputs, outputs, output_ranks, output_count, count, operation.dtype(),
                           operation.output_dtype(), operation.op(), args, operation.traffic});
}

// Of the two reductions that are no scatter, a piece of the vector takes two rounds: in the first every rank reduces
// its part of it, in the second the parts are collected. This is how many elements a piece has.
std::size_t piece_count(const Operation& operation, std::int32_t ranks, std::size_t half_bytes) {
  const std::size_t p = index(ranks), most_in = half_bytes / zc_dtype_bytes(operation.dtype()),
                    most_out = half_bytes / zc_dtype_bytes(operation.output_dtype()) * p;
  return std::min(most_in, most_out) / p * p;
}

// Of scatters, a half has a lane for every rank.
std::size_t lane_stride(std::int32_t ranks, std::size_t half_bytes) {
  return half_bytes / index(ranks) / kLineBytes * kLineBytes;
}

void fill_scatter(const Comm& comm, const Operation& operation, std::size_t round, std::byte* half,
                  std::size_t half_bytes) noexcept {
  const Blocks blocks = blocks_of(operation, comm.ranks());
  const std::size_t stride_bytes = lane_stride(comm.ranks(), half_bytes),
                    element_bytes = zc_dtype_bytes(operation.dtype()), most = stride_bytes / element_bytes;
  for (std::int32_t peer = 0; peer < comm.ranks(); ++peer) {
    if (peer == comm.rank()) continue;  // nobody else reads what this rank keeps
    if (const std::size_t now = piece(blocks.count(peer), round * most, most); now != 0)
      std::memcpy(half + index(peer) * stride_bytes,
                  at(operation.send, blocks.offset(peer) + round * most, operation.dtype()), now * element_bytes);
  }
}

void read_scatter(const Comm& comm, const Operation& operation, const Posts& posts, std::size_t round,
                  std::size_t staging_round) noexcept {
  const Blocks blocks = blocks_of(operation, comm.ranks());
  const std::int32_t self = comm.rank();
  const std::size_t stride_bytes = lane_stride(comm.ranks(), posts.half_bytes()),
                    most = stride_bytes / zc_dtype_bytes(operation.dtype()),
                    now = piece(blocks.count(self), round * most, most);
  if (now == 0) return;
  std::array<const void*, kMostRanks> inputs;
  for (std::int32_t rank = 0; rank < comm.ranks(); ++rank)
    inputs[index(rank)] = posts.half(rank, staging_round) + index(self) * stride_bytes;
  inputs[index(self)] = at(operation.send, blocks.offset(self) + round * most, operation.dtype());
  void* const output = at(operation.recv, round * most, operation.output_dtype());
  reduce_to(comm, operation, inputs.data(), &output, &self, 1, now);
}

// The own part of the piece that a round belongs to, from the beginning of the piece.
struct Piece {
  std::size_t first = 0;  // element of the vector
  std::size_t count = 0;
  Part part(std::int32_t ranks, std::int32_t rank) const { return even_part(count, index(ranks), index(rank)); }
};
Piece piece_of(const Operation& operation, std::int32_t ranks, std::size_t round, std::size_t half_bytes) {
  const std::size_t most = piece_count(operation, ranks, half_bytes), first = round / 2 * most;
  return {first, piece(operation.call.count, first, most)};
}

// Where the own reduced part of a piece is kept between its two rounds. The root of zc_reduce has recv; others of its
// ranks have nothing, so they reduce straight into their half when they fill it.
bool keeps_part(const Comm& comm, const Operation& operation) {
  return !is_rooted(operation) || comm.rank() == operation.call.root;
}

void reduce_part(const Comm& comm, const Operation& operation, const Posts& posts, const Piece& now, void* output,
                 std::size_t staging_round) noexcept {
  const std::int32_t self = comm.rank();
  const Part own = now.part(comm.ranks(), self);
  if (own.count == 0) return;
  std::array<const void*, kMostRanks> inputs;
  for (std::int32_t rank = 0; rank < comm.ranks(); ++rank)
    inputs[index(rank)] = at(posts.half(rank, staging_round), own.offset, operation.dtype());
  reduce_to(comm, operation, inputs.data(), &output, &self, 1, own.count);
}

}  // namespace

bool is_reduction(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::reduce_scatter_v || collective == Collective::reduce;
}

Part own_share(const Operation& operation, std::int32_t ranks, std::int32_t self) {
  if (!scatters(operation)) return even_part(operation.call.count, index(ranks), index(self));
  const Blocks blocks = blocks_of(operation, ranks);
  return {blocks.offset(self), blocks.count(self)};
}

void reduce_share(const Comm& comm, const Operation& operation, const Peers& peers, std::size_t first,
                  std::size_t count) noexcept {
  if (count == 0) return;
  const Part own = own_share(operation, comm.ranks(), comm.rank());
  std::array<const void*, kMostRanks> inputs;
  for (std::int32_t rank = 0; rank < comm.ranks(); ++rank)
    inputs[index(rank)] = at(peers.send(rank), own.offset + first, operation.dtype());
  std::array<void*, kMostRanks> outputs;
  std::array<std::int32_t, kMostRanks> output_ranks;
  std::size_t output_count = 0;
  const auto into = [&](std::int32_t rank, void* recv, std::size_t offset) {
    outputs[output_count] = at(recv, offset, operation.output_dtype());
    output_ranks[output_count++] = rank;
  };
  if (scatters(operation))
    into(comm.rank(), operation.recv, first);
  else if (is_rooted(operation))
    into(operation.call.root, peers.recv(operation.call.root), own.offset + first);
  else
    for (std::int32_t rank = 0; rank < comm.ranks(); ++rank) into(rank, peers.recv(rank), own.offset + first);
  reduce_to(comm, operation, inputs.data(), outputs.data(), output_ranks.data(), output_count, count);
}

std::size_t reduction_rounds(const Operation& operation, std::int32_t ranks, std::size_t half_bytes) {
  if (scatters(operation))
    return ceil_div(blocks_of(operation, ranks).most(),
                    lane_stride(ranks, half_bytes) / zc_dtype_bytes(operation.dtype()));
  return 2 * ceil_div(operation.call.count, piece_count(operation, ranks, half_bytes));
}

void fill_reduction(const Comm& comm, const Operation& operation, std::size_t round, std::byte* half,
                    std::size_t half_bytes) noexcept {
  if (scatters(operation)) {
    fill_scatter(comm, operation, round, half, half_bytes);
    return;
  }
  const Piece now = piece_of(operation, comm.ranks(), round, half_bytes);
  if (round % 2 == 0) {
    std::memcpy(half, at(operation.send, now.first, operation.dtype()), now.count * zc_dtype_bytes(operation.dtype()));
  } else if (keeps_part(comm, operation)) {
    const Part own = now.part(comm.ranks(), comm.rank());
    if (own.count != 0)
      std::memcpy(half, at(operation.recv, now.first + own.offset, operation.output_dtype()),
                  own.count * zc_dtype_bytes(operation.output_dtype()));
  }  // else: read_reduction of the round before has put it there
}

void read_reduction(const Comm& comm, const Operation& operation, const Posts& posts, std::size_t round,
                    std::size_t staging_round) noexcept {
  if (scatters(operation)) {
    read_scatter(comm, operation, posts, round, staging_round);
    return;
  }
  const std::int32_t self = comm.rank();
  const Piece now = piece_of(operation, comm.ranks(), round, posts.half_bytes());
  if (round % 2 == 0) {
    const Part own = now.part(comm.ranks(), self);
    reduce_part(comm, operation, posts, now,
                keeps_part(comm, operation)
                    ? static_cast<void*>(at(operation.recv, now.first + own.offset, operation.output_dtype()))
                    : posts.half(self, staging_round + 1),
                staging_round);
    return;
  }
  if (!keeps_part(comm, operation)) return;
  for (std::int32_t step = 1; step < comm.ranks(); ++step) {
    const std::int32_t peer = (self + step) % comm.ranks();
    const Part part = now.part(comm.ranks(), peer);
    comm.copy(at(operation.recv, now.first + part.offset, operation.output_dtype()), posts.half(peer, staging_round),
              part.count * zc_dtype_bytes(operation.output_dtype()), peer, operation.traffic);
  }
}

}  // namespace zerocomm::comm
