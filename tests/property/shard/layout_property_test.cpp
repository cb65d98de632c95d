// What holds for every layout, over random models: sliced and tied tensors, mixed dtypes, empty tensors, 1 to 9 ranks.
#include "unit/shard/layout_builder.hpp"

#include "shard/estimate.hpp"
#include "shard/layout_text.hpp"
#include "shard/layout_totals.hpp"
#include "shard/unit_partition.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <set>

namespace zerocomm::shard {
namespace {

// Evenly from [low, high), however small the case is.
std::size_t pick(std::size_t low, std::size_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(low, high));
}

TensorRow random_tensor(std::size_t index) {
  TensorRow row;
  row.name = numbered_name('t', index);
  row.unit = numbered_name('u', pick(0, 4));
  const std::size_t limits[] = {1, 20, 20, 400};
  row.count = pick(0, limits[pick(0, 4)]);
  row.frozen = *rc::gen::weightedElement<bool>({{4, false}, {1, true}});
  row.dtype = row.frozen ? *rc::gen::element(ZC_DTYPE_F32, ZC_DTYPE_I64, ZC_DTYPE_F8E4M3)
                         : *rc::gen::element(ZC_DTYPE_F32, ZC_DTYPE_F16, ZC_DTYPE_BF16);
  row.gradient_dtype = row.frozen ? ZC_DTYPE_NONE : *rc::gen::element(ZC_DTYPE_NONE, ZC_DTYPE_F32, ZC_DTYPE_BF16);
  row.group = *rc::gen::weightedElement<std::int32_t>({{4, 0}, {1, 1}});
  return row;
}

void add_random_tie(LayoutBuilder& builder) {
  const auto owner = pick(0, builder.tensors.size());
  if (!builder.tensors[owner].tied_to.empty()) return;
  TensorRow tie = builder.tensors[owner];
  tie.name = numbered_name('t', builder.tensors.size());
  tie.unit = numbered_name('u', pick(0, 4));
  tie.tied_to = builder.tensors[owner].name;
  builder.tensors.push_back(tie);
}

// Every tensor in halves, the halves in units of their own; ties are sliced as their owners.
void slice_all(LayoutBuilder& builder) {
  for (std::size_t t = 0; t < builder.tensors.size(); ++t) {
    const std::size_t count = builder.tensors[t].count, half = count / 2;
    builder.uses.push_back({t, {0, half}, std::string("a").append(builder.tensors[t].unit)});
    builder.uses.push_back({t, {half, count - half}, std::string("b").append(builder.tensors[t].unit)});
  }
}

LayoutBuilder random_model() {
  LayoutBuilder builder;
  const auto count = pick(1, 10);
  for (std::size_t i = 0; i < count; ++i) builder.tensors.push_back(random_tensor(i));
  if (*rc::gen::arbitrary<bool>()) add_random_tie(builder);
  if (*rc::gen::arbitrary<bool>()) slice_all(builder);
  builder.ranks = static_cast<std::int32_t>(pick(1, 10));
  builder.stage = *rc::gen::element(ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3);
  builder.alignment_bytes = *rc::gen::element<std::size_t>(1, 4, 16, 64, 256);
  builder.bucket_bytes = *rc::gen::element<std::size_t>(1, 64, 1000, 100'000);
  builder.persistent_bytes = *rc::gen::element<std::size_t>(0, 500);
  builder.shard_gradient_dtype = *rc::gen::element(ZC_DTYPE_NONE, ZC_DTYPE_BF16);
  return builder;
}

bool is_stored(const Layout& layout, std::size_t use) { return layout.uses[use].stored == use; }

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
    RC_ASSERT(block.count == block.shard_count * static_cast<std::size_t>(layout.ranks));
    if (buffer.trainable) {
      const std::size_t reduced = zc_dtype_bytes(buffer.shard_gradient_dtype);
      RC_ASSERT(block.shard_offset * reduced % std::max(layout.alignment_bytes, reduced) == 0u);
    }
  }
  for (std::size_t i = 0; i < layout.uses.size(); ++i) {
    if (!is_stored(layout, i)) continue;
    const Use& use = layout.uses[i];
    const Buffer& buffer = layout.buffers[layout.blocks[use.block].buffer];
    const std::size_t bytes = zc_dtype_bytes(buffer.dtype);
    RC_ASSERT(use.block_offset * bytes % std::max(layout.alignment_bytes, bytes) == 0u);
    RC_ASSERT(use.block_offset + use.in_tensor.count <= layout.blocks[use.block].count);
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
        const Block& block = layout.blocks[use.block];
        const std::size_t place = use.block_offset + done;
        RC_ASSERT(static_cast<std::size_t>(run.owner) == place / block.shard_count);
        RC_ASSERT(run.shard_offset == block.shard_offset + place % block.shard_count);
        RC_ASSERT(place % block.shard_count + run.count <= block.shard_count);
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

// The elements of every stored use, as bytes that depend on tensor and place.
std::vector<unsigned char> use_bytes(const Layout& layout, std::size_t use) {
  const zc_span slice = layout.uses[use].in_tensor;
  const std::size_t bytes = zc_dtype_bytes(layout.tensors[layout.uses[use].tensor].dtype);
  std::vector<unsigned char> data(slice.count * bytes);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<unsigned char>(1 + (layout.uses[use].tensor * 31 + (slice.offset * bytes + i) * 7) % 251);
  return data;
}

RC_GTEST_PROP(LayoutProperty, concatenated_shards_give_the_unit_back_and_padding_is_zero, ()) {
  const Layout layout = random_model().make();
  std::vector<std::vector<std::vector<unsigned char>>> shards(layout.pieces.size());
  for (std::size_t r = 0; r < shards.size(); ++r) {
    std::vector<void*> pointers;
    for (const Buffer& buffer : layout.buffers)
      shards[r].emplace_back(buffer.shard_count * zc_dtype_bytes(buffer.dtype), 0xee);
    for (auto& shard : shards[r]) pointers.push_back(shard.data());
    for (std::size_t u = 0; u < layout.units.size(); ++u) {
      std::vector<std::vector<unsigned char>> full;
      std::vector<const void*> full_pointers;
      for (const std::size_t i : layout.units[u].uses) full.push_back(use_bytes(layout, i));
      for (const auto& data : full) full_pointers.push_back(data.data());
      partition_unit(layout, static_cast<std::int32_t>(r), u, full_pointers.data(), pointers.data());
    }
  }
  for (std::size_t b = 0; b < layout.blocks.size(); ++b) {
    const Block& block = layout.blocks[b];
    const std::size_t bytes = zc_dtype_bytes(layout.buffers[block.buffer].dtype);
    std::vector<unsigned char> whole, wanted(block.count * bytes, 0);
    for (const auto& of_rank : shards) {
      const auto begin = of_rank[block.buffer].begin() + static_cast<std::ptrdiff_t>(block.shard_offset * bytes);
      whole.insert(whole.end(), begin, begin + static_cast<std::ptrdiff_t>(block.shard_count * bytes));
    }
    for (const std::size_t i : layout.units[block.unit].uses) {
      if (!is_stored(layout, i) || layout.uses[i].block != b) continue;
      const std::vector<unsigned char> data = use_bytes(layout, i);
      std::copy(data.begin(), data.end(),
                wanted.begin() + static_cast<std::ptrdiff_t>(layout.uses[i].block_offset * bytes));
    }
    RC_ASSERT(whole == wanted);
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
  switch (pick(0, 12)) {
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
