// Problems that users of ZeRO met elsewhere, as inputs of this library. The comment of each test says which.
#include "world.hpp"

#include "support/page_end.hpp"

#include <atomic>

namespace {

using namespace zerocomm::test;

constexpr zc_stage kStages[] = {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3};

// A unit with nothing in it, and one with an empty tensor beside a real one.
TEST(EmptyTensors, are_available_at_once_on_every_rank) {
  for (const zc_stage stage : kStages) {
    const Model model({tensor("p", "none", 0), tensor("p0", "some", 0), tensor("p1", "some", 5)}, shape(2, stage));
    run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
      const TestEngine engine(comm, model);
      engine.load_all(3);
      RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
      if (rank == 0) sleep_ms(20);
      engine.visit(0, 3);
      engine.visit(1, 3);
      engine.visit(0, 3);
      const float ones[5] = {1, 1, 1, 1, 1};
      RANK_OK(zc_zero_grad_ready(engine, 0, nullptr, nullptr));
      RANK_OK(zc_zero_grad_ready(engine, 2, ones, nullptr));
      if (rank == 0) RANK_OK(zc_zero_grad_absent(engine, 1));  // rank 1 says nothing: there is nothing to say
      RANK_OK(zc_zero_end(engine));
      engine.check_gradients([](std::size_t, std::size_t) { return 1.0F; });
      float exported = 0;
      RANK_OK(zc_zero_export(engine, 0, ZC_STATE_PARAMETER, &exported));
      engine.update(4);
      RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_EVAL));
      engine.visit(0, 4);
      engine.visit(1, 4);
      RANK_OK(zc_zero_end(engine));
    });
  }
}

TEST(EmptyTensors, of_a_model_without_any_element_make_an_engine_that_steps) {
  for (const zc_stage stage : kStages) {
    const Model model({tensor("p", "u", 0)}, shape(2, stage));
    run_ranks(2, [&](zc_comm* comm, std::int32_t) {
      const TestEngine engine(comm, model);
      engine.load_all();
      RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
      engine.visit(0, 0);
      RANK_OK(zc_zero_end(engine));
      zc_norm norm{};
      norm.struct_size = sizeof norm;
      RANK_OK(zc_zero_norm(engine, &norm));
      RANK_CHECK(norm.norm == 0, "%g", norm.norm);
      engine.update(1);
    });
  }
}

// Seven elements on three ranks among NaNs: the last rank has one real element and padding.
TEST(Padding, is_zero_after_every_call_and_enters_no_norm) {
  for (const zc_dtype dtype : {ZC_DTYPE_F32, ZC_DTYPE_BF16}) {
    for (const zc_stage stage : kStages) {
      zc_layout_config layout = shape(3, stage);
      layout.alignment_bytes = 4;
      const Model model({tensor("seven", "u", 7, dtype)}, layout);
      run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
        const TestEngine engine(comm, model);
        const auto check = [&] { engine.check_padding(rank); };
        check();
        engine.load_all(1);
        check();
        for (std::uint64_t step = 1; step < 4; ++step) {
          const Gradients gradients(model, [](std::size_t, std::size_t e) { return static_cast<float>(e + 1); });
          RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
          check();
          engine.visit(0, step);
          check();
          gradients.report_all(engine);
          check();
          RANK_OK(zc_zero_end(engine));
          check();
          zc_norm norm{};
          norm.struct_size = sizeof norm;
          RANK_OK(zc_zero_norm(engine, &norm));
          RANK_CHECK(norm.sum_squares == 140 && norm.nan_count == 0 && norm.inf_count == 0, "sum %g, %lld NaNs",
                     norm.sum_squares, static_cast<long long>(norm.nan_count));
          RANK_OK(zc_zero_scale(engine, 0.5));
          check();
          engine.check_gradients([](std::size_t, std::size_t e) { return static_cast<float>(e + 1) / 2; });
          RANK_OK(zc_zero_update_begin(engine));
          check();
          engine.write(step + 1);
          check();
          RANK_OK(zc_zero_publish(engine, nullptr));
          check();
        }
        float exported[7];
        RANK_OK(zc_zero_export(engine, 0, ZC_STATE_MASTER, exported));
        for (std::size_t e = 0; e < 7; ++e)
          RANK_CHECK(exported[e] == value_of(dtype, 4, 0, e), "element %zu: %g", e, static_cast<double>(exported[e]));
      });
    }
  }
}

