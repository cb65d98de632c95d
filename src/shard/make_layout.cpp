// Puts the steps of a layout together.
#include "shard/build_steps.hpp"

namespace zerocomm::shard {
namespace {

// Runs are kept one by one, so a layout of very many units over very many ranks is refused before it fills the memory.
constexpr std::size_t kMaxRuns = std::size_t{1} << 26;

void check_run_count(const Layout& layout) {
  std::size_t runs = 0;
  for (std::size_t i = 0; i < layout.uses.size(); ++i) {
    const Use& use = layout.uses[i];
    if (use.stored == i && use.in_tensor.count > 0)
      runs += ceil_div(use.in_tensor.count, layout.blocks[use.block].shard_count) + 1;
  }
  ZC_REQUIRE(runs <= kMaxRuns, ZC_UNSUPPORTED, "the layout would have up to %zu runs over %d ranks; the limit is %zu",
             runs, layout.ranks, kMaxRuns);
}

}  // namespace

Layout make_layout(const zc_tensor* tensors, std::size_t tensor_count, const zc_layout_config& config) {
  Layout layout;
  const std::vector<const char*> unit_names = read_arguments(layout, tensors, tensor_count, config);
  add_units(layout, unit_names);
  join_ties(layout);
  add_blocks(layout, config.shard_gradient_dtype == ZC_DTYPE_NONE ? ZC_DTYPE_F32 : config.shard_gradient_dtype);
  check_run_count(layout);
  add_buckets(layout);
  add_pieces(layout);
  layout.hash = layout_hash(layout);
  return layout;
}

}  // namespace zerocomm::shard
