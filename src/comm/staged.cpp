#include "comm/staged.hpp"

#include "comm/reduce_leaf.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace zerocomm::comm {
namespace {

// Elements from `first` on that fit into a piece of at most `most`.
std::size_t piece(std::size_t count, std::size_t first, std::size_t most) {
  return first < count ? std::min(most, count - first) : 0;
}

void copy_in(std::byte* half, const void* from, std::size_t first, std::size_t count, zc_dtype dtype) {
  if (count != 0) std::memcpy(half, at(from, first, dtype), count * zc_dtype_bytes(dtype));
}

void reduce_own(const Comm& comm, const void* const* inputs, void* output, std::size_t count,
                const Reduction& reduction, zc_traffic traffic) {
  const std::int32_t self = comm.rank();
  reduce_over_ranks(comm, {inputs, &output, &self, 1, count, reduction.dtype, reduction.output_dtype, reduction.op,
                           reduction.args, traffic});
}

}  // namespace

zc_status staged_all_reduce(const Comm& comm, Staging& staging, const void* send, void* recv, std::size_t count,
                            const Reduction& reduction, zc_traffic traffic) noexcept {
  const auto ranks = static_cast<std::size_t>(comm.ranks()), self = static_cast<std::size_t>(comm.rank());
  const std::size_t most_in = staging.half_bytes() / zc_dtype_bytes(reduction.dtype),
                    most_out = staging.half_bytes() / zc_dtype_bytes(reduction.output_dtype) * ranks;
  const std::size_t most = std::min(most_in, most_out) / ranks * ranks;
  for (std::size_t first = 0; first < count; first += most) {
    const std::size_t now = piece(count, first, most);
    const Part own = even_part(now, ranks, self);
    // Each rank reduces its part of the piece over all ranks, then everybody collects the parts.
    ZC_TRY(staging.round([&](std::byte* half) { copy_in(half, send, first, now, reduction.dtype); },
                         [&] {
                           std::array<const void*, kMostRanks> inputs;
                           for (std::size_t rank = 0; rank < ranks; ++rank)
                             inputs[rank] =
                                 at(staging.half(static_cast<std::int32_t>(rank)), own.offset, reduction.dtype);
                           reduce_own(comm, inputs.data(), at(recv, first + own.offset, reduction.output_dtype),
                                      own.count, reduction, traffic);
                         }));
    ZC_TRY(staging.round(
        [&](std::byte* half) { copy_in(half, recv, first + own.offset, own.count, reduction.output_dtype); },
        [&] {
          for (std::size_t step = 1; step < ranks; ++step) {
            const std::size_t peer = (self + step) % ranks;
            const Part part = even_part(now, ranks, peer);
            comm.copy(at(recv, first + part.offset, reduction.output_dtype), staging.half(static_cast<int>(peer)),
                      part.count * zc_dtype_bytes(reduction.output_dtype), static_cast<std::int32_t>(peer), traffic);
          }
        }));
  }
  return ZC_OK;
}

zc_status staged_reduce_scatter(const Comm& comm, Staging& staging, const void* send, void* recv, const Blocks& blocks,
                                const Reduction& reduction, zc_traffic traffic) noexcept {
  constexpr std::size_t kLine = 64;
  const std::int32_t self = comm.rank();
  const auto ranks = static_cast<std::size_t>(comm.ranks());
  const std::size_t stride_bytes = staging.half_bytes() / ranks / kLine * kLine,
                    most = stride_bytes / zc_dtype_bytes(reduction.dtype);
  for (std::size_t first = 0; first < blocks.most(); first += most) {
    const auto fill = [&](std::byte* half) {
      for (std::int32_t peer = 0; peer < comm.ranks(); ++peer)
        if (peer != self)  // nobody else reads what this rank keeps
          copy_in(half + static_cast<std::size_t>(peer) * stride_bytes, send, blocks.offset(peer) + first,
                  piece(blocks.count(peer), first, most), reduction.dtype);
    };
    const auto read = [&] {
      const std::size_t now = piece(blocks.count(self), first, most);
      if (now == 0) return;
      std::array<const void*, kMostRanks> inputs;
      for (std::size_t rank = 0; rank < ranks; ++rank)
        inputs[rank] = staging.half(static_cast<std::int32_t>(rank)) + static_cast<std::size_t>(self) * stride_bytes;
      inputs[static_cast<std::size_t>(self)] = at(send, blocks.offset(self) + first, reduction.dtype);
      reduce_own(comm, inputs.data(), at(recv, first, reduction.output_dtype), now, reduction, traffic);
    };
    ZC_TRY(staging.round(fill, read));
  }
  return ZC_OK;
}

zc_status staged_all_gather(const Comm& comm, Staging& staging, const void* send, void* recv, const Blocks& blocks,
                            zc_dtype dtype, bool in_place, zc_traffic traffic) noexcept {
  const std::int32_t self = comm.rank();
  const std::size_t element_bytes = zc_dtype_bytes(dtype), most = staging.half_bytes() / element_bytes;
  if (!in_place && blocks.count(self) != 0)
    comm.copy(at(recv, blocks.offset(self), dtype), send, blocks.count(self) * element_bytes, self, traffic);
  for (std::size_t first = 0; first < blocks.most(); first += most) {
    const auto read = [&] {
      for (std::int32_t step = 1; step < comm.ranks(); ++step) {
        const std::int32_t peer = (self + step) % comm.ranks();
        if (const std::size_t now = piece(blocks.count(peer), first, most); now != 0)
          comm.copy(at(recv, blocks.offset(peer) + first, dtype), staging.half(peer), now * element_bytes, peer,
                    traffic);
      }
    };
    ZC_TRY(staging.round(
        [&](std::byte* half) { copy_in(half, send, first, piece(blocks.count(self), first, most), dtype); }, read));
  }
  return ZC_OK;
}

zc_status staged_broadcast(const Comm& comm, Staging& staging, void* buffer, std::size_t bytes, std::int32_t root,
                           zc_traffic traffic) noexcept {
  const std::size_t most = staging.half_bytes();
  for (std::size_t first = 0; first < bytes; first += most) {
    const std::size_t now = piece(bytes, first, most);
    std::byte* const place = static_cast<std::byte*>(buffer) + first;
    ZC_TRY(staging.round(
        [&](std::byte* half) {
          if (comm.rank() == root) std::memcpy(half, place, now);
        },
        [&] {
          if (comm.rank() != root) comm.copy(place, staging.half(root), now, root, traffic);
        }));
  }
  return ZC_OK;
}

}  // namespace zerocomm::comm