class NeverReady : public testing::TestWithParam<zc_absent> {};

// One tensor of a bucket takes no part in the forward pass; twice, and both times alike.
TEST_P(NeverReady, a_tensor_is_zeros_or_an_error_that_names_it_and_the_second_time_is_identical) {
  const Model model({tensor("p0", "u", 1), tensor("unused", "u", 7), tensor("p2", "u", 50257)}, shape(3, ZC_STAGE_2));
  ASSERT_EQ(model.info().bucket_count, 1U);
  run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
    zc_zero_config config = options();
    config.absent = GetParam();
    const TestEngine engine(comm, model, config);
    engine.load_all();
    const Gradients gradients(model, [&](std::size_t use, std::size_t e) {
      return static_cast<float>(static_cast<std::size_t>(rank) + use + e % 9);
    });
    for (int step = 0; step < 2; ++step) {
      RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
      RANK_OK(zc_zero_grad_ready(engine, 0, gradients.of(0), nullptr));
      RANK_OK(zc_zero_grad_ready(engine, 2, gradients.of(2), nullptr));
      if (GetParam() == ZC_ABSENT_ERROR) {
        for (int again = 0; again < 2; ++again) {
          RANK_STATUS(ZC_ARGUMENT, zc_zero_end(engine));
          RANK_ERROR_SAYS("unused");
          RANK_ERROR_SAYS(zerocomm::format("rank %d", rank));
        }
        RANK_OK(zc_zero_grad_absent(engine, 1));
      }
      RANK_OK(zc_zero_end(engine));
      engine.check_gradients([](std::size_t tensor, std::size_t e) {
        return tensor == 1 ? 0.0F : static_cast<float>(1 + tensor + e % 9);
      });
      RANK_OK(zc_zero_publish_unchanged(engine));
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Policies, NeverReady, testing::Values(ZC_ABSENT_ERROR, ZC_ABSENT_ZERO));

// Each of two ranks has the gradient of another tensor of the same size.
TEST(ReadyOnSomeRanks, missing_contributions_are_zeros_and_never_another_tensors_values) {
  for (const zc_stage stage : kStages) {
    const Model model({tensor("a", "u", 5), tensor("b", "u", 5)}, shape(2, stage, 5 * sizeof(float)));
    run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
      zc_zero_config config = options();
      config.absent = ZC_ABSENT_ZERO;
      const TestEngine engine(comm, model, config);
      engine.load_all();
      const Gradients gradients(model,
                                [](std::size_t use, std::size_t e) { return static_cast<float>(10 * (use + 1) + e); });
      for (int step = 0; step < 2; ++step) {
        const auto use = static_cast<std::size_t>(rank);
        RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
        RANK_OK(zc_zero_grad_ready(engine, use, gradients.of(use), nullptr));
        RANK_OK(zc_zero_end(engine));
        engine.check_gradients(
            [](std::size_t tensor, std::size_t e) { return static_cast<float>(10 * (tensor + 1) + e) / 2; });
      }
    });
  }
}

// Twelve tensors of three elements and room for ten in a bucket: four messages in every step.
TEST(BucketCounters, twelve_tensors_make_four_buckets_in_every_step) {
  std::vector<std::string> names;
  for (int i = 0; i < 12; ++i) names.push_back(zerocomm::format("t%d", i));
  std::vector<zc_tensor> tensors;
  for (const std::string& name : names) tensors.push_back(tensor(name.c_str(), "u", 3));
  zc_layout_config layout = shape(2, ZC_STAGE_2, 10 * sizeof(float));
  layout.alignment_bytes = 4;
  const Model model(tensors, layout);
  ASSERT_EQ(model.info().bucket_count, 4U);
  std::size_t padding_bytes = 0;
  for (std::size_t bucket = 0; bucket < 4; ++bucket) {
    zc_bucket_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(zc_layout_get_bucket(model.get(), bucket, &info), ZC_OK);
    EXPECT_EQ(info.use_count, 3U);
    padding_bytes += info.bytes - info.count * sizeof(float);
  }
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    const TestEngine engine(comm, model);
    engine.load_all();
    const Gradients ones(model, [](std::size_t, std::size_t) { return 1.0F; });
    for (std::uint64_t step = 1; step <= 3; ++step) {
      RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
      ones.report_all(engine);
      RANK_OK(zc_zero_end(engine));
      const zc_zero_stats stats = engine.stats();
      RANK_CHECK(stats.buckets_reduced == 4 * step, "%llu buckets",
                 static_cast<unsigned long long>(stats.buckets_reduced));
      RANK_CHECK(stats.buckets_padding_bytes == padding_bytes, "%llu bytes",
                 static_cast<unsigned long long>(stats.buckets_padding_bytes));
      RANK_CHECK(stats.buckets_before_end <= stats.buckets_reduced, "%llu",
                 static_cast<unsigned long long>(stats.buckets_before_end));
    }
  });
}

