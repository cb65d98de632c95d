// Chunk numbers to ranges of elements.
#include "schedule/partition.hpp"

namespace zerocomm::schedule {

Partition Partition::even(std::size_t count, std::uint32_t blocks, std::uint32_t pieces) {
  ZC_REQUIRE(blocks > 0 && pieces > 0, ZC_ARGUMENT, "a partition into %u blocks of %u pieces", blocks, pieces);
  Partition partition;
  partition.count_ = count;
  partition.blocks_ = blocks;
  partition.pieces_ = pieces;
  return partition;
}

Partition Partition::of_counts(std::span<const std::size_t> block_counts, std::uint32_t pieces) {
  ZC_REQUIRE(block_counts.size() <= UINT32_MAX, ZC_ARGUMENT, "a partition into %zu blocks", block_counts.size());
  Partition partition = even(0, static_cast<std::uint32_t>(block_counts.size()), pieces);
  partition.offsets_.push_back(0);
  for (const std::size_t count : block_counts)
    partition.offsets_.push_back(checked_add(partition.offsets_.back(), count));
  partition.count_ = partition.offsets_.back();
  return partition;
}

Part Partition::block(std::size_t index) const {
  if (offsets_.empty()) return even_part(count_, blocks_, index);
  return {offsets_[index], offsets_[index + 1] - offsets_[index]};
}

Part Partition::range(std::size_t chunk) const {
  ZC_REQUIRE(chunk < chunks(), ZC_ARGUMENT, "chunk %zu of a partition into %zu", chunk, chunks());
  const Part whole = block(chunk / pieces_);
  const Part piece = even_part(whole.count, pieces_, chunk % pieces_);
  return {whole.offset + piece.offset, piece.count};
}

Part Partition::range(std::size_t chunk, std::size_t n_chunks) const {
  if (n_chunks == 0) return {};
  const Part first = range(chunk), last = range(checked_add(chunk, n_chunks - 1));
  return {first.offset, last.offset + last.count - first.offset};
}

}  // namespace zerocomm::schedule
