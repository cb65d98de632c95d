// Units, and which uses share storage.
#include "shard/build_steps.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace zerocomm::shard {
namespace {

// Uses sorted by tensor and slice, and where those of each tensor begin.
struct SliceIndex {
  std::vector<std::size_t> uses;
  std::vector<std::size_t> first;  // of tensor i; one more entry than there are tensors
};

SliceIndex sort_slices(const Layout& layout) {
  SliceIndex index;
  index.uses.resize(layout.uses.size());
  for (std::size_t i = 0; i < index.uses.size(); ++i) index.uses[i] = i;
  const auto key = [&](std::size_t i) {
    const Use& use = layout.uses[i];
    return std::tuple(use.tensor, use.in_tensor.offset, use.in_tensor.count, i);
  };
  const auto before = [&](std::size_t a, std::size_t b) { return key(a) < key(b); };
  if (!std::is_sorted(index.uses.begin(), index.uses.end(), before))  // the usual list is: every tensor once, in order
    std::sort(index.uses.begin(), index.uses.end(), before);
  index.first.assign(layout.tensors.size() + 1, 0);
  for (const Use& use : layout.uses) ++index.first[use.tensor + 1];
  for (std::size_t t = 0; t < layout.tensors.size(); ++t) index.first[t + 1] += index.first[t];
  return index;
}

void check_cover(const Layout& layout, const SliceIndex& index, std::size_t tensor) {
  const char* name = layout.tensors[tensor].name.c_str();
  ZC_REQUIRE(index.first[tensor] != index.first[tensor + 1], ZC_ARGUMENT, "tensor '%s' has no use", name);
  std::size_t covered = 0;
  for (std::size_t i = index.first[tensor]; i < index.first[tensor + 1]; ++i) {
    const zc_span slice = layout.uses[index.uses[i]].in_tensor;
    if (slice.count == 0) continue;
    ZC_REQUIRE(slice.offset == covered, ZC_ARGUMENT, "uses of tensor '%s' cover element %zu %s", name,
               std::min(slice.offset, covered), slice.offset < covered ? "twice" : "not at all");
    covered += slice.count;
  }
  ZC_REQUIRE(covered == layout.tensors[tensor].count, ZC_ARGUMENT, "uses of tensor '%s' cover element %zu not at all",
             name, covered);
}

// The use of the owner that has the same slice as a use of a tied tensor.
std::size_t find_owner_use(const Layout& layout, const SliceIndex& index, const Use& tie) {
  const std::size_t owner = layout.tensors[tie.tensor].owner;
  const auto begin = index.uses.begin() + static_cast<std::ptrdiff_t>(index.first[owner]);
  const auto end = index.uses.begin() + static_cast<std::ptrdiff_t>(index.first[owner + 1]);
  const auto slice = [&](std::size_t use) {
    return std::pair(layout.uses[use].in_tensor.offset, layout.uses[use].in_tensor.count);
  };
  const std::pair wanted(tie.in_tensor.offset, tie.in_tensor.count);
  const auto found =
      std::lower_bound(begin, end, wanted, [&](std::size_t use, const auto& w) { return slice(use) < w; });
  ZC_REQUIRE(found != end && slice(*found) == wanted, ZC_ARGUMENT,
             "tensor '%s' is tied to '%s' but is not sliced like it: %zu elements from %zu on",
             layout.tensors[tie.tensor].name.c_str(), layout.tensors[owner].name.c_str(), tie.in_tensor.count,
             tie.in_tensor.offset);
  return *found;
}

void add_need(Unit& unit, std::size_t needed) {
  if (std::find(unit.needs.begin(), unit.needs.end(), needed) == unit.needs.end()) unit.needs.push_back(needed);
}

}  // namespace

void add_units(Layout& layout, const std::vector<const char*>& unit_names) {
  std::unordered_map<std::string_view, std::size_t> by_name;
  by_name.reserve(layout.uses.size());
  std::size_t unit = 0;
  for (std::size_t i = 0; i < layout.uses.size(); ++i) {
    if (i == 0 || layout.units[unit].name != unit_names[i]) {
      const auto [entry, is_new] = by_name.emplace(unit_names[i], layout.units.size());
      unit = entry->second;
      if (is_new) layout.units.emplace_back().name = unit_names[i];
    }
    layout.uses[i].unit = unit;
    layout.uses[i].position = layout.units[unit].uses.size();
    layout.units[unit].uses.push_back(i);
  }
}

void join_ties(Layout& layout) {
  const SliceIndex index = sort_slices(layout);
  for (std::size_t t = 0; t < layout.tensors.size(); ++t) check_cover(layout, index, t);
  for (std::size_t i = 0; i < layout.uses.size(); ++i) {
    Use& use = layout.uses[i];
    const Tensor& tensor = layout.tensors[use.tensor];
    const bool is_tie = tensor.owner != use.tensor;
    if (is_tie) use.stored = find_owner_use(layout, index, use);
    if (!is_tie && tensor.trainable) use.parts.insert(use.parts.begin(), i);
    if (is_tie && tensor.trainable) layout.uses[use.stored].parts.push_back(i);
  }
  for (std::size_t u = 0; u < layout.units.size(); ++u) {
    Unit& unit = layout.units[u];
    const auto stores = [&](std::size_t i) { return layout.uses[i].stored == i && layout.uses[i].in_tensor.count > 0; };
    if (std::any_of(unit.uses.begin(), unit.uses.end(), stores)) unit.needs.push_back(u);
    for (const std::size_t i : unit.uses)
      if (layout.uses[i].in_tensor.count > 0) add_need(unit, layout.uses[layout.uses[i].stored].unit);
  }
}

}  // namespace zerocomm::shard