// Gradients 1, 2, 4 in three passes of a step, then 8 in a step of one pass.
TEST(AccumulationBoundary, is_said_and_not_guessed) {
  for (const zc_stage stage : kStages) {
    for (const zc_accumulation accumulation : {ZC_ACCUMULATE_REDUCE_EACH, ZC_ACCUMULATE_FIRST}) {
      const Model model({tensor("a", "u", 11), tensor("b", "v", 6)}, shape(2, stage, 1));
      run_ranks(2, [&](zc_comm* comm, std::int32_t) {
        zc_zero_config config = options();
        config.micro_steps = 3;
        config.accumulation = accumulation;
        config.gradient_divisor = 2;
        const TestEngine engine(comm, model, config);
        engine.load_all();
        const auto pass = [&](zc_phase phase, float value) {
          const Gradients gradients(model, [&](std::size_t, std::size_t) { return value; });
          RANK_OK(zc_zero_begin(engine, "train", phase));
          gradients.report_all(engine);
          RANK_OK(zc_zero_end(engine));
        };
        for (int round = 0; round < 2; ++round) {
          pass(ZC_PHASE_FIRST, 1);
          pass(ZC_PHASE_MIDDLE, 2);
          pass(ZC_PHASE_LAST, 4);
          engine.check_gradients([](std::size_t, std::size_t) { return 7.0F; });
          RANK_OK(zc_zero_publish_unchanged(engine));
          pass(ZC_PHASE_ONLY, 8);
          engine.check_gradients([](std::size_t, std::size_t) { return 8.0F; });
          RANK_OK(zc_zero_publish_unchanged(engine));
        }
      });
    }
  }
}

TEST(GradientAverage, divides_by_ranks_and_passes_unless_told_otherwise) {
  const Model model({tensor("a", "u", 11)}, shape(3, ZC_STAGE_2));
  for (const zc_accumulation accumulation : {ZC_ACCUMULATE_REDUCE_EACH, ZC_ACCUMULATE_FIRST}) {
    run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
      zc_zero_config config = options();
      config.micro_steps = 2;
      config.accumulation = accumulation;
      const TestEngine engine(comm, model, config);
      engine.load_all();
      for (const zc_phase phase : {ZC_PHASE_FIRST, ZC_PHASE_LAST}) {
        const Gradients gradients(model, [&](std::size_t, std::size_t) { return static_cast<float>(rank); });
        RANK_OK(zc_zero_begin(engine, "train", phase));
        gradients.report_all(engine);
        RANK_OK(zc_zero_end(engine));
      }
      engine.check_gradients([](std::size_t, std::size_t) { return 6.0F / 6.0F; });
    });
  }
}

