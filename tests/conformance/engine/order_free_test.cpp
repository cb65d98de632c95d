// Ranks that visit units and complete buckets in orders of their own: right values of the pinned generation, no
// deadlock.
#include "world.hpp"

#include <atomic>

namespace {

using namespace zerocomm::test;

std::vector<zc_tensor> three_units() { return {tensor("a", "u0", 33), tensor("b", "u1", 70), tensor("c", "u2", 5)}; }

void report_ones(const TestEngine& engine, const std::vector<std::size_t>& order, const Gradients& gradients) {
  for (const std::size_t use : order) RANK_OK(zc_zero_grad_ready(engine, use, gradients.of(use), nullptr));
}

class VisitsOfTheirOwn : public testing::TestWithParam<std::int32_t> {};

TEST_P(VisitsOfTheirOwn, ranks_visit_units_in_different_orders_and_numbers_over_generations) {
  const std::vector<std::vector<std::size_t>> visits = {{0, 1, 1, 1, 2}, {0, 1, 2}, {2, 0}};
  const Model model(three_units(), shape(3, ZC_STAGE_3));
  run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
    zc_zero_config config = options();
    config.prefetch = GetParam();
    config.gradient_divisor = 1;
    const TestEngine engine(comm, model, config);
    engine.load_all();
    const Gradients ones(model, [](std::size_t, std::size_t) { return 1.0F; });
    for (std::uint64_t version = 0; version < 6; ++version) {
      for (const zc_phase phase : {ZC_PHASE_EVAL, ZC_PHASE_ONLY}) {
        RANK_OK(zc_zero_begin(engine, "pass", phase));
        for (const std::size_t unit : visits[static_cast<std::size_t>(rank)]) engine.visit(unit, version);
        if (phase == ZC_PHASE_ONLY) ones.report_all(engine);
        RANK_OK(zc_zero_end(engine));
      }
      engine.check_gradients([](std::size_t, std::size_t) { return 3.0F; });
      engine.update(version + 1);
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Prefetch, VisitsOfTheirOwn, testing::Values(ZC_NONE, 0, 1));

class FewSlots : public testing::TestWithParam<std::tuple<std::int32_t, zc_launch, zc_stage>> {};

TEST_P(FewSlots, buckets_completed_in_opposite_orders_are_all_reduced) {
  const auto [slots, launch, stage] = GetParam();
  std::vector<zc_tensor> tensors;
  const std::vector<std::string> names = {"t0", "t1", "t2", "t3", "t4", "t5", "t6"};
  for (std::size_t i = 0; i < names.size(); ++i) tensors.push_back(tensor(names[i].c_str(), "u", 10 + 7 * i));
  const Model model(tensors, shape(3, stage, 1));
  ASSERT_EQ(model.info().bucket_count, names.size());
  RankOptions ranks;
  ranks.deadline_ns = 10 * kSecondNs;
  run_ranks(
      3,
      [&, slots = slots, launch = launch](zc_comm* comm, std::int32_t rank) {
        zc_zero_config config = options();
        config.gradient_slots = slots;
        config.launch = launch;
        config.gradient_divisor = 1;
        const TestEngine engine(comm, model, config);
        engine.load_all();
        for (int step = 0; step < 10; ++step) {
          const Gradients gradients(model, [&](std::size_t use, std::size_t e) {
            return static_cast<float>((static_cast<std::size_t>(rank) + 1) * (e % 50 + use) +
                                      static_cast<std::size_t>(step));
          });
          RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
          std::vector<std::size_t> order;
          for (std::size_t i = 0; i < names.size(); ++i) {
            if (rank == 0) order.push_back(i);
            if (rank == 1) order.push_back(names.size() - 1 - i);
            if (rank == 2) order.push_back(i * 3 % names.size());
          }
          report_ones(engine, order, gradients);
          RANK_OK(zc_zero_end(engine));
          engine.check_gradients([&](std::size_t tensor, std::size_t e) {
            return static_cast<float>(6 * (e % 50 + tensor)) + 3.0F * static_cast<float>(step);
          });
        }
        RANK_CHECK(engine.stats().buckets_reduced == 10 * names.size(), "%llu",
                   static_cast<unsigned long long>(engine.stats().buckets_reduced));
      },
      ranks);
}
INSTANTIATE_TEST_SUITE_P(Slots, FewSlots,
                         testing::Combine(testing::Values(1, 2, 3), testing::Values(ZC_LAUNCH_COMPLETE, ZC_LAUNCH_END),
                                          testing::Values(ZC_STAGE_0, ZC_STAGE_2, ZC_STAGE_3)));

TEST(StalledReader, still_gets_its_generation_and_the_owner_waits_for_it) {
  const Model model(three_units(), shape(3, ZC_STAGE_3));
  std::atomic<bool> reader_is_in{false};
  run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
    zc_zero_config config = options();
    config.prefetch = ZC_NONE;
    config.drop_released = 1;
    const TestEngine engine(comm, model, config);
    engine.load_all(7);
    double waited_s = 0;
    if (rank == 1) {
      RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
      engine.visit(0, 7);
      reader_is_in = true;
      sleep_ms(1000);
      for (const std::size_t unit : std::vector<std::size_t>{2, 1, 0}) engine.visit(unit, 7);
      RANK_OK(zc_zero_end(engine));
    } else {
      while (!reader_is_in) std::this_thread::yield();
    }
    const auto start = std::chrono::steady_clock::now();
    RANK_OK(zc_zero_update_begin(engine));
    waited_s = seconds_since(start);
    RANK_CHECK(rank == 1 || (waited_s > 0.9 && waited_s < 5), "the owner went on after %.3f s", waited_s);
    engine.write(8);
    RANK_OK(zc_zero_publish(engine, nullptr));
    RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
    for (const std::size_t unit : std::vector<std::size_t>{0, 1, 2}) engine.visit(unit, 8);
    RANK_OK(zc_zero_end(engine));
  });
}

