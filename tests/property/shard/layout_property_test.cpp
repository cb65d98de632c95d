// What holds for every layout, over random models: sliced and tied tensors, mixed dtypes, empty tensors, 1 to 9 ranks,
// both placements.
#include "property/shard/random_model.hpp"

#include "shard/estimate.hpp"
#include "shard/layout_text.hpp"
#include "shard/layout_totals.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace zerocomm::shard {
namespace {

RC_GTEST_PROP(LayoutProperty, every_real_element_is_owned_by_exactly_one_rank, ()) {
  const Layout layout = random_model().make();
  std::vector<std::vector<int>> owners;
  for (const Tensor& tensor : layout.tensors) owners.emplace_back(tensor.count, 0);
  for (const auto& buffers : layout.pieces)
    for (const auto& pieces : buffers)
      for (const zc_piece& piece : pieces)
        for (std::size_t i = 0; i < piece.count; ++i) ++owners.at(piece.tensor).at(piece.tensor_offset + i);
  for (std::size_t t = 0; t < owners.size(); ++t)
    for (const int count : owners[t]) RC_ASSERT(count == (layout.tensors[t].owner == t ? 1 : 0));
}

RC_GTEST_PROP(LayoutProperty, pieces_are_sorted_disjoint_and_add_up_to_their_buffer, ()) {
  const Layout layout = random_model().make();
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    std::size_t sum = 0;
    for (std::size_t r = 0; r < layout.pieces.size(); ++r) {
      std::size_t end = 0;
      for (const zc_piece& piece : layout.pieces[r][b]) {
        RC_ASSERT(piece.count > 0u);
        RC_ASSERT(piece.shard_offset >= end);
        end = piece.shard_offset + piece.count;
        sum += piece.count;
      }
      RC_ASSERT(end <= layout.buffers[b].shard_count);
    }
    RC_ASSERT(sum == layout.buffers[b].count);
  }
}

RC_GTEST_PROP(LayoutProperty, every_start_is_aligned, ()) {
  const Layout layout = random_model().make();
  for (const Block& block : layout.blocks) {
    const Buffer& buffer = layout.buffers[block.buffer];
    const std::size_t bytes = zc_dtype_bytes(buffer.dtype);
    const std::size_t step = std::max(layout.alignment_bytes, bytes);
    RC_ASSERT(block.unit_offset_bytes % step == 0u);
    RC_ASSERT(block.shard_offset * bytes % step == 0u);
    RC_ASSERT(block.cut_offset * bytes % step == 0u);
    RC_ASSERT(buffer.shard_count * bytes % step == 0u);
    if (layout.placement == ZC_PLACEMENT_PER_UNIT)
      RC_ASSERT(block.count == block.shard_count * static_cast<std::size_t>(layout.ranks));
    else
      RC_ASSERT(block.count == block.real_count);
    if (buffer.trainable) {
      const std::size_t reduced = zc_dtype_bytes(buffer.shard_gradient_dtype);
      RC_ASSERT(block.shard_offset * reduced % std::max(layout.alignment_bytes, reduced) == 0u);
      RC_ASSERT(block.cut_offset * reduced % std::max(layout.alignment_bytes, reduced) == 0u);
    }
  }
  for (std::size_t i = 0; i < layout.uses.size(); ++i) {
    if (!is_stored(layout, i)) continue;
    const Use& use = layout.uses[i];
    const Buffer& buffer = layout.buffers[layout.blocks[use.block].buffer];
    const std::size_t bytes = zc_dtype_bytes(buffer.dtype);
    RC_ASSERT(use.block_offset * bytes % std::max(layout.alignment_bytes, bytes) == 0u);
    if (use.in_tensor.count > 0)
      RC_ASSERT(use.block_offset + use.in_tensor.count <= layout.blocks[use.block].real_count);
    if (use.bucket == kNoIndex) continue;
    const std::size_t gradient = zc_dtype_bytes(buffer.gradient_dtype);
    RC_ASSERT(use.bucket_offset * gradient % std::max(layout.alignment_bytes, gradient) == 0u);
  }
}

RC_GTEST_PROP(LayoutProperty, blocks_of_a_unit_do_not_overlap_in_its_gathered_memory, ()) {
  const Layout layout = random_model().make();
  for (const Unit& unit : layout.units) {
    std::size_t end = 0;
    for (const std::size_t b : unit.blocks) {
      const Block& block = layout.blocks[b];
      RC_ASSERT(block.unit_offset_bytes >= end);
      end = block.unit_offset_bytes + block.count * zc_dtype_bytes(layout.buffers[block.buffer].dtype);
    }
    RC_ASSERT(end == unit.gathered_bytes);
  }
}

