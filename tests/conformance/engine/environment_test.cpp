// What a caller's process and thread may bring along: another floating-point mode, a fork.
#include "world.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace zerocomm::test {
namespace {

#if defined(__x86_64__)
TEST(EngineEnvironment, scale_keeps_subnormal_gradients_whatever_the_callers_floating_point_mode) {
  const Model model({tensor("a", "u", 8)}, shape(1, ZC_STAGE_2));
  run_ranks(1, [&](zc_comm* comm, std::int32_t) {
    const TestEngine engine(comm, model);
    engine.load_all();
    const float tiny = 1e-40F;
    const std::vector<float> gradient(8, tiny);
    RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
    RANK_OK(zc_zero_grad_ready(engine, 0, gradient.data(), nullptr));
    const unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | 0x8040);  // flush to zero, denormals are zero
    const zc_status ended = zc_zero_end(engine);
    const zc_status scaled = zc_zero_scale(engine, 0.5);
    _mm_setcsr(saved);
    RANK_CHECK(ended == ZC_OK && scaled == ZC_OK, "%s", zc_last_error());
    engine.check_gradients([&](std::size_t, std::size_t) { return tiny * 0.5F; });
  });
}
#endif

TEST(EngineEnvironment, forked_child_gets_an_error_and_does_not_disturb_its_parent) {
  const Model model({tensor("a", "u", 8)}, shape(1, ZC_STAGE_3));
  run_ranks(1, [&](zc_comm* comm, std::int32_t) {
    const TestEngine engine(comm, model);
    engine.load_all();
    const pid_t child = fork();
    if (child == 0) {
      const void* address = nullptr;
      zc_zero* const zero = engine;
      const bool refused = zc_zero_begin(zero, "train", ZC_PHASE_EVAL) == ZC_FORKED &&
                           zc_zero_acquire(zero, 0, &address, 1, nullptr) == ZC_FORKED &&
                           zc_zero_destroy(zero) == ZC_FORKED;
      _exit(refused ? 0 : 1);
    }
    int ended = 0;
    waitpid(child, &ended, 0);
    RANK_CHECK(child > 0 && WIFEXITED(ended) && WEXITSTATUS(ended) == 0, "the child ended with %d", ended);
    RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_EVAL));
    engine.visit(0, 0);
    RANK_OK(zc_zero_end(engine));
  });
}

}  // namespace
}  // namespace zerocomm::test