// An adapter of eight elements beside a frozen tensor pays for eight elements.
TEST(FrozenTensors, cost_no_gradient_slot_or_master_memory) {
  for (const zc_stage stage : kStages) {
    const Model adapter({frozen(tensor("base", "u", 38597, ZC_DTYPE_BF16)), tensor("lora", "u", 8, ZC_DTYPE_BF16)},
                        shape(8, stage));
    const Model alone({tensor("lora", "u", 8, ZC_DTYPE_BF16)}, shape(8, stage));
    run_ranks(8, [&](zc_comm* comm, std::int32_t) {
      const TestEngine engine(comm, adapter), small(comm, alone);
      RANK_CHECK(engine.ledger().gradient_bytes == small.ledger().gradient_bytes, "%zu",
                 engine.ledger().gradient_bytes);
      RANK_CHECK(engine.ledger().slot_bytes == small.ledger().slot_bytes, "%zu", engine.ledger().slot_bytes);
      RANK_CHECK(engine.ledger().master_bytes == small.ledger().master_bytes, "%zu", engine.ledger().master_bytes);
      engine.load_all(5);
      RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
      engine.visit(0, 5);
      const Gradients ones(adapter, [](std::size_t, std::size_t) { return 1.0F; });
      RANK_STATUS(ZC_ARGUMENT, zc_zero_grad_ready(engine, 0, ones.of(0), nullptr));
      RANK_ERROR_SAYS("base");
      ones.report_all(engine);
      RANK_OK(zc_zero_end(engine));
      std::size_t count = 0;
      for (const zc_zero_piece& piece : engine.pieces()) count += piece.tensor == 1 ? piece.count : 1000000;
      RANK_CHECK(count <= 8, "%zu elements are updated", count);
      engine.update(6);
      RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_EVAL));
      engine.visit(0, 6);
      RANK_OK(zc_zero_end(engine));
    });
  }
}

// bf16 weights, an f32 adapter and stored bytes are one unit: one acquire brings all of them.
TEST(MixedDtypes, of_one_unit_are_fetched_together_and_reduced_apart) {
  for (const zc_stage stage : kStages) {
    const Model model(
        {tensor("w", "u", 7, ZC_DTYPE_BF16), tensor("adapter", "u", 5), frozen(tensor("bytes", "u", 16, ZC_DTYPE_U8))},
        shape(3, stage));
    run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
      const TestEngine engine(comm, model);
      engine.load_all(1);
      const Gradients gradients(model, [&](std::size_t, std::size_t e) {
        return static_cast<float>(static_cast<std::size_t>(rank) * 3 + e);
      });
      for (std::uint64_t version = 1; version < 4; ++version) {
        RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
        engine.visit(0, version);
        gradients.report_all(engine);
        RANK_OK(zc_zero_end(engine));
        engine.check_gradients([](std::size_t, std::size_t e) { return static_cast<float>(3 + e); });
        engine.check_padding(rank);
        engine.update(version + 1);
      }
    });
  }
}

// p0 is 3 and p1 is (4, 0) after the average: the norm is 5 and nothing else.
TEST(Norm, counts_every_element_once_after_reduction) {
  for (const zc_stage stage : kStages) {
    const Model model({tensor("p0", "u", 1), tensor("p1", "v", 2)}, shape(2, stage, 1));
    run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
      const TestEngine engine(comm, model);
      engine.load_all();
      const Gradients gradients(model, [&](std::size_t use, std::size_t e) {
        if (use == 0) return rank == 0 ? 1.0F : 5.0F;
        return e == 0 && rank == 0 ? 8.0F : 0.0F;
      });
      RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
      gradients.report_all(engine);
      RANK_OK(zc_zero_end(engine));
      zc_norm norm{};
      norm.struct_size = sizeof norm;
      RANK_OK(zc_zero_norm(engine, &norm));
      RANK_CHECK(norm.norm == 5 && norm.sum_squares == 25, "%g", norm.norm);
      RANK_OK(zc_zero_scale(engine, 1.0 / 5.0));
      RANK_OK(zc_zero_norm(engine, &norm));
      const double p0 = static_cast<double>(3.0F * 0.2F), p1 = static_cast<double>(4.0F * 0.2F);
      RANK_CHECK(norm.sum_squares == p0 * p0 + p1 * p1, "%.17g", norm.sum_squares);
    });
  }
}

// Three elements on nine ranks: most of them own nothing, and all of them step.
TEST(EmptyShards, take_part_in_every_step) {
  for (const zc_stage stage : kStages) {
    zc_layout_config layout = shape(9, stage);
    layout.alignment_bytes = 4;
    const Model model({tensor("three", "u", 3), tensor("two", "v", 2, ZC_DTYPE_BF16)}, layout);
    run_ranks(9, [&](zc_comm* comm, std::int32_t rank) {
      const TestEngine engine(comm, model);
      engine.load_all(0);
      for (std::uint64_t version = 0; version < 3; ++version) {
        const Gradients gradients(
            model, [&](std::size_t, std::size_t e) { return static_cast<float>(static_cast<std::size_t>(rank) + e); });
        RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
        engine.visit(0, version);
        engine.visit(1, version);
        gradients.report_all(engine);
        RANK_OK(zc_zero_end(engine));
        engine.check_gradients([](std::size_t, std::size_t e) { return static_cast<float>(4 + e); });
        zc_norm norm{};
        norm.struct_size = sizeof norm;
        RANK_OK(zc_zero_norm(engine, &norm));
        RANK_CHECK(norm.sum_squares == 16 + 25 + 36 + 16 + 25, "%g", norm.sum_squares);
        engine.update(version + 1);
      }
    });
  }
}

