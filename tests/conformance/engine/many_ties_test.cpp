// A tensor with more parts than are added in one go: list order, one sum in f32, one rounding.
#include "world.hpp"

#include <gtest/gtest.h>

namespace zerocomm::test {
namespace {

constexpr std::size_t kTies = 20, kCount = 1'300;

// Not exact in any order but the right one.
float part_of(std::size_t use, std::int32_t rank, std::size_t element) {
  return (use % 3 == 0 ? 1e7F : 1.0F) /
         static_cast<float>(1 + (use * 7 + static_cast<std::size_t>(rank) * 5 + element) % 11);
}

TEST(ManyTies, parts_are_added_in_list_order_and_ranks_in_rank_order) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kTies; ++i) names.push_back("tie" + std::to_string(i));
  std::vector<zc_tensor> tensors{tensor("owner", "u", kCount)};
  for (const std::string& name : names) tensors.push_back(tied(tensor(name.c_str(), "v", kCount), "owner"));
  const Model model(tensors, shape(2, ZC_STAGE_2));
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    zc_zero_config config = options();
    config.gradient_divisor = 1;
    const TestEngine engine(comm, model, config);
    engine.load_all();
    std::vector<std::vector<float>> gradients(kTies + 1, std::vector<float>(kCount));
    RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
    for (std::size_t use = kTies + 1; use-- > 0;) {
      for (std::size_t e = 0; e < kCount; ++e) gradients[use][e] = part_of(use, rank, e);
      RANK_OK(zc_zero_grad_ready(engine, use, gradients[use].data(), nullptr));
    }
    RANK_OK(zc_zero_end(engine));
    engine.check_gradients([&](std::size_t, std::size_t element) {
      float sums[2];
      for (std::int32_t r = 0; r < 2; ++r) {
        sums[r] = part_of(0, r, element);
        for (std::size_t use = 1; use <= kTies; ++use) sums[r] += part_of(use, r, element);
      }
      return sums[0] + sums[1];
    });
    RANK_OK(zc_barrier(comm, nullptr));
  });
}

}  // namespace
}  // namespace zerocomm::test
