// Misuse by one rank: calls out of turn, more held than was declared, streams on host memory.
#include "two_units.hpp"

namespace {

using namespace zerocomm::test;

constexpr zc_stage kStages[] = {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3};

TEST(State, of_the_engine_decides_which_call_is_legal) {
  for (const zc_stage stage : kStages) {
    const Model model(two_units(), shape(2, stage));
    run_ranks(2, [&](zc_comm* comm, std::int32_t) {
      const TestEngine engine(comm, model);
      const Gradients gradients = ones(model);
      const void* tensors[1];
      float exported[33];
      zc_norm norm{};
      norm.struct_size = sizeof norm;
      engine.load_all();
      // Outside a pass.
      RANK_STATUS(ZC_STATE, zc_zero_end(engine));
      RANK_STATUS(ZC_STATE, zc_zero_acquire(engine, 0, tensors, 1, nullptr));
      RANK_STATUS(ZC_STATE, zc_zero_release(engine, 0, nullptr));
      RANK_STATUS(ZC_STATE, zc_zero_prefetch(engine, 0));
      RANK_STATUS(ZC_STATE, zc_zero_grad_ready(engine, 0, gradients.of(0), nullptr));
      RANK_STATUS(ZC_STATE, zc_zero_grad_absent(engine, 0));
      RANK_STATUS(ZC_STATE, zc_zero_publish(engine, nullptr));
      RANK_STATUS(ZC_STATE, zc_zero_cast(engine));
      RANK_STATUS(ZC_STATE, zc_zero_norm(engine, &norm));
      RANK_STATUS(ZC_STATE, zc_zero_scale(engine, 2));
      for (const zc_phase phase : {ZC_PHASE_MIDDLE, ZC_PHASE_LAST})
        RANK_STATUS(ZC_STATE, zc_zero_begin(engine, "train", phase));
      RANK_STATUS(ZC_STATE, zc_zero_begin(engine, "train", ZC_PHASE_FIRST));  // micro_steps is 1
      RANK_STATUS(ZC_ARGUMENT, zc_zero_begin(engine, "train", ZC_PHASE_NONE));
      RANK_STATUS(ZC_ARGUMENT, zc_zero_begin(engine, nullptr, ZC_PHASE_ONLY));
      // Inside an evaluation pass.
      RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
      RANK_STATUS(ZC_STATE, zc_zero_grad_ready(engine, 0, gradients.of(0), nullptr));
      RANK_STATUS(ZC_STATE, zc_zero_grad_absent(engine, 0));
      RANK_OK(zc_zero_end(engine));
      // Inside a pass.
      RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
      RANK_STATUS(ZC_STATE, zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
      RANK_STATUS(ZC_STATE, zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
      RANK_STATUS(ZC_STATE, zc_zero_update_begin(engine));
      RANK_STATUS(ZC_STATE, zc_zero_publish_unchanged(engine));
      RANK_STATUS(ZC_STATE, zc_zero_norm(engine, &norm));
      RANK_STATUS(ZC_STATE, zc_zero_release(engine, 0, nullptr));
      RANK_STATUS(ZC_ARGUMENT, zc_zero_acquire(engine, 2, tensors, 1, nullptr));
      RANK_STATUS(ZC_ARGUMENT, zc_zero_acquire(engine, 0, tensors, 0, nullptr));
      RANK_STATUS(ZC_ARGUMENT, zc_zero_grad_ready(engine, 0, nullptr, nullptr));
      RANK_STATUS(ZC_ARGUMENT, zc_zero_grad_ready(engine, 9, gradients.of(0), nullptr));
      engine.acquire(0);
      RANK_OK(zc_zero_release(engine, 0, nullptr));
      RANK_STATUS(ZC_STATE, zc_zero_release(engine, 0, nullptr));
      report(engine, 0, gradients);
      RANK_STATUS(ZC_STATE, zc_zero_grad_ready(engine, 0, gradients.of(0), nullptr));
      RANK_ERROR_SAYS("alpha");
      RANK_STATUS(ZC_STATE, zc_zero_grad_absent(engine, 0));
      report(engine, 1, gradients);
      engine.acquire(1);
      RANK_OK(zc_zero_end(engine));
      // With a unit held.
      RANK_STATUS(ZC_STATE, zc_zero_update_begin(engine));
      RANK_STATUS(ZC_STATE, zc_zero_publish_unchanged(engine));
      RANK_OK(zc_zero_release(engine, 1, nullptr));
      // With the update open.
      RANK_OK(zc_zero_norm(engine, &norm));
      RANK_OK(zc_zero_update_begin(engine));
      RANK_STATUS(ZC_STATE, zc_zero_update_begin(engine));
      RANK_STATUS(ZC_STATE, zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
      RANK_STATUS(ZC_STATE, zc_zero_acquire(engine, 0, tensors, 1, nullptr));
      RANK_STATUS(ZC_STATE, zc_zero_prefetch(engine, 0));
      RANK_STATUS(ZC_STATE, zc_zero_export(engine, 0, ZC_STATE_PARAMETER, exported));
      engine.write(1);
      RANK_OK(zc_zero_publish(engine, nullptr));
      // After it.
      RANK_STATUS(ZC_STATE, zc_zero_publish(engine, nullptr));
      RANK_STATUS(ZC_STATE, zc_zero_norm(engine, &norm));
      const void* full[1] = {gradients.of(0)};
      RANK_STATUS(ZC_STATE, zc_zero_load(engine, 0, full, ZC_DTYPE_NONE, ZC_NONE));
      RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
      engine.visit(0, 1);
      engine.visit(1, 1);
      RANK_OK(zc_zero_end(engine));
    });
  }
}

TEST(State, of_a_step_between_its_passes_allows_no_update) {
  const Model model(two_units(), shape(2, ZC_STAGE_2));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    zc_zero_config config = options();
    config.micro_steps = 2;
    const TestEngine engine(comm, model, config);
    engine.load_all();
    const Gradients gradients = ones(model);
    zc_norm norm{};
    norm.struct_size = sizeof norm;
    RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_FIRST));
    gradients.report_all(engine);
    RANK_OK(zc_zero_end(engine));
    RANK_STATUS(ZC_STATE, zc_zero_update_begin(engine));
    RANK_STATUS(ZC_STATE, zc_zero_publish_unchanged(engine));
    RANK_STATUS(ZC_STATE, zc_zero_norm(engine, &norm));
    RANK_STATUS(ZC_STATE, zc_zero_begin(engine, "train", ZC_PHASE_FIRST));
    RANK_STATUS(ZC_STATE, zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
    RANK_STATUS(ZC_STATE, zc_zero_begin(engine, "train", ZC_PHASE_MIDDLE));  // no room for a LAST
    RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
    engine.visit(0, 0);
    RANK_OK(zc_zero_end(engine));
    RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_LAST));
    gradients.report_all(engine);
    RANK_OK(zc_zero_end(engine));
    engine.update(1);
  });
}

