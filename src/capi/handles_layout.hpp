// What a zc_layout is.
#pragma once

#include "shard/layout.hpp"

#include <string_view>
#include <unordered_map>

struct zc_layout {
  explicit zc_layout(zerocomm::shard::Layout layout) : value(std::move(layout)) {
    for (std::size_t u = 0; u < value.units.size(); ++u) units.emplace(value.units[u].name, u);
    for (std::size_t t = 0; t < value.tensors.size(); ++t) tensors.emplace(value.tensors[t].name, t);
  }
  zc_layout(const zc_layout&) = delete;  // the indices point into the value
  zc_layout& operator=(const zc_layout&) = delete;

  const zerocomm::shard::Layout value;
  std::unordered_map<std::string_view, std::size_t> units, tensors;
};
