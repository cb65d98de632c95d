// Random legal programs: ranks that agree on passes with gradients and publications and on nothing else.
#pragma once

#include "world.hpp"

#include <atomic>
#include <random>

namespace zerocomm::test {

struct History {
  std::uint32_t seed = 0;
  std::int32_t ranks = 2;
  int threads = 1;  // of each rank
  int rounds = 4;
  zc_stage stage = ZC_STAGE_3;
  zc_zero_config config{};
  std::size_t bucket_bytes = 0;
  std::size_t persistent_bytes = 0;
  zc_placement placement = ZC_PLACEMENT_PER_UNIT;
};

inline std::vector<zc_tensor> history_tensors() {
  return {tensor("embed", "first", 37),
          tensor("w0", "u0", 100),
          tensor("b0", "u0", 5),
          tensor("w1", "u1", 63),
          frozen(tensor("f1", "u1", 9)),
          tensor("none", "u2", 0),
          tensor("h2", "u2", 41, ZC_DTYPE_BF16),
          tensor("w3", "u3", 1),
          tensor("b3", "u3", 130),
          tied(tensor("head", "last", 37), "embed"),
          tensor("norm", "last", 7)};
}

inline History draw_history(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  History history;
  history.seed = seed;
  history.ranks = 2 + below(4);
  history.threads = 1 + below(3) / 2;
  history.rounds = 3 + below(3);
  constexpr zc_stage kStages[] = {ZC_STAGE_3, ZC_STAGE_3, ZC_STAGE_3, ZC_STAGE_2, ZC_STAGE_1, ZC_STAGE_0};
  history.stage = kStages[below(6)];
  constexpr std::size_t kBuckets[] = {1, 256, 1024, 0};
  history.bucket_bytes = kBuckets[below(4)];
  history.persistent_bytes = below(3) == 0 ? 200 : 0;
  history.config = options();
  history.config.gradient_slots = 1 + below(3);
  history.config.micro_steps = 1 + below(3);
  history.config.accumulation = below(2) == 0 ? ZC_ACCUMULATE_REDUCE_EACH : ZC_ACCUMULATE_FIRST;
  history.config.absent = below(2) == 0 ? ZC_ABSENT_ERROR : ZC_ABSENT_ZERO;
  history.config.launch = below(4) == 0 ? ZC_LAUNCH_END : ZC_LAUNCH_COMPLETE;
  history.config.slices = below(2) == 0 ? ZC_SLICES_CLAIMED : ZC_SLICES_STATIC;
  history.config.prefetch = below(4) - 1;
  history.config.drop_released = below(3) == 0;
  history.config.gradient_divisor = 1;
  history.placement = below(2) == 0 ? ZC_PLACEMENT_PER_UNIT : ZC_PLACEMENT_FLAT;
  return history;
}

// Gradient of an element in a pass on a rank: small integers, so that every order of summing gives the same bits.
inline float drawn_gradient(std::int32_t rank, int pass, std::size_t use, std::size_t element) {
  return static_cast<float>(
      (static_cast<std::size_t>(rank) * 5 + static_cast<std::size_t>(pass) * 3 + use * 7 + element) % 16);
}
inline bool drawn_absent(const History& history, std::int32_t rank, int pass, std::size_t use) {
  std::mt19937 random(history.seed * 7919U + static_cast<unsigned>(rank) * 131U + static_cast<unsigned>(pass) * 17U +
                      static_cast<unsigned>(use));
  return random() % 5 == 0;
}

class HistoryRank {
 public:
  HistoryRank(const History& history, const Model& model, zc_comm* comm, std::int32_t rank)
      : history_(history),
        model_(model),
        rank_(rank),
        random_(history.seed * 1000 + static_cast<unsigned>(rank)),
        engine_(comm, model, with_budget(history, model)) {}

  void run() {
    engine_.load_all(0);
    std::mt19937 shared(history_.seed + 1);  // choices that all ranks make alike
    int pass = 0;
    for (int round = 0; round < history_.rounds; ++round) {
      const int passes = 1 + static_cast<int>(shared() % static_cast<unsigned>(history_.config.micro_steps));
      const bool changed = shared() % 3 != 0;
      const int first_pass = pass;
      for (int i = 0; i < passes; ++i, ++pass) {
        eval_passes();
        gradient_pass(pass, passes == 1       ? ZC_PHASE_ONLY
                            : i == 0          ? ZC_PHASE_FIRST
                            : i + 1 == passes ? ZC_PHASE_LAST
                                              : ZC_PHASE_MIDDLE);
      }
      eval_passes();
      check_sums(first_pass, pass);
      engine_.check_padding(rank_);
      if (changed) {
        engine_.update(++version_);
      } else {
        if (below(2) == 0) RANK_OK(zc_zero_update_begin(engine_));
        RANK_OK(zc_zero_publish_unchanged(engine_));
      }
      eval_passes();
    }
  }

 private:
  int below(int most) { return static_cast<int>(random_() % static_cast<unsigned>(most)); }

