// Two tensors in two units, and what tests of errors do with them.
#pragma once

#include "world.hpp"

namespace zerocomm::test {

inline std::vector<zc_tensor> two_units() { return {tensor("alpha", "u0", 33), tensor("beta", "u1", 70)}; }

// The communicator works after an error: a barrier, and a new engine.
inline void check_usable(zc_comm* comm, const Model& model) {
  RANK_OK(zc_comm_status(comm));
  zc_coll_options options{};
  options.struct_size = sizeof options;
  RANK_OK(zc_barrier(comm, &options));
  const TestEngine engine(comm, model);
  engine.load_all(2);
  RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
  engine.visit(0, 2);
  RANK_OK(zc_zero_end(engine));
}

inline void report(const TestEngine& engine, std::size_t use, const Gradients& gradients) {
  RANK_OK(zc_zero_grad_ready(engine, use, gradients.of(use), nullptr));
}

inline Gradients ones(const Model& model) {
  return Gradients(model, [](std::size_t, std::size_t) { return 1.0F; });
}

}  // namespace zerocomm::test