// Forty units and room for three and a half.
TEST(Budget, bounds_what_forty_units_have_gathered) {
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back(zerocomm::format("t%d", i));
  std::vector<zc_tensor> tensors;
  for (const std::string& name : names) tensors.push_back(frozen(tensor(name.c_str(), name.c_str(), 2560)));
  const Model model(tensors, shape(2, ZC_STAGE_3));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    zc_zero_config config = options();
    config.budget_bytes = 35 * 1024;
    const TestEngine engine(comm, model, config);
    engine.load_all(1);
    for (int pass = 0; pass < 4; ++pass) {
      const zc_zero_stats before = engine.stats();
      RANK_OK(zc_zero_begin(engine, "all", ZC_PHASE_EVAL));
      for (std::size_t unit = 0; unit < 40; ++unit) engine.visit(unit, 1);
      RANK_OK(zc_zero_end(engine));
      const zc_zero_stats after = engine.stats();
      RANK_CHECK(after.budget_peak_bytes <= 35 * 1024 && after.gathered_peak_bytes <= 35 * 1024, "%llu bytes",
                 static_cast<unsigned long long>(after.budget_peak_bytes));
      RANK_CHECK(after.budget_bytes == 35 * 1024, "%llu", static_cast<unsigned long long>(after.budget_bytes));
      RANK_CHECK(after.hits + after.late_hits + after.misses == 40 * static_cast<std::uint64_t>(pass + 1),
                 "%llu acquires", static_cast<unsigned long long>(after.hits + after.misses));
      // From the second pass on the order is known: only the first unit, fetched by no release, may miss.
      RANK_CHECK(pass == 0 || after.misses - before.misses <= 1, "%llu misses in pass %d",
                 static_cast<unsigned long long>(after.misses - before.misses), pass);
    }
    RANK_CHECK(engine.ledger().gather_bytes <= 35 * 1024, "%zu", engine.ledger().gather_bytes);
  });
}

TEST(Budget, that_cannot_hold_the_largest_unit_is_refused_with_the_number_needed) {
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) names.push_back(zerocomm::format("t%d", i));
  std::vector<zc_tensor> tensors;
  for (const std::string& name : names)
    tensors.push_back(frozen(tensor(name.c_str(), name.c_str(), name == "t5" ? 30 * 256 : 256)));
  const Model model(tensors, shape(2, ZC_STAGE_3));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    zc_zero_config config = options();
    config.budget_bytes = 20 * 1024;
    zc_zero* zero = nullptr;
    RANK_STATUS(ZC_BUDGET, zc_zero_create(comm, model.get(), &config, &zero));
    RANK_ERROR_SAYS("30720");
    RANK_CHECK(zero == nullptr, "a refused engine has no handle");
    config.budget_bytes = 30 * 1024;  // the number given is enough
    const TestEngine engine(comm, model, config);
    engine.load_all(1);
    for (int pass = 0; pass < 3; ++pass) {
      RANK_OK(zc_zero_begin(engine, "all", ZC_PHASE_EVAL));
      for (std::size_t unit = 0; unit < 10; ++unit) engine.visit(unit, 1);
      RANK_OK(zc_zero_end(engine));
    }
    RANK_CHECK(engine.stats().budget_peak_bytes <= 30 * 1024, "%llu",
               static_cast<unsigned long long>(engine.stats().budget_peak_bytes));
  });
}