RC_GTEST_PROP(LayoutProperty, every_trained_element_is_in_exactly_one_bucket_run_of_its_owner, ()) {
  const Layout layout = random_model().make();
  std::set<std::size_t> seen;
  for (std::size_t k = 0; k < layout.buckets.size(); ++k) {
    const Bucket& bucket = layout.buckets[k];
    std::size_t end = 0, count = 0, run_index = 0;
    for (const std::size_t i : bucket.uses) {
      const Use& use = layout.uses[i];
      RC_ASSERT(use.bucket == k);
      RC_ASSERT(seen.insert(i).second);
      std::size_t done = 0;
      for (; run_index < bucket.runs.size() && bucket.runs[run_index].use == i; ++run_index) {
        const BucketRun& run = bucket.runs[run_index];
        RC_ASSERT(run.bucket_offset >= end);
        RC_ASSERT(run.use_offset == done);
        RC_ASSERT(run.bucket_offset == use.bucket_offset + done);
        const auto& pieces = layout.pieces[static_cast<std::size_t>(run.owner)][bucket.buffer];
        RC_ASSERT(std::any_of(pieces.begin(), pieces.end(), [&](const zc_piece& piece) {
          return piece.tensor == use.tensor && piece.tensor_offset == use.in_tensor.offset + done &&
                 piece.shard_offset == run.shard_offset && piece.count == run.count;
        }));
        end = run.bucket_offset + run.count;
        done += run.count;
      }
      RC_ASSERT(done == use.in_tensor.count);
      count += done;
    }
    RC_ASSERT(run_index == bucket.runs.size());
    RC_ASSERT(count == bucket.count);
    RC_ASSERT(end <= bucket.padded_count);
    const std::size_t bytes = bucket.count * zc_dtype_bytes(layout.buffers[bucket.buffer].gradient_dtype);
    RC_ASSERT(bytes <= layout.bucket_bytes || bucket.uses.size() == 1u);
  }
  for (std::size_t i = 0; i < layout.uses.size(); ++i) {
    const bool trained = layout.tensors[layout.uses[i].tensor].trainable && layout.uses[i].in_tensor.count > 0;
    RC_ASSERT(seen.contains(i) == (is_stored(layout, i) && trained));
  }
}

RC_GTEST_PROP(LayoutProperty, the_same_arguments_give_the_same_hash_and_the_same_text, ()) {
  const LayoutBuilder builder = random_model();
  const Layout a = builder.make(), b = builder.make();
  RC_ASSERT(a.hash == b.hash);
  RC_ASSERT(layout_json(a) == layout_json(b));
}

RC_GTEST_PROP(LayoutProperty, any_change_gives_another_hash, ()) {
  LayoutBuilder builder = random_model();
  builder.uses.clear();
  for (TensorRow& row : builder.tensors) row.tied_to.clear();
  const std::uint64_t before = builder.make().hash;
  TensorRow& row = builder.tensors[pick(0, builder.tensors.size())];
  switch (pick(0, 13)) {
    case 0:
      row.name += "x";
      break;
    case 1:
      row.unit += "x";
      break;
    case 2:
      row.count += 1;
      break;
    case 3:
      row.frozen = !row.frozen;
      row.dtype = row.dtype == ZC_DTYPE_F16 ? ZC_DTYPE_F32 : ZC_DTYPE_F16;
      break;
    case 4:
      row.group += 1;
      break;
    case 5:
      builder.ranks += 1;
      break;
    case 6:
      builder.stage = builder.stage == ZC_STAGE_3 ? ZC_STAGE_0 : ZC_STAGE_3;
      break;
    case 7:
      builder.alignment_bytes *= 2;
      break;
    case 8:
      builder.bucket_bytes += 1;
      break;
    case 9:
      builder.persistent_bytes += 1;
      break;
    case 10:
      builder.tensors.push_back({"another", "u0", 0});
      break;
    case 11:
      builder.placement = builder.placement == ZC_PLACEMENT_FLAT ? ZC_PLACEMENT_PER_UNIT : ZC_PLACEMENT_FLAT;
      break;
    default: {
      TensorRow tie = builder.tensors[0];
      tie.name = "tie";
      tie.tied_to = builder.tensors[0].name;
      builder.tensors.push_back(tie);
    }
  }
  RC_ASSERT(builder.make().hash != before);
}

RC_GTEST_PROP(LayoutProperty, estimates_of_all_ranks_add_up, ()) {
  const Layout layout = random_model().make();
  const LayoutTotals totals = layout_totals(layout);
  std::size_t moments = 0, reduced = 0, gathered = 0, parameters = 0;
  for (std::int32_t r = 0; r < layout.ranks; ++r) {
    const zc_estimate estimate = estimate_layout(layout, r, {});
    RC_ASSERT(estimate.padding_bytes <= estimate.state_bytes);
    moments += estimate.moment_bytes;
    reduced += estimate.reduce_elements;
    gathered += estimate.gather_elements;
    parameters += estimate.parameter_bytes;
  }
  const auto n = static_cast<std::size_t>(layout.ranks);
  const std::size_t one_way = (n - 1) * totals.trainable_count;
  if (layout.stage == ZC_STAGE_0) {
    RC_ASSERT(moments == n * 8 * totals.trainable_count);
    RC_ASSERT(reduced == 2 * one_way);
    RC_ASSERT(gathered == 0u);
  } else {
    RC_ASSERT(moments == 8 * totals.trainable_count);
    RC_ASSERT(reduced == one_way);
  }
  if (layout.stage == ZC_STAGE_1 || layout.stage == ZC_STAGE_2) RC_ASSERT(gathered == one_way);
  if (layout.stage == ZC_STAGE_3) {
    RC_ASSERT(parameters == totals.padded_bytes);
    std::size_t fetched = 0;
    for (std::size_t i = 0; i < layout.uses.size(); ++i)
      if (is_stored(layout, i))
        fetched += (layout.units[layout.uses[i].unit].persistent ? 1 : 2) * layout.uses[i].in_tensor.count;
    RC_ASSERT(gathered == (n - 1) * fetched);
  } else {
    RC_ASSERT(parameters == n * totals.padded_bytes);
  }
}

}  // namespace
}  // namespace zerocomm::shard
