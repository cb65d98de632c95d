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

// `runs` ranges of equal length, each `stride` chunks after the last.
struct ChunkRuns {
  ChunkRange first;
  std::uint32_t runs = 1;
  std::uint32_t stride = 0;

  constexpr ChunkRange run(std::uint32_t i) const { return {first.first + i * stride, first.count}; }
  constexpr std::uint64_t count() const { return std::uint64_t{first.count} * runs; }
  // All n chunks, in one run.
  constexpr bool contains(std::uint32_t chunk, std::uint32_t n = 1) const {
    if (runs == 0 || chunk < first.first) return false;
    const std::uint32_t i = stride == 0 ? 0 : (chunk - first.first) / stride;
    return i < runs && run(i).contains(chunk, n);
  }
};

constexpr bool is_reduction(Collective c) {
  return c == Collective::all_reduce || c == Collective::reduce_scatter || c == Collective::reduce;
}

constexpr bool has_root(Collective c) {
  return c == Collective::broadcast || c == Collective::reduce || c == Collective::gather_to_root ||
         c == Collective::scatter_from_root;
}

// How many equal blocks the vector consists of: one for each rank where ranks have parts, one for each pair (from, to)
// in all_to_all. The number of chunks is a multiple of it.
constexpr std::uint64_t block_count(Collective c, std::uint32_t ranks) {
  switch (c) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::gather_to_root:
    case Collective::scatter_from_root:
      return ranks;
    case Collective::all_to_all:
      return std::uint64_t{ranks} * ranks;
    case Collective::broadcast:
    case Collective::barrier:
    case Collective::reduce:
      break;
  }
  return 1;
}

// Block number `index` of the vector.
inline ChunkRange nth_block(const Key& key, std::uint32_t index) {
  const auto each = static_cast<std::uint32_t>(key.chunks / block_count(key.collective, key.ranks));
  return {index * each, each};
}

// The block of chunks that belongs to `rank`. Not for all_to_all.
inline ChunkRange block_of(const Key& key, std::uint32_t rank) { return nth_block(key, rank); }

// What rank `from` has for rank `to` in all_to_all: blocks stand row by row. The input of a rank is its row, its output
// is its column, so a chunk number is one and the same piece of data wherever it is.
inline ChunkRange pair_block(const Key& key, std::uint32_t from, std::uint32_t to) {
  return nth_block(key, from * key.ranks + to);
}

// The chunks that `rank` has in its input.
inline ChunkRange input_chunks(const Key& key, std::uint32_t rank) {
  switch (key.collective) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
    case Collective::reduce:
      return {0, key.chunks};
    case Collective::all_gather:
    case Collective::gather_to_root:
      return block_of(key, rank);
    case Collective::broadcast:
    case Collective::scatter_from_root:
      return {0, rank == key.root ? key.chunks : 0};
    case Collective::all_to_all:
      return {pair_block(key, rank, 0).first, key.chunks / key.ranks};
    case Collective::barrier:
      break;
  }
  return {};
}

// The chunks that `rank` has in its output when the collective is done.
inline ChunkRuns output_chunks(const Key& key, std::uint32_t rank) {
  switch (key.collective) {
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::broadcast:
      return {{0, key.chunks}};
    case Collective::reduce_scatter:
    case Collective::scatter_from_root:
      return {block_of(key, rank)};
    case Collective::reduce:
    case Collective::gather_to_root:
      return {{0, rank == key.root ? key.chunks : 0}};
    case Collective::all_to_all:
      return {pair_block(key, 0, rank), key.ranks, key.chunks / key.ranks};
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
