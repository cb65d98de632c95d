// Describes small models for tests of layouts.
#pragma once

#include "shard/layout.hpp"

#include <string>
#include <vector>

namespace zerocomm::shard {

struct TensorRow {
  std::string name;
  std::string unit;
  std::size_t count = 0;
  zc_dtype dtype = ZC_DTYPE_F32;
  zc_dtype gradient_dtype = ZC_DTYPE_NONE;
  bool frozen = false;
  std::int32_t group = 0;
  std::string tied_to = {};
};

struct UseRow {
  std::size_t tensor = 0;
  zc_span slice{};
  std::string unit;
};

struct LayoutBuilder {
  std::vector<TensorRow> tensors;
  std::vector<UseRow> uses;
  std::int32_t ranks = 1;
  zc_stage stage = ZC_STAGE_3;
  zc_placement placement = ZC_PLACEMENT_DEFAULT;
  std::size_t alignment_bytes = 0;
  std::size_t bucket_bytes = 0;
  std::size_t persistent_bytes = 0;
  zc_dtype shard_gradient_dtype = ZC_DTYPE_NONE;

  std::vector<zc_tensor> tensor_list() const {
    std::vector<zc_tensor> list;
    for (const TensorRow& row : tensors) {
      zc_tensor tensor{};
      tensor.struct_size = sizeof tensor;
      tensor.name = row.name.c_str();
      tensor.unit = row.unit.c_str();
      tensor.count = row.count;
      tensor.dtype = row.dtype;
      tensor.gradient_dtype = row.gradient_dtype;
      tensor.frozen = row.frozen;
      tensor.group = row.group;
      tensor.tied_to = row.tied_to.empty() ? nullptr : row.tied_to.c_str();
      list.push_back(tensor);
    }
    return list;
  }

  std::vector<zc_use> use_list() const {
    std::vector<zc_use> list;
    for (const UseRow& row : uses)
      list.push_back(zc_use{sizeof(zc_use), row.tensor, row.slice.offset, row.slice.count, row.unit.c_str()});
    return list;
  }

  zc_layout_config config() const {
    zc_layout_config config{};
    config.struct_size = sizeof config;
    config.ranks = ranks;
    config.stage = stage;
    config.placement = placement;
    config.alignment_bytes = alignment_bytes;
    config.bucket_bytes = bucket_bytes;
    config.persistent_bytes = persistent_bytes;
    config.shard_gradient_dtype = shard_gradient_dtype;
    return config;
  }

  Layout make() const {
    const std::vector<zc_tensor> my_tensors = tensor_list();
    const std::vector<zc_use> my_uses = use_list();
    zc_layout_config my_config = config();
    if (!my_uses.empty()) {
      my_config.uses = my_uses.data();
      my_config.use_count = my_uses.size();
    }
    return make_layout(my_tensors.data(), my_tensors.size(), my_config);
  }
};

// A letter and a number: "t3".
inline std::string numbered_name(char letter, std::size_t number) {
  std::string name(1, letter);
  name += std::to_string(number);
  return name;
}

// Tensors t0, t1, … of f32 in one unit.
inline LayoutBuilder one_unit(const std::vector<std::size_t>& counts, std::int32_t ranks,
                              zc_dtype dtype = ZC_DTYPE_F32) {
  LayoutBuilder builder;
  builder.ranks = ranks;
  for (std::size_t i = 0; i < counts.size(); ++i)
    builder.tensors.push_back({numbered_name('t', i), "unit", counts[i], dtype});
  return builder;
}

// Real elements that every rank owns, over all buffers.
inline std::vector<std::size_t> owned_per_rank(const Layout& layout) {
  std::vector<std::size_t> owned;
  for (const auto& buffers : layout.pieces) {
    owned.push_back(0);
    for (const auto& pieces : buffers)
      for (const zc_piece& piece : pieces) owned.back() += piece.count;
  }
  return owned;
}

}  // namespace zerocomm::shard