// The writer of one rank is slow: a gather begins only after its publish.
TEST(Gather, follows_a_slow_update_and_never_precedes_it) {
  for (const zc_stage stage : kStages) {
    const Model model({tensor("a", "u", 1000), tensor("b", "v", 10)}, shape(2, stage));
    run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
      const TestEngine engine(comm, model);
      engine.load_all(0);
      for (std::uint64_t version = 1; version < 6; ++version) {
        RANK_OK(zc_zero_update_begin(engine));
        if (rank == 1) sleep_ms(20);
        engine.write(version);
        RANK_OK(zc_zero_publish(engine, nullptr));
        RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
        engine.visit(0, version);
        engine.visit(1, version);
        RANK_OK(zc_zero_end(engine));
      }
    });
  }
}

// One bucket of seven elements on three ranks, whose gradient ends where memory ends.
TEST(Reduction, touches_no_byte_behind_a_gradient_that_ends_at_a_page_nobody_may_touch) {
  for (const zc_stage stage : kStages) {
    const Model model({tensor("seven", "u", 7)}, shape(3, stage));
    ASSERT_EQ(model.info().bucket_count, 1U);
    run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
      const TestEngine engine(comm, model);
      engine.load_all();
      const PageEnd memory(7 * sizeof(float));
      auto* const gradient = reinterpret_cast<float*>(memory.data());
      for (std::size_t e = 0; e < 7; ++e) gradient[e] = static_cast<float>(static_cast<std::size_t>(rank) + e);
      for (int step = 0; step < 2; ++step) {
        RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
        RANK_OK(zc_zero_grad_ready(engine, 0, gradient, nullptr));
        RANK_OK(zc_zero_end(engine));
        engine.check_gradients([](std::size_t, std::size_t e) { return static_cast<float>(e + 1); });
        engine.check_padding(rank);
      }
    });
  }
}

// Six shards with a recorded order; then one rank visits 0 1 1 3 and stops; then the whole order again.
TEST(FetchTrace, re_synchronises_after_a_surprise_and_counts_hits_misses_evictions_and_waste) {
  std::vector<std::string> names;
  for (int i = 0; i < 6; ++i) names.push_back(zerocomm::format("t%d", i));
  std::vector<zc_tensor> tensors;
  for (const std::string& name : names) tensors.push_back(frozen(tensor(name.c_str(), name.c_str(), 256)));
  const Model model(tensors, shape(2, ZC_STAGE_3));
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    zc_zero_config config = options();
    config.budget_bytes = 3 * 1024;
    const TestEngine engine(comm, model, config);
    engine.load_all(1);
    const auto pass = [&](const std::vector<std::size_t>& visits) {
      const zc_zero_stats before = engine.stats();
      RANK_OK(zc_zero_begin(engine, "pass", ZC_PHASE_EVAL));
      for (const std::size_t unit : visits) engine.visit(unit, 1);
      RANK_OK(zc_zero_end(engine));
      zc_zero_stats after = engine.stats();
      RANK_CHECK(
          after.hits + after.late_hits + after.misses - before.hits - before.late_hits - before.misses == visits.size(),
          "acquires");
      after.misses -= before.misses;
      after.hits -= before.hits;
      after.evictions -= before.evictions;
      return after;
    };
    const std::vector<std::size_t> whole = {0, 1, 2, 3, 4, 5};
    const zc_zero_stats first = pass(whole);
    RANK_CHECK(first.misses == 6 && first.prefetches == 0 && first.evictions == 3,
               "the first pass: %llu misses, %llu evictions", static_cast<unsigned long long>(first.misses),
               static_cast<unsigned long long>(first.evictions));
    RANK_CHECK(pass(whole).misses <= 1, "the second pass follows the record");
    pass(rank == 0 ? whole : std::vector<std::size_t>{0, 1, 1, 3});
    pass(whole);  // rank 1's record is that of the short pass now
    const zc_zero_stats last = pass(whole);
    RANK_CHECK(last.misses <= 1, "%llu misses after the surprise", static_cast<unsigned long long>(last.misses));
    RANK_CHECK(last.prefetches_wasted <= last.prefetches, "waste");
    RANK_CHECK(rank == 0 || last.prefetches_wasted > 0, "what rank 1 had fetched ahead and never used counts as waste");
    RANK_OK(zc_zero_update_begin(engine));  // nothing stays in flight
    RANK_OK(zc_zero_publish(engine, nullptr));
    pass(whole);
  });
}

}  // namespace
