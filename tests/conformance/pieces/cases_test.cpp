// Problems of users of other libraries, as inputs of a reducer and a fetcher.
#include "pieces.hpp"

#include "support/exact_data.hpp"

#include <cmath>

namespace zerocomm::test {
namespace {

// A hook that is slow: now and then, on a rank of its choice, before a bucket can be reduced.
struct Delay {
  int milliseconds = 0;
  std::uint64_t one_in = 1;
  std::atomic<std::uint64_t> calls{0};

  static void run(void* context, const zc_gradient_piece*) {
    auto& self = *static_cast<Delay*>(context);
    if (self.calls.fetch_add(1) % self.one_in == 0) sleep_ms(self.milliseconds);
  }
  void add_to(zc_reducer_config& config) {
    config.pre_reduce = &run;
    config.pre_reduce_context = this;
  }
};

// Losses that depend on the bucket size, and NaN with small buckets and overlap: 100 tensors of 1,000 elements. Bucket
// sizes, overlap, a delay before each reduction and the order of reports change no bit, and the bits are right.
TEST(BucketSize, changes_no_bit_of_the_result_with_delays_before_the_reductions) {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back(zerocomm::format("t%d", i));
  std::vector<zc_tensor> tensors;
  for (const std::string& name : names) tensors.push_back(tensor(name.c_str(), name.c_str(), 1000));
  const auto input = [](std::size_t use, std::size_t e, std::int32_t rank) {
    const std::uint64_t draw = mix(mix(use, e), static_cast<std::uint64_t>(rank));
    return std::ldexp(static_cast<float>(draw >> 40), static_cast<int>(draw % 9) - 20);
  };
  std::vector<float> right(100'000);
  for (std::size_t i = 0; i < right.size(); ++i)
    right[i] = (input(i / 1000, i % 1000, 0) + input(i / 1000, i % 1000, 1)) / 2;
  std::set<std::uint64_t> numbers_of_buckets;
  for (const std::size_t limit : {std::size_t{1000}, std::size_t{3000}, std::size_t{1'000'000}})
    for (const std::int32_t slow_rank : {-1, 0, 1}) {
      const Model model(tensors, shape(2, ZC_STAGE_2, limit * sizeof(float)));
      std::vector<float> found(100'000);  // ranks write disjoint elements
      run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
        Delay delay;
        delay.milliseconds = 1;
        delay.one_in = limit == 3000 ? 1 : 7;
        zc_reducer_config config = reducer_options();
        config.launch = slow_rank == 1 ? ZC_LAUNCH_END : ZC_LAUNCH_COMPLETE;
        if (rank == slow_rank) delay.add_to(config);
        const TestReducer reducer(comm, model, config);
        const Gradients gradients(model, [&](std::size_t use, std::size_t e) { return input(use, e, rank); });
        RANK_OK(zc_reducer_begin(reducer, ZC_PHASE_ONLY));
        for (std::size_t i = 0; i < 100; ++i) {
          const std::size_t use = slow_rank == rank ? i : 99 - i;
          RANK_OK(zc_reducer_grad_ready(reducer, use, gradients.of(use), nullptr));
        }
        RANK_OK(zc_reducer_end(reducer));
        const zc_reducer_stats stats = reducer.stats();
        RANK_CHECK(stats.buckets_reduced == model.info().bucket_count, "%llu buckets",
                   static_cast<unsigned long long>(stats.buckets_reduced));
        RANK_CHECK(stats.buckets_before_end == 0 || config.launch == ZC_LAUNCH_COMPLETE, "a bucket before end");
        for (const zc_zero_piece& piece : reducer.pieces())
          std::copy_n(piece.gradient, piece.count,
                      found.begin() + static_cast<std::ptrdiff_t>(piece.tensor * 1000 + piece.tensor_offset));
      });
      EXPECT_EQ(std::memcmp(found.data(), right.data(), found.size() * sizeof(float)), 0)
          << limit << " elements, slow rank " << slow_rank;
      numbers_of_buckets.insert(model.info().bucket_count);
    }
  EXPECT_EQ(numbers_of_buckets.size(), 3u);
  EXPECT_EQ(*numbers_of_buckets.begin(), 1u);
  EXPECT_EQ(*numbers_of_buckets.rbegin(), 100u);
}

// The first micro-step starts its reduction, and later ones are lost or race with it: two micro-steps from one array,
// the first reduction slow on one rank. Reduced each: the array is the caller's again after end, and not before. Added
// first: nothing is sent before the last.
TEST(OverlapAndAccumulation, a_slow_first_reduction_loses_no_micro_step) {
  const Model model({tensor("a", "u0", 100), tensor("b", "u1", 50)}, shape(2, ZC_STAGE_2, 1));
  for (const zc_accumulation order : {ZC_ACCUMULATE_REDUCE_EACH, ZC_ACCUMULATE_FIRST})
    for (const std::int32_t slow_rank : {0, 1})
      run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
        Delay delay;
        delay.milliseconds = 30;
        delay.one_in = 100;  // the first of all
        zc_reducer_config config = reducer_options();
        config.micro_steps = 2;
        config.accumulation = order;
        config.gradient_divisor = 1;
        if (rank == slow_rank) delay.add_to(config);
        const TestReducer reducer(comm, model, config);
        std::vector<float> gradient(100);
        for (int step = 0; step < 2; ++step) {
          for (int pass = 0; pass < 2; ++pass) {
            const auto value = static_cast<float>(1 + pass + 4 * step + 8 * rank);
            std::fill(gradient.begin(), gradient.end(), value);
            RANK_OK(zc_reducer_begin(reducer, pass == 0 ? ZC_PHASE_FIRST : ZC_PHASE_LAST));
            for (const std::size_t use : {std::size_t{1}, std::size_t{0}})
              RANK_OK(zc_reducer_grad_ready(reducer, use, gradient.data(), nullptr));
            RANK_OK(zc_reducer_end(reducer));
            const auto reduced = static_cast<std::uint64_t>(order == ZC_ACCUMULATE_FIRST ? 2 * (step + pass)
                                                                                         : 2 * (2 * step + pass + 1));
            RANK_CHECK(reducer.stats().buckets_reduced == reduced, "%llu buckets after pass %d of step %d",
                       static_cast<unsigned long long>(reducer.stats().buckets_reduced), pass, step);
          }
          // (1 + 2) of each rank, 4 more in the second step, 8 more on rank 1.
          reducer.check_gradients(
              [&](std::size_t, std::size_t) { return static_cast<float>(2 * 3 + 4 * 4 * step + 2 * 8); });
        }
      });
}

