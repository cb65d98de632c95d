#include "comm/copies.hpp"

#include "base/check.hpp"
#include "comm/copy_leaf.hpp"

#include <algorithm>
#include <array>

namespace zerocomm::comm {
namespace {

// Elements before the block of `rank`.
std::size_t before(const std::size_t* counts, std::int32_t rank) {
  std::size_t sum = 0;
  for (std::int32_t i = 0; i < rank; ++i) sum += counts[i];
  return sum;
}

bool sends(const Operation& operation, std::int32_t self) {
  switch (operation.collective()) {
    case Collective::broadcast:
    case Collective::scatter_from_root:
      return self == operation.call.root;
    case Collective::recv:
      return false;
    default:
      return true;
  }
}

}  // namespace

bool is_copy(Collective collective) {
  switch (collective) {
    case Collective::all_gather:
    case Collective::all_gather_v:
    case Collective::broadcast:
    case Collective::all_to_all:
    case Collective::all_to_all_v:
    case Collective::gather_to_root:
    case Collective::scatter_from_root:
    case Collective::send:
    case Collective::recv:
      return true;
    default:
      return false;
  }
}

bool has_lane_per_rank(Collective collective) {
  return collective == Collective::all_to_all || collective == Collective::all_to_all_v ||
         collective == Collective::scatter_from_root;
}

Incoming incoming(const Operation& operation, std::int32_t ranks, std::int32_t self, std::int32_t peer) {
  const std::size_t count = operation.call.count;
  const bool mine = self == peer;
  switch (operation.collective()) {
    case Collective::all_gather:
    case Collective::all_gather_v: {
      const Blocks blocks = blocks_of(operation, ranks);
      if (mine && operation.in_place()) return {};
      return {0, blocks.offset(peer), blocks.count(peer), 0};
    }
    case Collective::broadcast:
      return peer != operation.call.root || mine ? Incoming{} : Incoming{0, 0, count, 0};
    case Collective::recv:
      return peer == operation.call.root ? Incoming{0, 0, count, 0} : Incoming{};
    case Collective::all_to_all:
      if (mine && operation.in_place()) return {};
      return {index(self) * count, index(peer) * count, count, index(self)};
    case Collective::all_to_all_v:
      if (mine && operation.in_place()) return {};
      return {operation.source_offsets[peer], before(operation.recv_counts, peer), operation.recv_counts[peer],
              index(self)};
    case Collective::gather_to_root:
      if (self != operation.call.root || (mine && operation.in_place())) return {};
      return {0, index(peer) * count, count, 0};
    case Collective::scatter_from_root:
      if (peer != operation.call.root || (mine && operation.in_place())) return {};
      return {index(self) * count, 0, count, index(self)};
    default:
      return {};
  }
}

std::size_t lanes(const Operation& operation, std::int32_t ranks) {
  return has_lane_per_rank(operation.collective()) ? index(ranks) : 1;
}

Part outgoing(const Operation& operation, std::int32_t ranks, std::int32_t self, std::size_t lane) {
  if (!sends(operation, self)) return {};
  const std::size_t count = operation.call.count;
  switch (operation.collective()) {
    case Collective::all_gather:
    case Collective::all_gather_v:
      return {0, blocks_of(operation, ranks).count(self)};
    case Collective::all_to_all_v:
      return {before(operation.counts, static_cast<std::int32_t>(lane)), operation.counts[lane]};
    case Collective::all_to_all:
    case Collective::scatter_from_root:
      return {lane * count, count};
    default:
      return {0, count};
  }
}

std::size_t longest_lane(const Operation& operation, std::int32_t ranks) {
  switch (operation.collective()) {
    case Collective::all_gather:
    case Collective::all_gather_v:
      return blocks_of(operation, ranks).most();
    case Collective::all_to_all_v:
      return operation.longest;
    default:
      return operation.call.count;
  }
}

zc_status copy_slice(const Comm& comm, const Operation& operation, const Peers& peers, device::Stores stores,
                     CopyCursor* cursor, std::size_t slice_bytes, bool* done) noexcept {
  const std::size_t element_bytes = zc_dtype_bytes(operation.dtype());
  std::size_t left = std::max<std::size_t>(slice_bytes / element_bytes, 1);
  // Each rank starts at its own block, so that no two ranks read the same source at once.
  for (; cursor->step < comm.ranks(); ++cursor->step, cursor->first = 0) {
    const std::int32_t peer = (comm.rank() + cursor->step) % comm.ranks();
    const Incoming block = incoming(operation, comm.ranks(), comm.rank(), peer);
    const std::size_t now = piece(block.count, cursor->first, left);
    if (now == 0 && cursor->first == block.count) continue;
    if (now == 0) return ZC_OK;
    ZC_TRY(peers.copy_from(peer, (block.source_offset + cursor->first) * element_bytes,
                           at(operation.recv, block.destination_offset + cursor->first, operation.dtype()),
                           now * element_bytes, stores, operation.traffic));
    cursor->first += now;
    left -= now;
    if (cursor->first < block.count) return ZC_OK;
  }
  *done = true;
  return ZC_OK;
}

Part spread_share(const Operation& operation, std::int32_t ranks, std::int32_t self) {
  const std::size_t element_bytes = zc_dtype_bytes(operation.dtype());
  if (operation.collective() == Collective::broadcast)
    return line_part(operation.call.count, index(ranks), index(self), element_bytes);
  const Blocks blocks = blocks_of(operation, ranks);
  // A rank's own block lies in its own cache.
  if (!is_skewed(blocks, index(ranks))) return {blocks.offset(self), blocks.count(self)};
  return line_part(blocks.total(), index(ranks), index(self), element_bytes);
}

void spread_copies(const Comm& comm, const Operation& operation, const Peers& peers, device::Stores stores,
                   std::size_t first, std::size_t count) noexcept {
  const zc_dtype dtype = operation.dtype();
  std::array<void*, kMostRanks> outputs;
  std::array<std::int32_t, kMostRanks> output_ranks;
  const auto from = [&](std::int32_t source_rank, std::size_t offset, std::size_t begin, std::size_t end) {
    const std::byte* const source = at(peers.send(source_rank), offset, dtype);
    std::size_t output_count = 0;
    for (std::int32_t rank = 0; rank < comm.ranks(); ++rank) {
      std::byte* const output = at(peers.recv(rank), begin, dtype);
      if (output == source) continue;  // in place
      outputs[output_count] = output;
      output_ranks[output_count++] = rank;
    }
    copy_over_ranks(comm, {source, source_rank, outputs.data(), output_ranks.data(), output_count,
                           (end - begin) * zc_dtype_bytes(dtype), stores, operation.traffic});
  };
  if (operation.collective() == Collective::broadcast) return from(operation.call.root, first, first, first + count);
  for_each_block(blocks_of(operation, comm.ranks()), comm.ranks(), first, first + count, from);
}

}  // namespace zerocomm::comm