TEST(Budget, that_holding_a_unit_would_exceed_is_an_error_at_once) {
  const Model model({tensor("a", "u0", 64), tensor("b", "u1", 64), tensor("c", "u2", 64)}, shape(2, ZC_STAGE_3));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    zc_zero_config config = options();
    config.max_held_bytes = 512;
    const TestEngine engine(comm, model, config);
    engine.load_all(1);
    RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
    engine.acquire(0);
    engine.acquire(1);
    const void* tensors[1];
    const auto start = std::chrono::steady_clock::now();
    RANK_STATUS(ZC_BUDGET, zc_zero_acquire(engine, 2, tensors, 1, nullptr));
    RANK_CHECK(seconds_since(start) < 1, "it waited");
    RANK_ERROR_SAYS("u2");
    RANK_ERROR_SAYS("512");
    engine.check_values(0, engine.acquire(0), 1);  // what is held already costs nothing more
    RANK_OK(zc_zero_release(engine, 0, nullptr));
    RANK_OK(zc_zero_release(engine, 0, nullptr));
    engine.visit(2, 1);
    RANK_OK(zc_zero_release(engine, 1, nullptr));
    RANK_OK(zc_zero_end(engine));
  });
}

TEST(Budget, below_one_unit_is_refused_at_creation_by_either_option) {
  const Model model({tensor("a", "u0", 64), tensor("b", "u1", 640)}, shape(2, ZC_STAGE_3));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    zc_zero* zero = nullptr;
    zc_zero_config config = options();
    config.max_held_bytes = 2000;
    RANK_STATUS(ZC_BUDGET, zc_zero_create(comm, model.get(), &config, &zero));
    RANK_ERROR_SAYS("2560");
    config = options();
    config.budget_bytes = 3000;
    RANK_STATUS(ZC_BUDGET, zc_zero_create(comm, model.get(), &config, &zero));
    const std::size_t least_bytes =
        2560 + model.info().largest_bucket_bytes * std::min<std::size_t>(2, model.info().bucket_count);
    RANK_ERROR_SAYS(std::to_string(least_bytes));
    config.budget_bytes = least_bytes;
    { const TestEngine engine(comm, model, config); }
    --config.budget_bytes;
    RANK_STATUS(ZC_BUDGET, zc_zero_create(comm, model.get(), &config, &zero));
    check_usable(comm, model);
  });
}

TEST(Stream, is_unsupported_on_host_memory) {
  const Model model(two_units(), shape(1, ZC_STAGE_3));
  run_ranks(1, [&](zc_comm* comm, std::int32_t) {
    const TestEngine engine(comm, model);
    engine.load_all();
    const Gradients gradients = ones(model);
    int stream = 0;
    const void* tensors[1];
    RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
    RANK_STATUS(ZC_UNSUPPORTED, zc_zero_acquire(engine, 0, tensors, 1, &stream));
    RANK_STATUS(ZC_UNSUPPORTED, zc_zero_grad_ready(engine, 0, gradients.of(0), &stream));
    engine.acquire(0);
    RANK_STATUS(ZC_UNSUPPORTED, zc_zero_release(engine, 0, &stream));
    RANK_OK(zc_zero_release(engine, 0, nullptr));
    gradients.report_all(engine);
    RANK_OK(zc_zero_end(engine));
    RANK_OK(zc_zero_update_begin(engine));
    RANK_STATUS(ZC_UNSUPPORTED, zc_zero_publish(engine, &stream));
    RANK_OK(zc_zero_publish(engine, nullptr));
  });
}

}  // namespace
