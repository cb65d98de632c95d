// Random models for properties of layouts: sliced and tied tensors, mixed dtypes, empty tensors, 1 to 9 ranks, both
// placements.
#pragma once

#include "unit/shard/layout_builder.hpp"

#include <rapidcheck.h>

namespace zerocomm::shard {

// Evenly from [low, high), however small the case is.
inline std::size_t pick(std::size_t low, std::size_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(low, high));
}

inline TensorRow random_tensor(std::size_t index) {
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

inline void add_random_tie(LayoutBuilder& builder) {
  const auto owner = pick(0, builder.tensors.size());
  if (!builder.tensors[owner].tied_to.empty()) return;
  TensorRow tie = builder.tensors[owner];
  tie.name = numbered_name('t', builder.tensors.size());
  tie.unit = numbered_name('u', pick(0, 4));
  tie.tied_to = builder.tensors[owner].name;
  builder.tensors.push_back(tie);
}

// Every tensor in halves, the halves in units of their own; ties are sliced as their owners.
inline void slice_all(LayoutBuilder& builder) {
  for (std::size_t t = 0; t < builder.tensors.size(); ++t) {
    const std::size_t count = builder.tensors[t].count, half = count / 2;
    builder.uses.push_back({t, {0, half}, std::string("a").append(builder.tensors[t].unit)});
    builder.uses.push_back({t, {half, count - half}, std::string("b").append(builder.tensors[t].unit)});
  }
}

inline LayoutBuilder random_model() {
  LayoutBuilder builder;
  const auto count = pick(1, 10);
  for (std::size_t i = 0; i < count; ++i) builder.tensors.push_back(random_tensor(i));
  if (*rc::gen::arbitrary<bool>()) add_random_tie(builder);
  if (*rc::gen::arbitrary<bool>()) slice_all(builder);
  builder.ranks = static_cast<std::int32_t>(pick(1, 10));
  builder.stage = *rc::gen::element(ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3);
  builder.placement = *rc::gen::element(ZC_PLACEMENT_PER_UNIT, ZC_PLACEMENT_FLAT);
  builder.alignment_bytes = *rc::gen::element<std::size_t>(1, 4, 16, 64, 256);
  builder.bucket_bytes = *rc::gen::element<std::size_t>(1, 64, 1000, 100'000);
  builder.persistent_bytes = *rc::gen::element<std::size_t>(0, 500);
  builder.shard_gradient_dtype = *rc::gen::element(ZC_DTYPE_NONE, ZC_DTYPE_BF16);
  return builder;
}

inline bool is_stored(const Layout& layout, std::size_t use) { return layout.uses[use].stored == use; }

}  // namespace zerocomm::shard
