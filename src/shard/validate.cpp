// What a layout is asked for, checked. Every text names the tensor, and says what was found.
#include "shard/build_steps.hpp"
#include "shard/stage_table.hpp"

#include <string_view>
#include <unordered_map>

namespace zerocomm::shard {
namespace {

constexpr std::size_t kDefaultAlignmentBytes = 64;
constexpr std::size_t kDefaultBucketBytes = std::size_t{25} << 20;
constexpr std::int32_t kMaxRanks = 1 << 20;

bool is_trained_dtype(zc_dtype dtype) {
  return dtype == ZC_DTYPE_F32 || dtype == ZC_DTYPE_F16 || dtype == ZC_DTYPE_BF16;
}

void read_config(Layout& layout, const zc_layout_config& config) {
  ZC_REQUIRE(config.ranks >= 1, ZC_ARGUMENT, "ranks is %d; a layout needs at least 1", config.ranks);
  ZC_REQUIRE(config.ranks <= kMaxRanks, ZC_UNSUPPORTED, "ranks is %d; at most %d are supported", config.ranks,
             kMaxRanks);
  ZC_REQUIRE(config.placement == ZC_PLACEMENT_DEFAULT || config.placement == ZC_PLACEMENT_PER_UNIT ||
                 config.placement == ZC_PLACEMENT_FLAT,
             ZC_ARGUMENT, "placement %d does not exist", static_cast<int>(config.placement));
  const std::size_t alignment = config.alignment_bytes == 0 ? kDefaultAlignmentBytes : config.alignment_bytes;
  ZC_REQUIRE((alignment & (alignment - 1)) == 0, ZC_ARGUMENT, "alignment_bytes is %zu; it must be a power of two",
             alignment);
  const zc_dtype reduced = config.shard_gradient_dtype;
  ZC_REQUIRE(reduced == ZC_DTYPE_NONE || zc_dtype_bytes(reduced) != 0, ZC_ARGUMENT,
             "shard_gradient_dtype %d does not exist", static_cast<int>(reduced));
  ZC_REQUIRE(reduced == ZC_DTYPE_NONE || is_trained_dtype(reduced), ZC_UNSUPPORTED,
             "shard_gradient_dtype is %s; reduced gradients are f32, f16 or bf16", zc_dtype_name(reduced));
  layout.ranks = config.ranks;
  layout.stage = stage_row(config.stage).stage;
  layout.placement = config.placement == ZC_PLACEMENT_FLAT ? ZC_PLACEMENT_FLAT : ZC_PLACEMENT_PER_UNIT;
  layout.alignment_bytes = alignment;
  layout.bucket_bytes = config.bucket_bytes == 0 ? kDefaultBucketBytes : config.bucket_bytes;
  layout.persistent_bytes = config.persistent_bytes;
}

Tensor read_tensor(const zc_tensor& given, std::size_t index) {
  ZC_REQUIRE(given.name != nullptr && given.name[0] != '\0', ZC_ARGUMENT, "tensor %zu has no name", index);
  ZC_REQUIRE(zc_dtype_bytes(given.dtype) != 0, ZC_ARGUMENT, "tensor '%s' has dtype %d, which does not exist",
             given.name, static_cast<int>(given.dtype));
  const zc_dtype gradient = given.gradient_dtype == ZC_DTYPE_NONE ? given.dtype : given.gradient_dtype;
  ZC_REQUIRE(zc_dtype_bytes(gradient) != 0, ZC_ARGUMENT, "tensor '%s' has gradient dtype %d, which does not exist",
             given.name, static_cast<int>(gradient));
  const bool trainable = given.frozen == 0;
  if (trainable) {
    ZC_REQUIRE(is_trained_dtype(given.dtype), ZC_UNSUPPORTED,
               "tensor '%s' is %s and trainable; only f32, f16 and bf16 can be trained: freeze it", given.name,
               zc_dtype_name(given.dtype));
    ZC_REQUIRE(is_trained_dtype(gradient), ZC_UNSUPPORTED,
               "tensor '%s' has %s gradients; gradients are f32, f16 or bf16", given.name, zc_dtype_name(gradient));
  }
  return Tensor{given.name, given.count, given.dtype, trainable ? gradient : ZC_DTYPE_NONE,
                trainable,  given.group, index};
}

void check_tie(const Tensor& tie, const Tensor& owner) {
  const auto unlike = [&](const char* what) {
    throw Error(ZC_ARGUMENT, format("tensor '%s' is tied to '%s', which has another %s", tie.name.c_str(),
                                    owner.name.c_str(), what));
  };
  if (tie.count != owner.count) unlike("element count");
  if (tie.dtype != owner.dtype) unlike("dtype");
  if (tie.trainable != owner.trainable) unlike("frozen mark");
  if (tie.gradient_dtype != owner.gradient_dtype) unlike("gradient dtype");
  if (tie.group != owner.group) unlike("group");
}

void read_tensors(Layout& layout, const zc_tensor* tensors, std::size_t tensor_count) {
  ZC_REQUIRE(tensors != nullptr || tensor_count == 0, ZC_ARGUMENT, "tensors is NULL, tensor_count is %zu",
             tensor_count);
  std::unordered_map<std::string_view, std::size_t> by_name;
  by_name.reserve(tensor_count);
  layout.tensors.reserve(tensor_count);
  for (std::size_t i = 0; i < tensor_count; ++i) {
    Tensor tensor = read_tensor(tensors[i], i);
    if (const char* owner_name = tensors[i].tied_to; owner_name != nullptr) {
      const auto found = by_name.find(owner_name);
      ZC_REQUIRE(found != by_name.end(), ZC_ARGUMENT, "tensor '%s' is tied to '%s', which does not come before it",
                 tensors[i].name, owner_name);
      const Tensor& owner = layout.tensors[found->second];
      ZC_REQUIRE(owner.owner == found->second, ZC_ARGUMENT,
                 "tensor '%s' is tied to '%s', which is itself tied to '%s'; name that one", tensors[i].name,
                 owner_name, layout.tensors[owner.owner].name.c_str());
      check_tie(tensor, owner);
      tensor.owner = found->second;
    }
    const auto [first, is_new] = by_name.emplace(tensors[i].name, i);
    ZC_REQUIRE(is_new, ZC_ARGUMENT, "tensors %zu and %zu are both called '%s'", first->second, i, tensors[i].name);
    layout.tensors.push_back(std::move(tensor));
  }
}

void add_use(Layout& layout, std::vector<const char*>& unit_names, std::size_t tensor, zc_span slice,
             const char* unit) {
  ZC_REQUIRE(unit != nullptr && unit[0] != '\0', ZC_ARGUMENT, "tensor '%s' has a use without a unit",
             layout.tensors[tensor].name.c_str());
  Use use;
  use.tensor = tensor;
  use.stored = layout.uses.size();
  use.in_tensor = slice;
  layout.uses.push_back(std::move(use));
  unit_names.push_back(unit);
}

}  // namespace

std::vector<const char*> read_arguments(Layout& layout, const zc_tensor* tensors, std::size_t tensor_count,
                                        const zc_layout_config& config) {
  read_config(layout, config);
  read_tensors(layout, tensors, tensor_count);
  std::vector<const char*> unit_names;
  const std::size_t use_count = config.uses == nullptr ? tensor_count : config.use_count;
  unit_names.reserve(use_count);
  layout.uses.reserve(use_count);
  if (config.uses == nullptr) {
    ZC_REQUIRE(config.use_count == 0, ZC_ARGUMENT, "uses is NULL, use_count is %zu", config.use_count);
    for (std::size_t i = 0; i < tensor_count; ++i)
      add_use(layout, unit_names, i, zc_span{0, tensors[i].count}, tensors[i].unit);
    return unit_names;
  }
  for (std::size_t i = 0; i < config.use_count; ++i) {
    const zc_use& use = config.uses[i];
    ZC_REQUIRE(use.tensor < tensor_count, ZC_ARGUMENT, "use %zu is of tensor %zu; there are %zu", i, use.tensor,
               tensor_count);
    const Tensor& tensor = layout.tensors[use.tensor];
    ZC_REQUIRE(use.offset <= tensor.count && use.count <= tensor.count - use.offset, ZC_ARGUMENT,
               "use %zu is %zu elements from %zu on of tensor '%s', which has %zu", i, use.count, use.offset,
               tensor.name.c_str(), tensor.count);
    add_use(layout, unit_names, use.tensor, zc_span{use.offset, use.count}, use.unit);
  }
  return unit_names;
}

}  // namespace zerocomm::shard
