// Small layouts made by hand, with round numbers: what the machines of src/zero read of a layout, and no more.
#pragma once

#include "shard/layout.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace zerocomm::test {

struct UnitSpec {
  std::size_t gathered_bytes = 0;
  bool persistent = false;
};

struct UseSpec {
  std::string tensor;
  std::size_t unit = 0;
  std::size_t count = 1;
  std::string tied_to = {};
  bool frozen = false;
};

// Units are named u0, u1 and so on. Use i is tensor i, whole. Trainable stored uses fill buckets in reverse order,
// `uses_per_bucket` each.
inline shard::Layout small_layout(const std::vector<UnitSpec>& units, const std::vector<UseSpec>& uses = {},
                                  std::size_t uses_per_bucket = 1) {
  shard::Layout layout;
  layout.ranks = 2;
  layout.stage = ZC_STAGE_3;
  layout.alignment_bytes = 1;
  for (std::size_t u = 0; u < units.size(); ++u) {
    shard::Unit unit;
    unit.name = "u" + std::to_string(u);
    unit.gathered_bytes = units[u].gathered_bytes;
    unit.persistent = units[u].persistent;
    if (unit.gathered_bytes > 0) unit.needs.push_back(u);
    layout.units.push_back(unit);
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const UseSpec& spec = uses[i];
    shard::Tensor tensor;
    tensor.name = spec.tensor;
    tensor.count = spec.count;
    tensor.trainable = !spec.frozen;
    tensor.owner = i;
    for (std::size_t j = 0; j < i; ++j)
      if (uses[j].tensor == spec.tied_to) tensor.owner = j;
    shard::Use use;
    use.tensor = i;
    use.stored = tensor.owner;
    use.unit = spec.unit;
    use.in_tensor.count = spec.count;
    layout.tensors.push_back(tensor);
    layout.uses.push_back(use);
    layout.units[spec.unit].uses.push_back(i);
    if (spec.count > 0 && !spec.frozen) layout.uses[use.stored].parts.push_back(i);
    std::vector<std::size_t>& needs = layout.units[spec.unit].needs;
    const std::size_t owner_unit = uses[use.stored].unit;
    if (use.stored != i && std::find(needs.begin(), needs.end(), owner_unit) == needs.end())
      needs.push_back(owner_unit);
  }
  for (std::size_t i = uses.size(); i-- > 0;) {
    if (layout.uses[i].parts.empty()) continue;
    if (layout.buckets.empty() || layout.buckets.back().uses.size() == uses_per_bucket) layout.buckets.emplace_back();
    layout.buckets.back().uses.push_back(i);
    for (const std::size_t part : layout.uses[i].parts) layout.uses[part].bucket = layout.buckets.size() - 1;
  }
  return layout;
}

}  // namespace zerocomm::test
