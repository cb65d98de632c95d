/**
 * Layouts in C++: see layout.h, whose contracts hold.
 */
#pragma once

#include <zerocomm/layout.h>
#include <zerocomm/coll.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zc {

/** One tensor, as in zc_tensor. Strings are read while the layout is made. */
struct Tensor {
  const char *name = nullptr;
  const char *unit = nullptr;
  std::size_t count = 0;
  zc_dtype dtype = ZC_DTYPE_NONE;
  zc_dtype gradient_dtype = ZC_DTYPE_NONE;
  bool frozen = false;
  std::int32_t group = 0;
  const char *tied_to = nullptr;

  zc_tensor raw() const noexcept {
    zc_tensor tensor{};
    tensor.struct_size = sizeof tensor;
    tensor.name = name;
    tensor.unit = unit;
    tensor.count = count;
    tensor.dtype = dtype;
    tensor.gradient_dtype = gradient_dtype;
    tensor.frozen = frozen ? 1 : 0;
    tensor.group = group;
    tensor.tied_to = tied_to;
    return tensor;
  }
};

/** One appearance of (a slice of) a tensor in the order of use, as in zc_use. */
struct Use {
  std::size_t tensor = 0;
  std::size_t offset = 0;
  std::size_t count = 0;
  const char *unit = nullptr;

  zc_use raw() const noexcept {
    zc_use use{};
    use.struct_size = sizeof use;
    use.tensor = tensor;
    use.offset = offset;
    use.count = count;
    use.unit = unit;
    return use;
  }
};

/** What a layout depends on besides its tensors, as in zc_layout_config; what is left out has its default. */
struct LayoutConfig {
  std::int32_t ranks = 0;
  zc_stage stage = ZC_STAGE_NONE;
  zc_placement placement = ZC_PLACEMENT_DEFAULT;
  std::size_t alignment_bytes = 0;
  std::size_t bucket_bytes = 0;
  std::size_t persistent_bytes = 0;
  zc_dtype shard_gradient_dtype = ZC_DTYPE_NONE;
  std::span<const Use> uses{}; /**< empty: every tensor once, whole, in the order given */
};

/** An immutable layout. */
class Layout : public detail::Handle<detail::View<zc_layout>, zc_layout, zc_layout_destroy> {
 public:
  using Handle::Handle;

  static Layout create(std::span<const Tensor> tensors, const LayoutConfig &config) {
    std::vector<zc_tensor> raw_tensors;
    for (const Tensor &tensor : tensors) raw_tensors.push_back(tensor.raw());
    std::vector<zc_use> raw_uses;
    for (const Use &use : config.uses) raw_uses.push_back(use.raw());
    zc_layout_config raw{};
    raw.struct_size = sizeof raw;
    raw.ranks = config.ranks;
    raw.stage = config.stage;
    raw.placement = config.placement;
    raw.alignment_bytes = config.alignment_bytes;
    raw.bucket_bytes = config.bucket_bytes;
    raw.persistent_bytes = config.persistent_bytes;
    raw.shard_gradient_dtype = config.shard_gradient_dtype;
    raw.uses = raw_uses.empty() ? nullptr : raw_uses.data();
    raw.use_count = raw_uses.size();
    zc_layout *layout = nullptr;
    check(zc_layout_create(raw_tensors.data(), raw_tensors.size(), &raw, &layout));
    return Layout(layout);
  }

  zc_layout_info info() const {
    return detail::read_info<zc_layout_info>([this](zc_layout_info *info) { return zc_layout_get_info(get(), info); });
  }
  zc_unit_info unit(std::size_t unit) const {
    return detail::read_info<zc_unit_info>([&](zc_unit_info *info) { return zc_layout_get_unit(get(), unit, info); });
  }
  zc_use_info use(std::size_t use) const {
    return detail::read_info<zc_use_info>([&](zc_use_info *info) { return zc_layout_get_use(get(), use, info); });
  }
  zc_buffer_info buffer(std::size_t buffer) const {
    return detail::read_info<zc_buffer_info>(
        [&](zc_buffer_info *info) { return zc_layout_get_buffer(get(), buffer, info); });
  }
  zc_bucket_info bucket(std::size_t bucket) const {
    return detail::read_info<zc_bucket_info>(
        [&](zc_bucket_info *info) { return zc_layout_get_bucket(get(), bucket, info); });
  }

  /** Index of the unit, or tensor, with this name. ARGUMENT if there is none. */
  std::size_t find_unit(const std::string &name) const {
    std::size_t unit = 0;
    check(zc_layout_find_unit(get(), name.c_str(), &unit));
    return unit;
  }
  std::size_t find_tensor(const std::string &name) const {
    std::size_t tensor = 0;
    check(zc_layout_find_tensor(get(), name.c_str(), &tensor));
    return tensor;
  }

  /** Index of use number `position` of a unit. */
  std::size_t unit_use(std::size_t unit, std::size_t position) const {
    std::size_t use = 0;
    check(zc_layout_unit_use(get(), unit, position, &use));
    return use;
  }

  /** The pieces of one rank's shard of one buffer. They live as long as the layout. */
  std::span<const zc_piece> pieces(std::int32_t rank, std::size_t buffer) const {
    const zc_piece *pieces = nullptr;
    std::size_t count = 0;
    check(zc_layout_pieces(get(), rank, buffer, &pieces, &count));
    return {pieces, count};
  }

  /** The layout as text. */
  std::string text(zc_text_form form = ZC_TEXT_DEFAULT) const {
    std::size_t bytes = 0;
    check(zc_layout_print(get(), form, nullptr, 0, &bytes));
    std::string text(bytes, '\0');
    check(zc_layout_print(get(), form, text.data(), text.size(), &bytes));
    text.resize(bytes - 1);
    return text;
  }
};

namespace detail {

inline void check_unit(const char *call, const Layout &layout, std::size_t unit, std::size_t full, std::size_t shards) {
  check_count(call, "full", full, layout.unit(unit).use_count);
  check_count(call, "shards", shards, layout.info().buffer_count);
}

}  // namespace detail

/** Cut one unit: copy what `rank` owns of it into the rank's shards. full: one address per use; shards: one per buffer. */
inline void partition(const Layout &layout, std::int32_t rank, std::size_t unit, std::span<const void *const> full,
                      std::span<void *const> shards) {
  detail::check_unit("zc::partition", layout, unit, full.size(), shards.size());
  check(zc_partition(layout.get(), rank, unit, full.data(), shards.data()));
}

/** Gather one unit from the shards of all ranks. Collective. */
inline void gather(CommView comm, const Layout &layout, std::size_t unit, std::span<const void *const> shards,
                   std::span<void *const> full, const CollOptions &options = {}) {
  detail::check_unit("zc::gather", layout, unit, full.size(), shards.size());
  const zc_coll_options raw = options.raw();
  check(zc_gather(comm.get(), layout.get(), unit, shards.data(), full.data(), &raw));
}

/** Where the tensors of a unit lie in whole flat buffers, one address per buffer. One address per use is written. */
inline void view(const Layout &layout, std::size_t unit, std::span<const void *const> buffers,
                 std::span<const void *> tensors) {
  detail::check_unit("zc::view", layout, unit, tensors.size(), buffers.size());
  check(zc_layout_view(layout.get(), unit, buffers.data(), tensors.data(), tensors.size()));
}

}  // namespace zc
