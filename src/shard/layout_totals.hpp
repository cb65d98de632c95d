// Sums over a layout.
#pragma once

#include "shard/layout.hpp"

namespace zerocomm::shard {

struct LayoutTotals {
  std::size_t tied_tensors = 0;
  std::size_t stored_count = 0;     // elements of untied tensors
  std::size_t trainable_count = 0;  // of those, trained
  std::size_t stored_bytes = 0;
  std::size_t padded_bytes = 0;  // of the shards of all ranks
  std::size_t largest_unit_bytes = 0;
  std::size_t largest_bucket_bytes = 0;
};
LayoutTotals layout_totals(const Layout& layout);

// Bytes of a bucket's slot.
std::size_t bucket_slot_bytes(const Layout& layout, const Bucket& bucket);

// Real elements that a rank owns of a buffer.
std::size_t owned_count(const Layout& layout, std::size_t rank, std::size_t buffer);

}  // namespace zerocomm::shard
