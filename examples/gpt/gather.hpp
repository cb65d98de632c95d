// Small agreements between ranks. They count as control traffic, apart from the data that a step carries.
#pragma once

#include <zerocomm/zerocomm.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "checked.hpp"

namespace gpt {

// What every rank says, in the order of the ranks. All ranks say equally many values.
template <class Value>
std::vector<Value> gather(zc_comm* comm, std::span<const Value> own) {
  static_assert(std::is_trivially_copyable_v<Value>);
  std::int32_t ranks = 0;
  check(zc_comm_size(comm, &ranks));
  std::vector<Value> all(own.size() * static_cast<std::size_t>(ranks));
  zc_coll_options options{};
  options.struct_size = sizeof options;
  options.traffic = ZC_TRAFFIC_CONTROL;
  check(zc_all_gather(comm, own.data(), all.data(), own.size_bytes(), ZC_DTYPE_U8, &options));
  return all;
}

template <class Value>
std::vector<Value> gather(zc_comm* comm, const Value& own) {
  return gather(comm, std::span(&own, 1));
}

// The first rank whose text differs from that of rank 0, as all ranks see it. The texts are equally long.
inline std::optional<std::size_t> find_other(zc_comm* comm, const std::string& own) {
  const std::vector<char> all = gather(comm, std::span(own.data(), own.size()));
  const std::string_view texts(all.data(), all.size());
  for (std::size_t rank = 1; rank * own.size() < texts.size(); ++rank)
    if (texts.substr(rank * own.size(), own.size()) != texts.substr(0, own.size())) return rank;
  return std::nullopt;
}

}  // namespace gpt