class TiedOverBuckets : public testing::TestWithParam<zc_stage> {};

// (big - big) + 1 is 1 in the order of the list, and 0 in any other order that begins with the 1.
TEST_P(TiedOverBuckets, parts_in_the_first_and_last_unit_are_added_in_list_order) {
  const std::vector<zc_tensor> tensors = {tensor("embed", "first", 9), tensor("w", "middle", 50),
                                          tied(tensor("again", "middle", 9), "embed"), tensor("v", "last", 20),
                                          tied(tensor("head", "last", 9), "embed")};
  const Model model(tensors, shape(2, GetParam(), 1));
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    const TestEngine engine(comm, model);
    engine.load_all();
    const Gradients gradients(model, [](std::size_t use, std::size_t) {
      return use == 0 ? 1e8F : use == 2 ? -1e8F : use == 4 ? 1.0F : 3.0F;
    });
    for (int step = 0; step < 3; ++step) {
      RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
      for (const std::size_t unit : std::vector<std::size_t>{0, 1, 2}) engine.visit(unit, 0);
      report_ones(engine, rank == 0 ? std::vector<std::size_t>{4, 1, 0, 3, 2} : std::vector<std::size_t>{2, 4, 3, 1, 0},
                  gradients);
      RANK_OK(zc_zero_end(engine));
      engine.check_gradients([](std::size_t tensor, std::size_t) { return tensor == 0 ? 1.0F : 3.0F; });
      RANK_OK(zc_zero_publish_unchanged(engine));
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Stages, TiedOverBuckets, testing::Values(ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3));

TEST(SkippedSteps, all_ranks_publish_unchanged_with_and_without_update_begin) {
  for (const zc_stage stage : {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3}) {
    const Model model(three_units(), shape(3, stage));
    run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
      const TestEngine engine(comm, model);
      engine.load_all(1);
      for (int step = 0; step < 40; ++step) {  // longer than the history of a published word
        if ((step + rank) % 3 == 0) RANK_OK(zc_zero_update_begin(engine));
        RANK_OK(zc_zero_publish_unchanged(engine));
        if (rank == step % 3) sleep_ms(1);
        RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
        engine.visit(static_cast<std::size_t>((step + rank) % 3), 1);
        RANK_OK(zc_zero_end(engine));
      }
      engine.update(2);
      RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
      for (const std::size_t unit : std::vector<std::size_t>{0, 1, 2}) engine.visit(unit, 2);
      RANK_OK(zc_zero_end(engine));
    });
  }
}

TEST(EvaluationPasses, run_on_one_rank_while_the_others_are_in_update_begin) {
  const Model model(three_units(), shape(3, ZC_STAGE_3));
  run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
    const TestEngine engine(comm, model);
    engine.load_all(1);
    for (std::uint64_t version = 1; version < 5; ++version) {
      if (rank == static_cast<std::int32_t>(version % 3)) {
        sleep_ms(20);
        for (int pass = 0; pass < 5; ++pass) {
          RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
          for (const std::size_t unit : std::vector<std::size_t>{2, 0, 1}) engine.visit(unit, version);
          RANK_OK(zc_zero_end(engine));
        }
      }
      engine.update(version + 1);
    }
  });
}

}  // namespace
