// Several engines in one process: on one communicator, and on two communicators of the same ranks.
#include "world.hpp"

#include <atomic>
#include <memory>

namespace {

using namespace zerocomm::test;

std::vector<zc_tensor> tensors() { return {tensor("a", "u0", 33), tensor("b", "u1", 70), tensor("c", "u2", 5)}; }

float gradient_of(std::int32_t rank, int engine, int step) { return static_cast<float>(rank + 10 * engine + step); }

// Steps of two engines interleaved differently on each rank, except that update_begin and publish keep one order.
void interleaved(const TestEngine& one, const TestEngine& two, std::int32_t rank) {
  const TestEngine* engines[] = {&one, &two};
  for (const TestEngine* engine : engines) engine->load_all(0);
  const Model& model = one.model();
  for (int step = 0; step < 8; ++step) {
    std::vector<Gradients> gradients;
    for (int e = 0; e < 2; ++e)
      gradients.emplace_back(model, [&](std::size_t, std::size_t) { return gradient_of(rank, e, step); });
    const auto version = static_cast<std::uint64_t>(step);
    const int first = (rank + step) % 2;
    for (const int e : {first, 1 - first}) RANK_OK(zc_zero_begin(*engines[e], "train", ZC_PHASE_ONLY));
    for (std::size_t use = 0; use < 3; ++use) {
      const int now = rank == 0 ? static_cast<int>(use % 2) : 1 - first;
      for (const int e : {now, 1 - now}) {
        const std::size_t mine = rank % 2 == 0 ? use : 2 - use;
        engines[e]->visit(mine, version);
        RANK_OK(zc_zero_grad_ready(*engines[e], mine, gradients[static_cast<std::size_t>(e)].of(mine), nullptr));
      }
    }
    // Each end needs all ranks, and they come to the two ends in opposite orders: a thread of its own for each.
    if (step % 2 == 0) {
      run_threads(2, [&](int e) { RANK_OK(zc_zero_end(*engines[e])); });
    } else {
      for (const TestEngine* engine : engines) RANK_OK(zc_zero_end(*engine));
    }
    for (int e = 0; e < 2; ++e)
      engines[e]->check_gradients(
          [&](std::size_t, std::size_t) { return gradient_of(1, e, step); });  // the mean of 3 ranks
    if (step % 3 == 2) {  // both updates open at once, in one order
      for (const TestEngine* engine : engines) RANK_OK(zc_zero_update_begin(*engine));
      for (const TestEngine* engine : engines) {
        engine->write(version + 1);
        RANK_OK(zc_zero_publish(*engine, nullptr));
      }
    } else {
      for (const TestEngine* engine : engines) engine->update(version + 1);
    }
  }
}

class TwoEngines : public testing::TestWithParam<zc_stage> {};

zc_zero_config one_slot() {
  zc_zero_config config = options();
  config.gradient_slots = 1;
  return config;
}

TEST_P(TwoEngines, on_one_communicator_interleave_their_steps_differently_on_each_rank) {
  const Model model(tensors(), shape(3, GetParam(), 1));
  RankOptions ranks;
  ranks.deadline_ns = 20 * kSecondNs;
  run_ranks(
      3,
      [&](zc_comm* comm, std::int32_t rank) {
        const TestEngine one(comm, model, one_slot()), two(comm, model, one_slot());
        interleaved(one, two, rank);
      },
      ranks);
}

TEST_P(TwoEngines, on_two_communicators_of_the_same_ranks_interleave_their_steps_differently_on_each_rank) {
  const Model model(tensors(), shape(3, GetParam(), 1));
  RankOptions ranks;
  ranks.deadline_ns = 20 * kSecondNs;
  const RankThreads second(3, ranks);
  run_ranks(
      3,
      [&](zc_comm* comm, std::int32_t rank) {
        const TestEngine one(comm, model, one_slot()), two(second.comm(rank), model, one_slot());
        interleaved(one, two, rank);
      },
      ranks);
}
INSTANTIATE_TEST_SUITE_P(Stages, TwoEngines, testing::Values(ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3));

// The ends of two engines come in opposite orders, on one thread each: every waiting call serves both engines, but the
// other engine's end is reached by no one. What can be done is done: all buckets that were brought are reduced.
TEST(TwoEngines, serve_each_other_while_one_of_them_waits) {
  const Model model(tensors(), shape(2, ZC_STAGE_2, 1));
  RankOptions ranks;
  ranks.deadline_ns = 20 * kSecondNs;
  const RankThreads second(2, ranks);
  run_ranks(
      2,
      [&](zc_comm* comm, std::int32_t rank) {
        const TestEngine one(comm, model, one_slot()), two(second.comm(rank), model, one_slot());
        one.load_all();
        two.load_all();
        const Gradients ones(model, [](std::size_t, std::size_t) { return 1.0F; });
        for (int step = 0; step < 5; ++step) {
          RANK_OK(zc_zero_begin(one, "train", ZC_PHASE_ONLY));
          RANK_OK(zc_zero_begin(two, "train", ZC_PHASE_ONLY));
          ones.report_all(one);
          ones.report_all(two);
          // Rank 0 waits in `one` for rank 1, which waits in `two` for slots of rank 0.
          RANK_OK(zc_zero_end(rank == 0 ? one : two));
          RANK_OK(zc_zero_end(rank == 0 ? two : one));
        }
      },
      ranks);
}

TEST(Engines, come_and_go_on_one_communicator_and_may_be_destroyed_at_different_times) {
  const Model model(tensors(), shape(3, ZC_STAGE_3));
  run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
    for (int round = 0; round < 10; ++round) {
      auto engine = std::make_unique<TestEngine>(comm, model);
      engine->load_all(1);
      RANK_OK(zc_zero_begin(*engine, "eval", ZC_PHASE_EVAL));
      engine->visit(static_cast<std::size_t>(rank), 1);
      RANK_OK(zc_zero_end(*engine));
      if (rank == round % 3) sleep_ms(5);
    }
  });
}

// Shards of a rank that has left with engine and communicator are read on by the others.
TEST(Engines, of_ranks_that_have_left_are_still_read) {
  const Model model(tensors(), shape(3, ZC_STAGE_3));
  RankThreads world(3);
  std::atomic<int> left{0};
  world.run([&](zc_comm* comm, std::int32_t rank) {
    auto engine = std::make_unique<TestEngine>(comm, model);
    engine->load_all(1);
    if (rank != 1) {
      engine.reset();
      world.destroy(rank);
      ++left;
      return;
    }
    while (left < 2) sleep_ms(1);
    RANK_OK(zc_zero_begin(*engine, "eval", ZC_PHASE_EVAL));
    for (std::size_t unit = 0; unit < 3; ++unit) engine->visit(unit, 1);
    RANK_OK(zc_zero_end(*engine));
  });
}

TEST(Layouts, may_go_before_their_engines) {
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    auto model = std::make_unique<Model>(tensors(), shape(2, ZC_STAGE_3));
    zc_zero* zero = nullptr;
    RANK_OK(zc_zero_create(comm, model->get(), nullptr, &zero));
    model.reset();
    const void* tensors[1];
    RANK_OK(zc_zero_begin(zero, "eval", ZC_PHASE_EVAL));
    RANK_OK(zc_zero_acquire(zero, 1, tensors, 1, nullptr));
    RANK_OK(zc_zero_release(zero, 1, nullptr));
    RANK_OK(zc_zero_end(zero));
    RANK_OK(zc_zero_destroy(zero));
  });
}

}  // namespace
