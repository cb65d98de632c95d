// Layouts of model files.
#include "cli/manifest.hpp"
#include "shard/layout.hpp"
#include "shard/layout_totals.hpp"

#include <gtest/gtest.h>

namespace zerocomm::shard {
namespace {

Layout model_layout(const std::string& name, std::int32_t ranks, zc_placement placement = ZC_PLACEMENT_DEFAULT) {
  const cli::Manifest manifest = cli::read_manifest(ZC_PROJECT_DIR "/tests/data/" + name + ".json");
  const cli::TensorList list = cli::tensor_list(manifest);
  zc_layout_config config{};
  config.struct_size = sizeof config;
  config.ranks = ranks;
  config.stage = ZC_STAGE_3;
  config.placement = placement;
  config.uses = list.uses.data();
  config.use_count = list.uses.size();
  return make_layout(list.tensors.data(), list.tensors.size(), config);
}

struct Row {
  const char* name;
  std::size_t elements, tensors, ties, units, largest_unit;
};
constexpr Row kModels[] = {{"odd", 1'073'484, 20, 2, 13, 1'065'023},
                           {"tiny-gpt", 29'056, 29, 1, 6, 12'704},
                           {"gpt2-124m", 124'439'808, 149, 1, 16, 38'597'376},
                           {"gpt2-124m-stacked", 124'475'904, 16, 0, 15, 38'633'472}};

TEST(ModelLayout, totals_are_the_published_ones_for_every_rank_count) {
  for (const Row& row : kModels)
    for (const zc_placement placement : {ZC_PLACEMENT_PER_UNIT, ZC_PLACEMENT_FLAT})
      for (const std::int32_t ranks : {1, 2, 3, 8}) {
        const Layout layout = model_layout(row.name, ranks, placement);
        const LayoutTotals totals = layout_totals(layout);
        EXPECT_EQ(totals.stored_count, row.elements) << row.name;
        EXPECT_EQ(layout.tensors.size(), row.tensors) << row.name;
        EXPECT_EQ(totals.tied_tensors, row.ties) << row.name;
        std::size_t owned = 0;
        for (std::size_t r = 0; r < layout.pieces.size(); ++r)
          for (std::size_t b = 0; b < layout.buffers.size(); ++b) owned += owned_count(layout, r, b);
        EXPECT_EQ(owned, row.elements) << row.name;
      }
}

TEST(ModelLayout, units_are_the_modules_and_stacked_tensors_are_cut_by_layer) {
  for (const Row& row : kModels) {
    const Layout layout = model_layout(row.name, 2);
    EXPECT_EQ(layout.units.size(), row.units) << row.name;
    std::size_t largest = 0;
    for (const Unit& unit : layout.units) {
      std::size_t count = 0;
      for (const std::size_t i : unit.uses)
        if (layout.uses[i].stored == i) count += layout.uses[i].in_tensor.count;
      largest = std::max(largest, count);
    }
    EXPECT_EQ(largest, row.largest_unit) << row.name;
  }
  const Layout stacked = model_layout("gpt2-124m-stacked", 2);
  EXPECT_EQ(stacked.units[2].name, "h.0");
  EXPECT_EQ(stacked.units[13].name, "h.11");
  EXPECT_EQ(stacked.units[13].uses.size(), 12u);
  EXPECT_EQ(stacked.uses[stacked.units[13].uses[0]].in_tensor.offset, 11u * 768);
}

TEST(ModelLayout, the_odd_one_has_a_buffer_per_kind_and_no_replicated_state) {
  const Layout layout = model_layout("odd", 3);
  EXPECT_EQ(layout.buffers.size(), 4u);
  for (const Tensor& tensor : layout.tensors) EXPECT_NE(tensor.name, "counter");
  EXPECT_EQ(layout_totals(layout).trainable_count, 1'073'383u);
}

}  // namespace
}  // namespace zerocomm::shard
