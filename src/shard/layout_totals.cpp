// Sums over a layout. None can overflow: make_layout checked larger ones.
#include "shard/layout_totals.hpp"

#include <algorithm>

namespace zerocomm::shard {

LayoutTotals layout_totals(const Layout& layout) {
  LayoutTotals totals;
  for (std::size_t t = 0; t < layout.tensors.size(); ++t) {
    const Tensor& tensor = layout.tensors[t];
    if (tensor.owner != t) {
      ++totals.tied_tensors;
      continue;
    }
    totals.stored_count += tensor.count;
    totals.stored_bytes += tensor.count * zc_dtype_bytes(tensor.dtype);
    if (tensor.trainable) totals.trainable_count += tensor.count;
  }
  for (const Block& block : layout.blocks)
    totals.padded_bytes += block.padded_count * zc_dtype_bytes(layout.buffers[block.buffer].dtype);
  for (const Unit& unit : layout.units)
    totals.largest_unit_bytes = std::max(totals.largest_unit_bytes, unit.gathered_bytes);
  for (const Bucket& bucket : layout.buckets)
    totals.largest_bucket_bytes = std::max(totals.largest_bucket_bytes, bucket_slot_bytes(layout, bucket));
  return totals;
}

std::size_t bucket_slot_bytes(const Layout& layout, const Bucket& bucket) {
  return bucket.padded_count * zc_dtype_bytes(layout.buffers[bucket.buffer].gradient_dtype);
}

std::size_t owned_count(const Layout& layout, std::size_t rank, std::size_t buffer) {
  std::size_t count = 0;
  for (const zc_piece& piece : layout.pieces[rank][buffer]) count += piece.count;
  return count;
}

}  // namespace zerocomm::shard
