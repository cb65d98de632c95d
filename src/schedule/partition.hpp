// Maps chunk numbers to ranges of elements. The only place that knows about remainders.
#pragma once

#include "base/math.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace zerocomm::schedule {

// A vector is cut into blocks (one per rank where a collective has ranks' parts), each block into `pieces` chunks.
class Partition {
 public:
  // `count` elements in `blocks` blocks; the first count % blocks blocks get one more. The same rule cuts blocks.
  static Partition even(std::size_t count, std::uint32_t blocks, std::uint32_t pieces = 1);

  // Block i has block_counts[i] elements: the v-collectives. Throws OVERFLOW if the sum does not fit.
  static Partition of_counts(std::span<const std::size_t> block_counts, std::uint32_t pieces = 1);

  // Every chunk is one element: for reasoning in chunks.
  static Partition unit(std::uint32_t chunks) { return even(chunks, chunks == 0 ? 1 : chunks); }

  std::size_t count() const { return count_; }
  std::size_t chunks() const { return std::size_t{blocks_} * pieces_; }

  // Elements of one chunk. An empty chunk still has its place.
  Part range(std::size_t chunk) const;
  // Elements of `n_chunks` chunks that follow each other; {0, 0} for none.
  Part range(std::size_t chunk, std::size_t n_chunks) const;

 private:
  Part block(std::size_t index) const;

  std::size_t count_ = 0;
  std::uint32_t blocks_ = 1;
  std::uint32_t pieces_ = 1;
  std::vector<std::size_t> offsets_;  // of blocks, with the end; empty when cut evenly
};

}  // namespace zerocomm::schedule
