// How collectives cut vectors: one block per rank, and places in them. Pure.
#pragma once

#include "base/math.hpp"
#include "comm/call.hpp"

#include <zerocomm/types.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace zerocomm::comm {

// Most ranks of a communicator: arrays of addresses live on the stack.
inline constexpr std::size_t kMostRanks = 1024;

// Lanes of staging begin at cache lines.
inline constexpr std::size_t kLineBytes = 64;

inline std::size_t index(std::int32_t rank) { return static_cast<std::size_t>(rank); }

// Elements from `first` on that fit into a piece of at most `most`.
inline std::size_t piece(std::size_t count, std::size_t first, std::size_t most) {
  return first < count ? std::min(most, count - first) : 0;
}

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
  std::size_t most() const { return counts_ ? *std::max_element(counts_, counts_ + ranks_) : count_; }
  std::uint64_t hash() const { return counts_ ? hash_counts(counts_, ranks_) : 0; }

 private:
  std::size_t ranks_;
  std::size_t count_;
  const std::size_t* counts_;
};

// Are blocks so uneven that the rank with the largest is waited for?
inline bool is_skewed(const Blocks& blocks, std::size_t ranks) {
  const std::size_t mean =
      blocks.offset(static_cast<std::int32_t>(ranks)) / ranks;  // that the sum fits is known by now
  return blocks.most() > mean + mean / 4;
}

// Calls with(rank, offset in its block, begin, end) for the part of every block that lies in [begin, end) of the
// vector.
template <class With>
void for_each_block(const Blocks& blocks, std::int32_t ranks, std::size_t begin, std::size_t end, With&& with) {
  std::size_t offset = 0;  // of the block
  for (std::int32_t rank = 0; rank < ranks && offset < end; ++rank) {
    const std::size_t after = offset + blocks.count(rank), first = std::max(begin, offset), last = std::min(end, after);
    if (first < last) with(rank, first - offset, first, last);
    offset = after;
  }
}

// A vector cut into equal parts, at cache lines where that leaves them about equal: two ranks that write into one line
// take it from each other.
inline Part line_part(std::size_t count, std::size_t parts, std::size_t index, std::size_t element_bytes) {
  constexpr std::size_t kLeastLines = 8;  // of a part, for one more not to matter
  const std::size_t line = kLineBytes / element_bytes, lines = ceil_div(count, line);
  if (lines < kLeastLines * parts) return even_part(count, parts, index);
  const Part part = even_part(lines, parts, index);
  const std::size_t first = part.offset * line;
  return {first, std::min(count, first + part.count * line) - first};
}

inline const std::byte* at(const void* base, std::size_t elements, zc_dtype dtype) {
  return static_cast<const std::byte*>(base) + elements * zc_dtype_bytes(dtype);
}
inline std::byte* at(void* base, std::size_t elements, zc_dtype dtype) {
  return static_cast<std::byte*>(base) + elements * zc_dtype_bytes(dtype);
}

}  // namespace zerocomm::comm
