// A layout for people: totals, units, buffers, buckets, and what every rank owns.
#include "base/check.hpp"
#include "shard/layout_text.hpp"
#include "shard/layout_totals.hpp"
#include "shard/ownership.hpp"
#include "shard/stage_table.hpp"

namespace zerocomm::shard {
namespace {

std::string plural(std::size_t count, const char* noun) {
  return format("%zu %s%s", count, noun, count == 1 ? "" : "s");
}

std::string slice_text(const Layout& layout, std::size_t tensor, std::size_t offset, std::size_t count) {
  const Tensor& whole = layout.tensors[tensor];
  if (offset == 0 && count == whole.count) return whole.name;
  return format("%s[%zu..%zu)", whole.name.c_str(), offset, offset + count);
}

void write_head(std::string& text, const Layout& layout) {
  const LayoutTotals totals = layout_totals(layout);
  text += format("layout: stage %d over %s, %saligned to %zu bytes, hash %016llx\n", stage_row(layout.stage).number,
                 plural(static_cast<std::size_t>(layout.ranks), "rank").c_str(),
                 layout.placement == ZC_PLACEMENT_FLAT ? "flat, " : "", layout.alignment_bytes,
                 static_cast<unsigned long long>(layout.hash));
  text += format("  %s (%zu tied), %zu elements, of which %zu are trained\n",
                 plural(layout.tensors.size(), "tensor").c_str(), totals.tied_tensors, totals.stored_count,
                 totals.trainable_count);
  text += format("  %zu bytes of parameters, %zu with padding; the largest unit has %zu, the largest bucket %zu\n",
                 totals.stored_bytes, totals.padded_bytes, totals.largest_unit_bytes, totals.largest_bucket_bytes);
}

void write_use(std::string& text, const Layout& layout, std::size_t index) {
  const Use& use = layout.uses[index];
  text += "      " + slice_text(layout, use.tensor, use.in_tensor.offset, use.in_tensor.count);
  if (use.in_tensor.count == 0) {
    text += ": empty\n";
    return;
  }
  text += format(": %s", plural(use.in_tensor.count, "element").c_str());
  if (use.stored != index)
    text += format(", stored as %s", layout.tensors[layout.tensors[use.tensor].owner].name.c_str());
  else
    text += format(", block %zu at %zu", use.block, use.block_offset);
  const Block& block = layout.blocks[use.block];
  if (use.stored == index && layout.placement == ZC_PLACEMENT_FLAT)
    text += format(", buffer %zu at %zu", block.buffer, place_in_buffer(block, layout.ranks, use.block_offset));
  text += use.bucket == kNoIndex ? std::string(", frozen\n") : format(", bucket %zu\n", use.bucket);
}

void write_units(std::string& text, const Layout& layout) {
  text += "units, in order of first use\n";
  for (std::size_t u = 0; u < layout.units.size(); ++u) {
    const Unit& unit = layout.units[u];
    text += format("  %zu  %s: %s, %zu bytes gathered%s\n", u, unit.name.c_str(),
                   plural(unit.uses.size(), "use").c_str(), unit.gathered_bytes, unit.persistent ? ", persistent" : "");
    for (const std::size_t needed : unit.needs)
      if (needed != u) text += format("      needs unit %s\n", layout.units[needed].name.c_str());
    for (const std::size_t i : unit.uses) write_use(text, layout, i);
  }
}

void write_buffers(std::string& text, const Layout& layout) {
  text += "buffers\n";
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    const std::string gradient = buffer.trainable
                                     ? format("%s gradients reduced to %s", zc_dtype_name(buffer.gradient_dtype),
                                              zc_dtype_name(buffer.shard_gradient_dtype))
                                     : std::string("frozen");
    text += format("  %zu  %s, %s, group %d: %zu elements, %zu per rank\n", b, zc_dtype_name(buffer.dtype),
                   gradient.c_str(), buffer.group, buffer.count, buffer.shard_count);
  }
}

void write_buckets(std::string& text, const Layout& layout) {
  text += "buckets, in the order in which a backward pass completes them\n";
  for (std::size_t k = 0; k < layout.buckets.size(); ++k) {
    const Bucket& bucket = layout.buckets[k];
    text += format("  %zu  buffer %zu: %s, %zu bytes\n", k, bucket.buffer, plural(bucket.count, "element").c_str(),
                   bucket_slot_bytes(layout, bucket));
    for (const std::size_t i : bucket.uses) {
      const Use& use = layout.uses[i];
      text +=
          format("      %s at %zu\n", slice_text(layout, use.tensor, use.in_tensor.offset, use.in_tensor.count).c_str(),
                 use.bucket_offset);
    }
  }
}

void write_shards(std::string& text, const Layout& layout) {
  for (std::size_t rank = 0; rank < layout.pieces.size(); ++rank) {
    text += format("rank %zu\n", rank);
    for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
      const std::size_t owned = owned_count(layout, rank, b), whole = layout.buffers[b].shard_count;
      text += format("  buffer %zu: %zu elements and %zu of padding, %zu bytes\n", b, owned, whole - owned,
                     whole * zc_dtype_bytes(layout.buffers[b].dtype));
      for (const zc_piece& piece : layout.pieces[rank][b])
        text += format("      [%zu..%zu) %s\n", piece.shard_offset, piece.shard_offset + piece.count,
                       slice_text(layout, piece.tensor, piece.tensor_offset, piece.count).c_str());
    }
  }
}

}  // namespace

std::string layout_plain(const Layout& layout) {
  std::string text;
  write_head(text, layout);
  write_units(text, layout);
  write_buffers(text, layout);
  write_buckets(text, layout);
  write_shards(text, layout);
  return text;
}

}  // namespace zerocomm::shard