  // Room for every thread with a unit and the owner of its ties; twice that, so that held units cannot split the room.
  static zc_zero_config with_budget(const History& history, const Model& model) {
    zc_zero_config config = history.config;
    std::size_t largest_bytes = 0;
    for (std::size_t unit = 0; unit < model.info().unit_count; ++unit)
      largest_bytes = std::max(largest_bytes, model.unit(unit).gathered_bytes);
    const bool tight = history.seed % 2 == 0;
    if (history.threads == 1 && !tight) return config;
    config.max_held_bytes = 2 * static_cast<std::size_t>(history.threads) * largest_bytes;
    if (tight && history.stage == ZC_STAGE_3)
      config.budget_bytes = static_cast<std::size_t>(config.gradient_slots) * 2 * model.info().largest_bucket_bytes +
                            2 * config.max_held_bytes + 8192 * static_cast<std::size_t>(history.persistent_bytes != 0);
    if (config.budget_bytes != 0 && config.accumulation == ZC_ACCUMULATE_FIRST) config.budget_bytes = 0;
    return config;
  }

  void visit_some(std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto unit_count = static_cast<unsigned>(model_.info().unit_count);
    for (auto visits = random() % 6; visits > 0; --visits) {
      if (random() % 4 == 0) {
        const zc_status status = zc_zero_prefetch(engine_, random() % unit_count);
        RANK_CHECK(status == ZC_OK || status == ZC_AGAIN, "prefetch gave %s: %s", zc_status_name(status),
                   zc_last_error());
      }
      const std::size_t unit = random() % unit_count;
      const std::vector<const void*> tensors = engine_.acquire(unit);
      if (random() % 3 == 0) std::this_thread::yield();
      engine_.check_values(unit, tensors, version_);
      RANK_OK(zc_zero_release(engine_, unit, nullptr));
    }
  }

  void eval_passes() {
    for (int passes = below(3); passes > 0; --passes) {
      RANK_OK(zc_zero_begin(engine_, below(2) == 0 ? "eval" : "other", ZC_PHASE_EVAL));
      const auto seed = static_cast<std::uint32_t>(random_());
      run_threads_here([&](int thread) { visit_some(seed + static_cast<unsigned>(thread)); });
      RANK_OK(zc_zero_end(engine_));
    }
  }

  void gradient_pass(int pass, zc_phase phase) {
    const Gradients gradients(model_,
                              [&](std::size_t use, std::size_t e) { return drawn_gradient(rank_, pass, use, e); });
    std::vector<std::size_t> order;
    for (std::size_t use = 0; use < model_.info().use_count; ++use)
      if (model_.trainable(use)) order.push_back(use);
    std::shuffle(order.begin(), order.end(), random_);
    RANK_OK(zc_zero_begin(engine_, "train", phase));
    const auto seed = static_cast<std::uint32_t>(random_());
    std::atomic<std::size_t> next{0};
    run_threads_here([&](int thread) {
      visit_some(seed + static_cast<unsigned>(thread));
      for (std::size_t i = next++; i < order.size(); i = next++) {
        const std::size_t use = order[i];
        if (!drawn_absent(history_, rank_, pass, use))
          RANK_OK(zc_zero_grad_ready(engine_, use, gradients.of(use), nullptr));
        else if (history_.config.absent == ZC_ABSENT_ERROR || use % 2 == 0)
          RANK_OK(zc_zero_grad_absent(engine_, use));
        if (seed % 7 == 0) visit_some(seed + static_cast<unsigned>(use));
      }
    });
    RANK_OK(zc_zero_end(engine_));
  }

  void check_sums(int first_pass, int end_pass) const {
    engine_.check_gradients([&](std::size_t tensor, std::size_t element) {
      float sum = 0;
      for (std::size_t use = 0; use < model_.info().use_count; ++use) {
        if (model_.use(use).stored_tensor != tensor) continue;
        for (int pass = first_pass; pass < end_pass; ++pass)
          for (std::int32_t rank = 0; rank < history_.ranks; ++rank)
            if (!drawn_absent(history_, rank, pass, use)) sum += drawn_gradient(rank, pass, use, element);
      }
      return sum;
    });
  }

  void run_threads_here(const std::function<void(int)>& body) {
    if (history_.threads == 1)
      body(0);
    else
      run_threads(history_.threads, body);
  }

  const History& history_;
  const Model& model_;
  std::int32_t rank_;
  std::mt19937 random_;
  TestEngine engine_;
  std::uint64_t version_ = 0;
};

inline void run_history(std::uint32_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const History history = draw_history(seed);
  zc_layout_config config = shape(history.ranks, history.stage, history.bucket_bytes);
  config.persistent_bytes = history.persistent_bytes;
  config.placement = history.placement;
  const Model model(history_tensors(), config);
  RankOptions ranks;
  ranks.deadline_ns = 20 * kSecondNs;
  run_ranks(
      history.ranks, [&](zc_comm* comm, std::int32_t rank) { HistoryRank(history, model, comm, rank).run(); }, ranks);
}

}  // namespace zerocomm::test
