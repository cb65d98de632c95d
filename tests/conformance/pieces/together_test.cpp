// Several objects at once on one communicator.
#include "pieces.hpp"

namespace zerocomm::test {
namespace {

// Every rank interleaves two reducers and a fetcher in its own way; the ends of the reducers meet in opposite orders.
TEST(Together, two_reducers_and_a_fetcher_interleave_differently_on_each_rank) {
  const Model model(mixed_tensors(), shape(3, ZC_STAGE_3, 256)),
      small({tensor("x", "v0", 33), tensor("y", "v1", 70)}, shape(3, ZC_STAGE_2, 1));
  run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
    zc_reducer_config config = reducer_options();
    config.gradient_slots = 1;
    const TestReducer one(comm, model, config), two(comm, small, config);
    const TestFetcher fetcher(comm, model);
    for (int step = 0; step < 6; ++step) {
      const auto version = static_cast<std::uint64_t>(step) + 1;
      const float base = static_cast<float>(rank + 10 * step);
      const Gradients first(model, [&](std::size_t, std::size_t) { return base; }),
          second(small, [&](std::size_t, std::size_t) { return base + 5; });
      fetcher.update(version);
      RANK_OK(zc_reducer_begin(one, ZC_PHASE_ONLY));
      RANK_OK(zc_reducer_begin(two, ZC_PHASE_ONLY));
      RANK_OK(zc_fetcher_begin(fetcher, "train"));
      for (std::size_t i = 0; i < model.info().use_count; ++i) {
        const std::size_t use = rank == 1 ? model.info().use_count - 1 - i : i;
        fetcher.visit(model.use(use).unit, version);
        if (model.trainable(use)) RANK_OK(zc_reducer_grad_ready(one, use, first.of(use), nullptr));
        if (i < 2)
          RANK_OK(zc_reducer_grad_ready(two, rank == 0 ? 1 - i : i, second.of(rank == 0 ? 1 - i : i), nullptr));
      }
      RANK_OK(zc_fetcher_end(fetcher));
      if (step % 2 == 0) {
        run_threads(2, [&](int which) { RANK_OK(zc_reducer_end(which == rank % 2 ? one : two)); });
      } else {
        RANK_OK(zc_reducer_end(one));
        RANK_OK(zc_reducer_end(two));
      }
      const float mean = static_cast<float>(1 + 10 * step);                                       // of 3 ranks
      one.check_gradients([&](std::size_t t, std::size_t) { return t == 0 ? 2 * mean : mean; });  // of 0 with its tie
      two.check_gradients([&](std::size_t, std::size_t) { return mean + 5; });
    }
  });
}

// A reducer feeds an optimizer of the caller's, whose new values a fetcher gives to all: what an engine of stage 3
// does.
TEST(Together, a_reducer_and_a_fetcher_train_as_an_engine_does) {
  const std::vector<zc_tensor> tensors = {tensor("a", "u0", 37), tensor("b", "u1", 100),
                                          tied(tensor("c", "u2", 37), "a")};
  for (const zc_placement placement : {ZC_PLACEMENT_PER_UNIT, ZC_PLACEMENT_FLAT}) {
    const Model model(tensors, shape(3, ZC_STAGE_3, 1, placement));
    run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
      const TestReducer reducer(comm, model);
      const TestFetcher fetcher(comm, model);
      const TestEngine engine(comm, model);
      engine.load_all(1);
      fetcher.update(1);
      for (int step = 0; step < 4; ++step) {
        const Gradients gradients(model, [&](std::size_t use, std::size_t e) {
          return static_cast<float>(static_cast<std::size_t>(rank) + use + e) / 7 + static_cast<float>(step);
        });
        reducer.step(gradients);
        RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
        gradients.report_all(engine);
        RANK_OK(zc_zero_end(engine));
        // One shard of each: same layout, same places.
        float* gradient = nullptr;
        void* shard = nullptr;
        std::size_t gradient_count = 0, count = 0;
        RANK_OK(zc_reducer_output(reducer, 0, &gradient, &gradient_count));
        RANK_OK(zc_fetcher_update_begin(fetcher));
        RANK_OK(zc_fetcher_shard(fetcher, 0, &shard, &count));
        RANK_CHECK(count == gradient_count, "%zu and %zu elements", count, gradient_count);
        for (std::size_t i = 0; i < count; ++i) static_cast<float*>(shard)[i] -= 0.1F * gradient[i];
        RANK_OK(zc_fetcher_publish(fetcher, nullptr));
        RANK_OK(zc_zero_update_begin(engine));
        for (const zc_zero_piece& piece : engine.pieces())
          for (std::size_t i = 0; i < piece.count; ++i) piece.master[i] -= 0.1F * piece.gradient[i];
        RANK_OK(zc_zero_publish(engine, nullptr));
        RANK_OK(zc_fetcher_begin(fetcher, "look"));
        RANK_OK(zc_zero_begin(engine, "look", ZC_PHASE_EVAL));
        for (std::size_t unit = 0; unit < 3; ++unit) {
          const std::size_t bytes = (unit == 1 ? 100 : 37) * sizeof(float);
          RANK_CHECK(std::memcmp(fetcher.acquire(unit)[0], engine.acquire(unit)[0], bytes) == 0, "unit %zu, step %d",
                     unit, step);
          RANK_OK(zc_fetcher_release(fetcher, unit, nullptr));
          RANK_OK(zc_zero_release(engine, unit, nullptr));
        }
        RANK_OK(zc_fetcher_end(fetcher));
        RANK_OK(zc_zero_end(engine));
      }
    });
  }
}

}  // namespace
}  // namespace zerocomm::test
