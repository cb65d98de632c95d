// What each collective promises, in chunks: which chunks a rank brings, which it gets, and who contributes to them.
// Verifier and oracle judge every algorithm by this page.
#pragma once

#include "schedule/step.hpp"

namespace zerocomm::schedule {

// Chunks [first, first + count).
struct ChunkRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  constexpr bool contains(std::uint32_t chunk) const { return chunk >= first && chunk - first < count; }
  constexpr bool contains(std::uint32_t chunk, std::uint32_t n) const {
    return chunk >= first && n <= count && chunk - first <= count - n;
  }
  friend bool operator==(const ChunkRange&, const ChunkRange&) = default;
};

constexpr bool is_reduction(Collective c) { return c == Collective::all_reduce || c == Collective::reduce_scatter; }

// Does the vector consist of one equal block of chunks per rank?
constexpr bool has_blocks(Collective c) { return is_reduction(c) || c == Collective::all_gather; }

// The block of chunks that belongs to `rank`.
inline ChunkRange block_of(const Key& key, std::uint32_t rank) {
  const std::uint32_t each = key.chunks / key.ranks;
  return {rank * each, each};
}

// The chunks that `rank` has in its input.
inline ChunkRange input_chunks(const Key& key, std::uint32_t rank) {
  switch (key.collective) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
      return {0, key.chunks};
    case Collective::all_gather:
      return block_of(key, rank);
    case Collective::broadcast:
      return {0, rank == key.root ? key.chunks : 0};
    case Collective::barrier:
      break;
  }
  return {};
}

// The chunks that `rank` has in its output when the collective is done.
inline ChunkRange output_chunks(const Key& key, std::uint32_t rank) {
  switch (key.collective) {
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::broadcast:
      return {0, key.chunks};
    case Collective::reduce_scatter:
      return block_of(key, rank);
    case Collective::barrier:
      break;
  }
  return {};
}

// Must output chunk `chunk` hold the contribution of `rank`, once?
inline bool contributes(const Key& key, std::uint32_t rank, std::uint32_t chunk) {
  return input_chunks(key, rank).contains(chunk);
}

}  // namespace zerocomm::schedule
