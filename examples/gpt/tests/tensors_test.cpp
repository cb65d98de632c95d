// The manifest and the initial values.
#include "tensors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace gpt {
namespace {

std::size_t index_of(const Manifest& manifest, const std::string& name) {
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i) {
    if (manifest.tensors[i].name == name) return i;
  }
  ADD_FAILURE() << "no tensor " << name;
  return 0;
}

std::vector<float> initial(const Manifest& manifest, const std::string& name, std::uint64_t seed) {
  const std::size_t tensor = index_of(manifest, name);
  std::vector<float> values(manifest.tensors[tensor].count);
  initialise(manifest, tensor, seed, 0, values);
  return values;
}

double deviation(const std::vector<float>& values) {
  double squares = 0.0;
  for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST(Manifest, has_as_many_parameters_as_the_closed_form_says) {
  for (const Config& config : {kTiny, kSmall}) {
    const std::size_t d = config.width;
    const std::size_t expected =
        config.layers * (12 * d * d + 13 * d) + (config.vocabulary + config.context) * d + 2 * d;
    EXPECT_EQ(make_manifest(config).parameter_count(), expected);
  }
}

TEST(Manifest, lists_the_units_in_order_of_use) {
  std::vector<std::string> names;
  for (const Unit& unit : make_manifest(kTiny).units) names.push_back(unit.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"wte", "wpe", "h.0.attn", "h.0.mlp", "h.1.attn", "h.1.mlp", "ln_f", "lm_head"}));
}

TEST(Manifest, gives_every_tensor_to_exactly_one_unit) {
  const Manifest manifest = make_manifest(kSmall);
  std::size_t next = 0;
  for (std::size_t u = 0; u < manifest.units.size(); ++u) {
    EXPECT_EQ(manifest.units[u].first_tensor, next);
    for (std::size_t i = 0; i < manifest.units[u].tensor_count; ++i) EXPECT_EQ(manifest.tensors[next + i].unit, u);
    next += manifest.units[u].tensor_count;
  }
  EXPECT_EQ(next, manifest.tensors.size());
}

TEST(Manifest, ties_lm_head_to_wte) {
  const Manifest manifest = make_manifest(kTiny);
  const Tensor& head = manifest.tensors.back();
  EXPECT_EQ(head.name, "lm_head.weight");
  ASSERT_TRUE(head.tied_to.has_value());
  EXPECT_EQ(manifest.tensors[*head.tied_to].name, "wte.weight");
  EXPECT_EQ(manifest.tensors[*head.tied_to].shape, head.shape);
}

TEST(Initialise, gives_a_piece_the_same_values_as_the_whole) {
  const Manifest manifest = make_manifest(kTiny);
  const std::vector<float> whole = initial(manifest, "wte.weight", 7);
  std::vector<float> piece(1000);
  initialise(manifest, index_of(manifest, "wte.weight"), 7, 333, piece);
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + 333));
}

TEST(Initialise, depends_on_the_seed_and_on_the_tensor) {
  const Manifest manifest = make_manifest(kTiny);
  EXPECT_NE(initial(manifest, "h.0.mlp.c_fc.weight", 1), initial(manifest, "h.0.mlp.c_fc.weight", 2));
  EXPECT_NE(initial(manifest, "h.0.mlp.c_fc.weight", 1), initial(manifest, "h.1.mlp.c_fc.weight", 1));
}

TEST(Initialise, follows_gpt_2) {
  const Manifest manifest = make_manifest(kSmall);
  // 65,536 or more samples: the deviation is known to 0.3 % (one sigma); 1.5 % is five sigma.
  EXPECT_NEAR(deviation(initial(manifest, "h.3.attn.c_attn.weight", 1)), 0.02, 0.0003);
  EXPECT_NEAR(deviation(initial(manifest, "h.3.attn.c_proj.weight", 1)), 0.02 / std::sqrt(12.0), 0.0001);
  EXPECT_EQ(initial(manifest, "h.3.mlp.c_fc.bias", 1), std::vector<float>(1024, 0.0F));
  EXPECT_EQ(initial(manifest, "ln_f.weight", 1), std::vector<float>(256, 1.0F));
}

// Bits that must never change by accident: runs are compared by the hash of their weights.
TEST(Initialise, starts_with_known_bits) {
  const std::vector<float> values = initial(make_manifest(kTiny), "wte.weight", 1);
  EXPECT_EQ(values[0], 0x1.711eb8p-9F);
  EXPECT_EQ(values[1], -0x1.75ef5cp-5F);
  EXPECT_EQ(values[16383], 0x1.55599ap-7F);
}

}  // namespace
}  // namespace gpt