// All layers end with the gradient of the last where a slot is used again while somebody still reads it, and memory
// grows with depth where each layer has its own. Slots are used again while a slow rank still reads others: right
// values, and memory that does not grow with depth.
TEST(SlotReuse, has_right_values_and_a_peak_that_does_not_depend_on_depth) {
  std::vector<std::string> names;
  for (int i = 0; i < 24; ++i) names.push_back(zerocomm::format("layer%d", i));
  for (const std::int32_t slots : {2, 3})
    for (const std::size_t depth : {std::size_t{6}, std::size_t{24}}) {
      std::vector<zc_tensor> tensors;
      for (std::size_t i = 0; i < depth; ++i)
        tensors.push_back(tensor(names[i].c_str(), names[i].c_str(), 2048, ZC_DTYPE_BF16));
      const Model model(tensors, shape(4, ZC_STAGE_3, 1));
      run_ranks(4, [&](zc_comm* comm, std::int32_t rank) {
        Delay delay;
        delay.milliseconds = 2;
        delay.one_in = 3;
        zc_reducer_config config = reducer_options();
        config.gradient_slots = slots;
        if (rank >= 2) delay.add_to(config);
        const TestReducer reducer(comm, model, config);
        const std::size_t slot_bytes = static_cast<std::size_t>(slots) * 2048 * 2;
        RANK_CHECK(reducer.ledger().slot_bytes == slot_bytes, "%zu", reducer.ledger().slot_bytes);
        for (int step = 0; step < 2; ++step) {
          reducer.step(Gradients(model, [&](std::size_t use, std::size_t e) {
            return static_cast<float>((use * 8 + e + static_cast<std::size_t>(rank)) % 200);
          }));
          reducer.check_gradients([&](std::size_t t, std::size_t e) {
            float sum = 0;
            for (std::size_t r = 0; r < 4; ++r) sum += static_cast<float>((t * 8 + e + r) % 200);
            return sum / 4;
          });
        }
        RANK_CHECK(reducer.stats().slot_peak_bytes <= slot_bytes, "%llu",
                   static_cast<unsigned long long>(reducer.stats().slot_peak_bytes));
      });
    }
}

std::vector<zc_tensor> six_units() {
  static const char* const kNames[] = {"t0", "t1", "t2", "t3", "t4", "t5"};
  std::vector<zc_tensor> tensors;
  for (const char* name : kNames) tensors.push_back(tensor(name, name, 256));
  return tensors;
}

const std::vector<std::size_t> kThereAndBack = {0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0};

