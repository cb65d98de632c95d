// What a reducer refuses, and that it works afterwards.
#include "pieces.hpp"

namespace zerocomm::test {
namespace {

std::vector<zc_tensor> two() {
  return {tensor("alpha", "u0", 33), tensor("beta", "u1", 70), frozen(tensor("ice", "u1", 8))};
}
Gradients ones(const Model& model) {
  return Gradients(model, [](std::size_t, std::size_t) { return 1.0F; });
}

TEST(ReducerMisuse, is_an_error_that_names_it_and_changes_nothing) {
  const Model model(two(), shape(2, ZC_STAGE_2, 1));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    const TestReducer reducer(comm, model);
    const Gradients gradients = ones(model);
    const auto ready = [&](std::size_t use) { return zc_reducer_grad_ready(reducer, use, gradients.of(0), nullptr); };
    zc_norm norm{};
    norm.struct_size = sizeof norm;
    for (int step = 0; step < 2; ++step) {
      RANK_STATUS(ZC_STATE, ready(0));
      RANK_ERROR_SAYS("'alpha' (use 0) outside a pass");
      RANK_STATUS(ZC_STATE, zc_reducer_grad_absent(reducer, 0));
      RANK_STATUS(ZC_STATE, zc_reducer_end(reducer));
      RANK_STATUS(ZC_ARGUMENT, zc_reducer_begin(reducer, ZC_PHASE_EVAL));
      RANK_ERROR_SAYS("EVAL");
      RANK_STATUS(ZC_ARGUMENT, zc_reducer_begin(reducer, ZC_PHASE_NONE));
      RANK_STATUS(ZC_STATE, zc_reducer_begin(reducer, ZC_PHASE_LAST));
      RANK_STATUS(ZC_STATE, zc_reducer_begin(reducer, ZC_PHASE_FIRST));
      RANK_ERROR_SAYS("zc_reducer_config.micro_steps allows 1");
      RANK_OK(zc_reducer_begin(reducer, ZC_PHASE_ONLY));
      RANK_STATUS(ZC_STATE, zc_reducer_begin(reducer, ZC_PHASE_ONLY));
      RANK_ERROR_SAYS("zc_reducer_end comes first");
      RANK_STATUS(ZC_STATE, zc_reducer_norm(reducer, &norm));
      RANK_STATUS(ZC_STATE, zc_reducer_scale(reducer, 2));
      RANK_STATUS(ZC_ARGUMENT, ready(3));
      RANK_ERROR_SAYS("use 3 of a layout with 3");
      RANK_STATUS(ZC_ARGUMENT, ready(2));
      RANK_ERROR_SAYS("'ice' (use 2), which is frozen");
      RANK_STATUS(ZC_ARGUMENT, zc_reducer_grad_ready(reducer, 0, nullptr, nullptr));
      int stream = 0;
      RANK_STATUS(ZC_UNSUPPORTED, zc_reducer_grad_ready(reducer, 0, gradients.of(0), &stream));
      RANK_OK(ready(0));
      RANK_STATUS(ZC_STATE, ready(0));
      RANK_ERROR_SAYS("reported ready before");
      RANK_STATUS(ZC_STATE, zc_reducer_grad_absent(reducer, 0));
      RANK_STATUS(ZC_ARGUMENT, zc_reducer_end(reducer));
      RANK_ERROR_SAYS("'beta' (use 1)");
      std::size_t uses[2] = {}, count = 0;
      RANK_OK(zc_reducer_blockers(reducer, static_cast<std::size_t>(model.use(1).bucket), 0, uses, 2, &count));
      RANK_CHECK(count <= 1 && (count == 0 || uses[0] == 1), "%zu blockers", count);
      RANK_OK(zc_reducer_grad_ready(reducer, 1, gradients.of(1), nullptr));
      RANK_OK(zc_reducer_end(reducer));
      reducer.check_gradients([](std::size_t, std::size_t) { return 1.0F; });
      RANK_OK(zc_reducer_norm(reducer, &norm));
      RANK_CHECK(norm.sum_squares == 103, "%g", norm.sum_squares);
    }
    float* output = nullptr;
    std::size_t count = 0;
    RANK_STATUS(ZC_ARGUMENT, zc_reducer_output(reducer, 9, &output, &count));
    RANK_STATUS(ZC_ARGUMENT, zc_reducer_output(reducer, 0, nullptr, &count));
    RANK_STATUS(ZC_ARGUMENT, zc_reducer_begin(nullptr, ZC_PHASE_ONLY));
    RANK_ERROR_SAYS("the reducer is NULL");
    RANK_OK(zc_reducer_destroy(nullptr));
  });
}