// Evaluation or generation between training passes drops the record of the pass, and prefetching ends. Two passes in
// turn, the second of another order: each has its own record, and none costs the other a miss.
TEST(AlternatingPasses, have_only_hits_once_each_was_seen) {
  const Model model(six_units(), shape(2, ZC_STAGE_3));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    zc_fetcher_config config = fetcher_options();
    config.budget_bytes = 2 * 1024;
    const TestFetcher fetcher(comm, model, config);
    fetcher.update(1);
    fetcher.pass("A", kThereAndBack, 1);
    fetcher.pass("B", {0, 1, 2, 5}, 1);
    const std::uint64_t misses = fetcher.stats().misses;
    for (int round = 0; round < 3; ++round) {
      fetcher.pass("A", kThereAndBack, 1);
      fetcher.pass("B", {0, 1, 2, 5}, 1);
    }
    RANK_CHECK(fetcher.stats().misses == misses, "%llu misses",
               static_cast<unsigned long long>(fetcher.stats().misses - misses));
    // A deviation costs its own misses; the record holds again at the next match.
    fetcher.pass("B", {0, 3, 1, 2, 5}, 1);
    RANK_CHECK(fetcher.stats().misses <= misses + 1, "%llu misses by a visit that was not expected",
               static_cast<unsigned long long>(fetcher.stats().misses - misses));
    // Nor does it cost the other pass, or the next but one of its own, anything.
    fetcher.pass("B", {0, 1, 2, 5}, 1);
    const std::uint64_t after = fetcher.stats().misses;
    RANK_CHECK(after <= misses + 2, "%llu misses after the deviation", static_cast<unsigned long long>(after - misses));
    fetcher.pass("A", kThereAndBack, 1);
    fetcher.pass("B", {0, 1, 2, 5}, 1);
    RANK_CHECK(fetcher.stats().misses == after, "%llu misses once both are as before",
               static_cast<unsigned long long>(fetcher.stats().misses - after));
  });
}

// Where passes are guessed from what a program does, one wrong guess ends all prefetching, silently. Here they are
// said: begin after the first fetch, two roots, a fetch outside any pass: errors, and they cost no hit.
TEST(PassBoundary, is_said_once_and_misuse_costs_no_hit) {
  const Model model(six_units(), shape(2, ZC_STAGE_3));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    zc_fetcher_config config = fetcher_options();
    config.budget_bytes = 2 * 1024;
    const TestFetcher fetcher(comm, model, config);
    fetcher.update(1);
    const void* tensors[1] = {};
    for (int pass = 0; pass < 3; ++pass) {
      const zc_fetcher_stats before = fetcher.stats();
      RANK_STATUS(ZC_STATE, zc_fetcher_acquire(fetcher, 3, tensors, 1, nullptr));
      RANK_ERROR_SAYS("no pass is open");
      RANK_OK(zc_fetcher_begin(fetcher, "root"));
      fetcher.visit(0, 1);
      RANK_STATUS(ZC_STATE, zc_fetcher_begin(fetcher, "root"));
      RANK_STATUS(ZC_STATE, zc_fetcher_begin(fetcher, "other root"));
      RANK_ERROR_SAYS("is open: zc_fetcher_end comes first");
      for (std::size_t i = 1; i < kThereAndBack.size(); ++i) fetcher.visit(kThereAndBack[i], 1);
      RANK_OK(zc_fetcher_end(fetcher));
      RANK_STATUS(ZC_STATE, zc_fetcher_end(fetcher));
      const zc_fetcher_stats after = fetcher.stats();
      if (pass == 2)
        RANK_CHECK(after.misses == before.misses && after.hits + after.late_hits - before.hits - before.late_hits == 12,
                   "%llu misses in pass 3", static_cast<unsigned long long>(after.misses - before.misses));
    }
  });
}

// One rank is in the next gather and the other in another collective, for ever: one generates more than the other; then
// both train.
TEST(UnevenVisits, of_two_ranks_are_followed_by_a_training_pass) {
  const Model model(six_units(), shape(2, ZC_STAGE_3, 1));
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    const TestFetcher fetcher(comm, model);
    const TestReducer reducer(comm, model);
    const TestEngine engine(comm, model);
    engine.load_all(1);
    fetcher.update(1);
    const std::vector<std::size_t> visits =
        rank == 0 ? std::vector<std::size_t>{0, 1, 1, 1, 2} : std::vector<std::size_t>{0, 1, 2};
    const Gradients gradients(model, [&](std::size_t, std::size_t) { return static_cast<float>(rank); });
    for (std::uint64_t version = 1; version < 4; ++version) {
      fetcher.pass("generate", visits, version);
      RANK_OK(zc_zero_begin(engine, "generate", ZC_PHASE_EVAL));
      for (const std::size_t unit : visits) engine.visit(unit, version);
      RANK_OK(zc_zero_end(engine));
      RANK_OK(zc_fetcher_begin(fetcher, "train"));
      for (const std::size_t unit : kThereAndBack) fetcher.visit(unit, version);
      RANK_OK(zc_fetcher_end(fetcher));
      reducer.step(gradients);
      RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
      for (const std::size_t unit : kThereAndBack) engine.visit(unit, version);
      gradients.report_all(engine);
      RANK_OK(zc_zero_end(engine));
      reducer.check_gradients([](std::size_t, std::size_t) { return 0.5F; });
      engine.check_gradients([](std::size_t, std::size_t) { return 0.5F; });
      engine.update(version + 1);
      fetcher.update(version + 1);
    }
  });
}

}  // namespace
}  // namespace zerocomm::test