TEST(ReducerOptions, that_differ_are_a_mismatch_on_all_ranks_and_wrong_ones_an_argument_error) {
  const Model model(two(), shape(2, ZC_STAGE_2, 1)), other(two(), shape(2, ZC_STAGE_2, 1 << 20)),
      of_three(two(), shape(3, ZC_STAGE_2, 1));
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    zc_reducer* reducer = nullptr;
    zc_reducer_config config = reducer_options();
    config.gradient_slots = 1 + rank;
    RANK_STATUS(ZC_MISMATCH, zc_reducer_create(comm, model.get(), &config, &reducer));
    RANK_ERROR_SAYS("zc_reducer_create: gradient_slots is 1 on rank 0 and 2 on rank 1");
    config.gradient_slots = 0;
    RANK_STATUS(ZC_MISMATCH, zc_reducer_create(comm, (rank == 0 ? model : other).get(), &config, &reducer));
    RANK_ERROR_SAYS("layout hash");
    // Other objects on other ranks.
    zc_fetcher* fetcher = nullptr;
    RANK_STATUS(ZC_MISMATCH, rank == 0 ? zc_reducer_create(comm, model.get(), nullptr, &reducer)
                                       : zc_fetcher_create(comm, model.get(), nullptr, &fetcher));
    RANK_ERROR_SAYS("the object");
    RANK_STATUS(ZC_ARGUMENT, zc_reducer_create(comm, of_three.get(), &config, &reducer));
    RANK_ERROR_SAYS("the layout is for 3 ranks");
    config.launch = static_cast<zc_launch>(7);
    RANK_STATUS(ZC_ARGUMENT, zc_reducer_create(comm, model.get(), &config, &reducer));
    RANK_ERROR_SAYS("zc_reducer_config.launch is 7");
    RANK_STATUS(ZC_ARGUMENT, zc_reducer_create(comm, model.get(), nullptr, nullptr));
    RANK_CHECK(reducer == nullptr && fetcher == nullptr, "a refused object has no handle");
    TestReducer(comm, model).step(ones(model));
  });
}

TEST(ReducerPhases, that_differ_are_a_mismatch_on_all_ranks_and_the_communicator_lives) {
  const Model model(two(), shape(2, ZC_STAGE_2, 1));
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    {
      zc_reducer_config config = reducer_options();
      config.micro_steps = 2;
      const TestReducer reducer(comm, model, config);
      const Gradients gradients = ones(model);
      RANK_OK(zc_reducer_begin(reducer, rank == 0 ? ZC_PHASE_ONLY : ZC_PHASE_FIRST));
      zc_status status = ZC_OK;
      for (const std::size_t use : {std::size_t{0}, std::size_t{1}})
        if (status == ZC_OK) status = zc_reducer_grad_ready(reducer, use, gradients.of(use), nullptr);
      if (status == ZC_OK) status = zc_reducer_end(reducer);
      RANK_STATUS(ZC_MISMATCH, status);
      RANK_ERROR_SAYS("in phase ONLY");
    }
    TestReducer(comm, model).step(ones(model));
  });
}

TEST(ReducerDeadline, names_the_call_the_rank_and_the_tensor_that_is_missing) {
  const Model model(two(), shape(2, ZC_STAGE_2, 1));
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    zc_reducer_config config = reducer_options();
    config.deadline_ns = 200 * kMillisecondNs;
    const TestReducer reducer(comm, model, config);
    const Gradients gradients = ones(model);
    RANK_OK(zc_reducer_begin(reducer, ZC_PHASE_ONLY));
    RANK_OK(zc_reducer_grad_ready(reducer, 0, gradients.of(0), nullptr));
    if (rank == 1) {
      while (zc_comm_status(comm) == ZC_OK) sleep_ms(5);
      return;
    }
    RANK_OK(zc_reducer_grad_ready(reducer, 1, gradients.of(1), nullptr));
    RANK_STATUS(ZC_TIMEOUT, zc_reducer_end(reducer));
    RANK_ERROR_SAYS("zc_reducer_end");
    RANK_ERROR_SAYS("beta");
  });
}

}  // namespace
}  // namespace zerocomm::test
