// Disagreement of ranks, and waits that end: which status, which text, and what is usable afterwards.
#include "two_units.hpp"

#include <atomic>

namespace {

using namespace zerocomm::test;

constexpr zc_stage kStages[] = {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3};

struct Difference {
  const char* name;
  void (*change)(zc_zero_config&);
};

void PrintTo(const Difference& difference, std::ostream* out) { *out << difference.name; }

class Disagreement : public testing::TestWithParam<Difference> {};

TEST_P(Disagreement, about_an_option_is_a_mismatch_at_creation_on_all_ranks_that_names_it) {
  const Model model(two_units(), shape(3, ZC_STAGE_3));
  RankOptions ranks;
  ranks.deadline_ns = 5 * kSecondNs;
  run_ranks(
      3,
      [&](zc_comm* comm, std::int32_t rank) {
        zc_zero_config config = options();
        config.micro_steps = 2;
        if (rank == 2) GetParam().change(config);
        zc_zero* zero = nullptr;
        RANK_STATUS(ZC_MISMATCH, zc_zero_create(comm, model.get(), &config, &zero));
        RANK_ERROR_SAYS(GetParam().name);
        RANK_ERROR_SAYS("rank 0");
        RANK_ERROR_SAYS("rank 2");
        check_usable(comm, model);
      },
      ranks);
}
INSTANTIATE_TEST_SUITE_P(
    Options, Disagreement,
    testing::Values(Difference{"budget_bytes", [](zc_zero_config& c) { c.budget_bytes = 1 << 20; }},
                    Difference{"budget_bytes", [](zc_zero_config& c) { c.budget_bytes = 1; }},  // too small besides
                    Difference{"max_held_bytes", [](zc_zero_config& c) { c.max_held_bytes = 4096; }},
                    Difference{"max_held_bytes", [](zc_zero_config& c) { c.max_held_bytes = 1; }},
                    Difference{"gradient_slots", [](zc_zero_config& c) { c.gradient_slots = 1; }},
                    Difference{"micro_steps", [](zc_zero_config& c) { c.micro_steps = 3; }},
                    Difference{"accumulation", [](zc_zero_config& c) { c.accumulation = ZC_ACCUMULATE_FIRST; }},
                    Difference{"absent", [](zc_zero_config& c) { c.absent = ZC_ABSENT_ZERO; }},
                    Difference{"launch", [](zc_zero_config& c) { c.launch = ZC_LAUNCH_END; }},
                    Difference{"slices", [](zc_zero_config& c) { c.slices = ZC_SLICES_STATIC; }},
                    Difference{"prefetch", [](zc_zero_config& c) { c.prefetch = ZC_NONE; }},
                    Difference{"drop_released", [](zc_zero_config& c) { c.drop_released = 1; }},
                    Difference{"gradient_divisor", [](zc_zero_config& c) { c.gradient_divisor = 3; }}));

TEST(LayoutDisagreement, is_a_mismatch_at_creation_on_all_ranks) {
  const Model model(two_units(), shape(3, ZC_STAGE_3));
  const Model stage(two_units(), shape(3, ZC_STAGE_2)), buckets(two_units(), shape(3, ZC_STAGE_3, 1)),
      ranks_of(two_units(), shape(2, ZC_STAGE_3)),
      count({tensor("alpha", "u0", 33), tensor("beta", "u1", 71)}, shape(3, ZC_STAGE_3));
  RankOptions ranks;
  ranks.deadline_ns = 5 * kSecondNs;
  for (const Model* other : {&stage, &buckets, &ranks_of, &count}) {
    run_ranks(
        3,
        [&](zc_comm* comm, std::int32_t rank) {
          zc_zero* zero = nullptr;
          RANK_STATUS(ZC_MISMATCH, zc_zero_create(comm, rank == 1 ? other->get() : model.get(), nullptr, &zero));
          RANK_ERROR_SAYS("layout");
          RANK_ERROR_SAYS("rank 1");
          check_usable(comm, model);
        },
        ranks);
  }
}

TEST(LayoutForOtherRanks, is_an_argument_error_on_all_ranks) {
  const Model model(two_units(), shape(2, ZC_STAGE_3)), right(two_units(), shape(3, ZC_STAGE_3));
  run_ranks(3, [&](zc_comm* comm, std::int32_t) {
    zc_zero* zero = nullptr;
    RANK_STATUS(ZC_ARGUMENT, zc_zero_create(comm, model.get(), nullptr, &zero));
    RANK_ERROR_SAYS("2 ranks");
    check_usable(comm, right);
  });
}

TEST(Phases, that_differ_are_a_mismatch_on_all_ranks_of_the_pass_and_the_communicator_lives) {
  for (const zc_stage stage : kStages) {
    const Model model(two_units(), shape(3, stage, 1));
    RankOptions ranks;
    ranks.deadline_ns = 5 * kSecondNs;
    run_ranks(
        3,
        [&](zc_comm* comm, std::int32_t rank) {
          {
            zc_zero_config config = options();
            config.micro_steps = 2;
            const TestEngine engine(comm, model, config);
            engine.load_all();
            const Gradients gradients = ones(model);
            RANK_OK(zc_zero_begin(engine, "train", rank == 1 ? ZC_PHASE_FIRST : ZC_PHASE_ONLY));
            for (const std::size_t use : std::vector<std::size_t>{0, 1}) {
              const zc_status status = zc_zero_grad_ready(engine, use, gradients.of(use), nullptr);
              RANK_CHECK(status == ZC_OK || status == ZC_MISMATCH, "%s", zc_status_name(status));
            }
            RANK_STATUS(ZC_MISMATCH, zc_zero_end(engine));
            RANK_ERROR_SAYS("FIRST");
            RANK_ERROR_SAYS("ONLY");
            RANK_ERROR_SAYS("rank 1");
            RANK_STATUS(ZC_MISMATCH, zc_zero_end(engine));  // and so it stays
          }
          check_usable(comm, model);
        },
        ranks);
  }
}

// Passes that are added up locally meet only in the last one.
TEST(Phases, of_locally_added_passes_that_differ_in_number_are_a_mismatch_too) {
  const Model model(two_units(), shape(2, ZC_STAGE_2));
  RankOptions ranks;
  ranks.deadline_ns = 5 * kSecondNs;
  run_ranks(
      2,
      [&](zc_comm* comm, std::int32_t rank) {
        {
          zc_zero_config config = options();
          config.micro_steps = 3;
          config.accumulation = ZC_ACCUMULATE_FIRST;
          const TestEngine engine(comm, model, config);
          engine.load_all();
          const Gradients gradients = ones(model);
          std::vector<zc_phase> phases = {ZC_PHASE_FIRST, ZC_PHASE_LAST};
          if (rank == 1) phases.insert(phases.begin() + 1, ZC_PHASE_MIDDLE);
          for (const zc_phase phase : phases) {
            RANK_OK(zc_zero_begin(engine, "train", phase));
            for (const std::size_t use : std::vector<std::size_t>{0, 1}) {
              const zc_status status = zc_zero_grad_ready(engine, use, gradients.of(use), nullptr);
              RANK_CHECK(status == ZC_OK || status == ZC_MISMATCH, "%s", zc_status_name(status));
            }
            if (phase != ZC_PHASE_LAST)
              RANK_OK(zc_zero_end(engine));
            else
              RANK_STATUS(ZC_MISMATCH, zc_zero_end(engine));
          }
          RANK_ERROR_SAYS("rank 1");
        }
        check_usable(comm, model);
      },
      ranks);
}

TEST(MissingGradient, is_an_argument_error_that_names_the_tensor_and_the_pass_can_be_completed) {
  const Model model(two_units(), shape(3, ZC_STAGE_2, 1));
  run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
    const TestEngine engine(comm, model);
    engine.load_all();
    const Gradients gradients = ones(model);
    for (int step = 0; step < 2; ++step) {
      RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
      report(engine, 0, gradients);
      if (rank == 1) {
        RANK_STATUS(ZC_ARGUMENT, zc_zero_end(engine));
        RANK_ERROR_SAYS("beta");
        RANK_ERROR_SAYS("rank 1");
        engine.visit(0, 0);  // the pass is open
      }
      report(engine, 1, gradients);
      RANK_OK(zc_zero_end(engine));
      engine.check_gradients([](std::size_t, std::size_t) { return 1.0F; });
      RANK_OK(zc_zero_publish_unchanged(engine));
    }
  });
}

TEST(AbsentRank, is_named_with_bucket_and_tensor_on_all_ranks_within_the_deadline_and_a_second) {
  const Model model(two_units(), shape(3, ZC_STAGE_2, 1));
  RankOptions ranks;
  ranks.deadline_ns = kSecondNs;
  std::atomic<int> ended{0};
  run_ranks(
      3,
      [&](zc_comm* comm, std::int32_t rank) {
        const TestEngine engine(comm, model);
        engine.load_all();
        const Gradients gradients = ones(model);
        RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
        report(engine, 1, gradients);
        if (rank != 1) report(engine, 0, gradients);
        const auto start = std::chrono::steady_clock::now();
        if (rank == 1) {
          while (ended < 2) sleep_ms(1);
          const void* tensors[1];
          RANK_STATUS(ZC_TIMEOUT, zc_zero_grad_ready(engine, 0, gradients.of(0), nullptr));
          RANK_STATUS(ZC_TIMEOUT, zc_zero_acquire(engine, 0, tensors, 1, nullptr));
        }
        const zc_status status = zc_zero_end(engine);
        const std::string text = zc_last_error();
        ++ended;
        RANK_CHECK(status == ZC_TIMEOUT, "%s", zc_status_name(status));
        RANK_CHECK(seconds_since(start) < 2, "after %.3f s", seconds_since(start));
        for (const char* part : {"bucket", "rank 1", "alpha"})
          RANK_CHECK(text.find(part) != std::string::npos, "\"%s\" lacks %s", text.c_str(), part);
        RANK_STATUS(ZC_TIMEOUT, zc_zero_begin(engine, "train", ZC_PHASE_EVAL));
      },
      ranks);
}

TEST(UpdateBegin, waits_for_a_peer_inside_a_pass_and_names_it_at_the_deadline) {
  const Model model(two_units(), shape(3, ZC_STAGE_3));
  RankOptions ranks;
  ranks.deadline_ns = kSecondNs / 2;
  std::atomic<int> ended{0};
  run_ranks(
      3,
      [&](zc_comm* comm, std::int32_t rank) {
        const TestEngine engine(comm, model);
        engine.load_all();
        if (rank == 2) {
          RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
          engine.visit(0, 0);
          while (ended < 2) sleep_ms(1);
          return;
        }
        sleep_ms(50);
        const auto start = std::chrono::steady_clock::now();
        const zc_status status = zc_zero_update_begin(engine);
        const std::string text = zc_last_error();
        ++ended;
        RANK_CHECK(status == ZC_TIMEOUT, "%s", zc_status_name(status));
        RANK_CHECK(text.find("rank 2") != std::string::npos, "%s", text.c_str());
        RANK_CHECK(seconds_since(start) > 0.4 && seconds_since(start) < 1.5, "after %.3f s", seconds_since(start));
      },
      ranks);
}

TEST(Publication, that_is_changed_on_one_rank_and_unchanged_on_another_is_a_mismatch_at_the_reader) {
  for (const zc_stage stage : {ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3}) {
    const Model model(two_units(), shape(2, stage));
    RankOptions ranks;
    ranks.deadline_ns = 5 * kSecondNs;
    std::atomic<int> published{0};
    run_ranks(
        2,
        [&](zc_comm* comm, std::int32_t rank) {
          {
            const TestEngine engine(comm, model);
            engine.load_all();
            RANK_OK(zc_zero_update_begin(engine));
            zc_status status = ZC_OK;
            if (rank == 0) {
              engine.write(1);
              status = zc_zero_publish(engine, nullptr);
            } else {
              status = zc_zero_publish_unchanged(engine);
            }
            ++published;
            while (published < 2) std::this_thread::yield();
            if (status == ZC_OK) status = zc_zero_begin(engine, "eval", ZC_PHASE_EVAL);
            const void* tensors[1];
            if (status == ZC_OK) status = zc_zero_acquire(engine, 0, tensors, 1, nullptr);
            RANK_CHECK(status == ZC_MISMATCH, "%s", zc_status_name(status));
            RANK_ERROR_SAYS("generation 1");
            RANK_ERROR_SAYS("unchanged");
          }
          check_usable(comm, model);
        },
        ranks);
  }
}

TEST(Abort, from_another_thread_ends_a_waiting_end_and_a_waiting_update_begin) {
  const Model model(two_units(), shape(2, ZC_STAGE_2));
  for (const bool in_end : {true, false}) {
    std::atomic<bool> over{false};
    run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
      const TestEngine engine(comm, model);
      engine.load_all();
      if (rank == 1) {
        while (!over) sleep_ms(1);
        RANK_STATUS(ZC_ABORTED, zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
        return;
      }
      std::jthread aborter([&] {
        sleep_ms(100);
        zc_comm_abort(comm);
      });
      const Gradients gradients = ones(model);
      zc_status status = ZC_OK;
      if (in_end) {
        RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
        gradients.report_all(engine);
        status = zc_zero_end(engine);
      } else {
        status = zc_zero_update_begin(engine);
      }
      aborter.join();
      over = true;
      RANK_CHECK(status == ZC_ABORTED, "%s", zc_status_name(status));
      // What this rank owns stays readable.
      for (const zc_zero_piece& piece : engine.pieces())
        for (std::size_t i = 0; i < piece.count; ++i)
          RANK_CHECK(piece.master[i] == value_of(ZC_DTYPE_F32, 0, piece.tensor, piece.tensor_offset + i), "element %zu",
                     i);
    });
  }
}

// Ranks that reduce while one of them aborts: whoever's end says OK has right sums. Many slices, all of them inside
// end.
TEST(Abort, in_the_middle_of_reductions_never_makes_a_wrong_sum_look_right) {
  constexpr std::size_t kTensors = 24;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kTensors; ++i) names.push_back(zerocomm::format("t%zu", i));
  std::vector<zc_tensor> tensors;
  for (const std::string& name : names) tensors.push_back(tensor(name.c_str(), "u", 400));
  const Model model(tensors, shape(3, ZC_STAGE_2, 1));
  for (int round = 0; round < 60; ++round) {
    run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
      zc_zero_config config = options();
      config.launch = ZC_LAUNCH_END;
      config.gradient_slots = kTensors;
      const TestEngine engine(comm, model, config);
      engine.load_all();
      std::jthread aborter;
      if (rank == 0)
        aborter = std::jthread([comm, round] {
          std::this_thread::sleep_for(std::chrono::microseconds(300 + 37 * round));
          zc_comm_abort(comm);
        });
      zc_status status = ZC_OK;
      for (int step = 1; status == ZC_OK && step < 100'000; ++step) {
        const Gradients gradients(model, [&](std::size_t, std::size_t) { return static_cast<float>(step); });
        status = zc_zero_begin(engine, "train", ZC_PHASE_ONLY);
        for (std::size_t use = 0; status == ZC_OK && use < kTensors; ++use)
          status = zc_zero_grad_ready(engine, use, gradients.of(use), nullptr);
        const zc_status ended = zc_zero_end(engine);
        if (ended == ZC_OK) engine.check_gradients([&](std::size_t, std::size_t) { return static_cast<float>(step); });
        if (status == ZC_OK) status = ended;
      }
      RANK_CHECK(status == ZC_ABORTED, "%s", zc_status_name(status));
    });
  }
}

TEST(Publish, of_a_replica_times_out_naming_the_rank_that_does_not_publish) {
  const Model model(two_units(), shape(2, ZC_STAGE_2));
  RankOptions ranks;
  ranks.deadline_ns = kSecondNs / 2;
  std::atomic<bool> over{false};
  run_ranks(
      2,
      [&](zc_comm* comm, std::int32_t rank) {
        const TestEngine engine(comm, model);
        engine.load_all();
        RANK_OK(zc_zero_update_begin(engine));
        if (rank == 1) {
          while (!over) sleep_ms(1);
          RANK_STATUS(ZC_TIMEOUT, zc_zero_publish(engine, nullptr));
          return;
        }
        const zc_status status = zc_zero_publish(engine, nullptr);
        const std::string text = zc_last_error();
        over = true;
        RANK_CHECK(status == ZC_TIMEOUT && text.find("rank 1") != std::string::npos, "%s: %s", zc_status_name(status),
                   text.c_str());
      },
      ranks);
}

TEST(Acquire, times_out_naming_the_owner_that_has_not_published_the_generation) {
  const Model model(two_units(), shape(2, ZC_STAGE_3));
  RankOptions ranks;
  ranks.deadline_ns = kSecondNs / 2;
  std::atomic<bool> over{false};
  run_ranks(
      2,
      [&](zc_comm* comm, std::int32_t rank) {
        const TestEngine engine(comm, model);
        engine.load_all();
        RANK_OK(zc_zero_update_begin(engine));
        if (rank == 1) {
          while (!over) sleep_ms(1);
          return;
        }
        RANK_OK(zc_zero_publish(engine, nullptr));
        RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
        const void* tensors[1];
        const zc_status status = zc_zero_acquire(engine, 0, tensors, 1, nullptr);
        const std::string text = zc_last_error();
        over = true;
        RANK_CHECK(status == ZC_TIMEOUT && text.find("rank 1") != std::string::npos, "%s: %s", zc_status_name(status),
                   text.c_str());
      },
      ranks);
}

// One thread acquires (and waits for an owner) while another ends the pass and wants to update.
TEST(UpdateBegin, is_refused_while_another_thread_of_the_rank_is_inside_acquire) {
  const Model model(two_units(), shape(2, ZC_STAGE_3));
  RankOptions ranks;
  ranks.deadline_ns = 10 * kSecondNs;
  std::atomic<bool> refused{false};
  run_ranks(
      2,
      [&](zc_comm* comm, std::int32_t rank) {
        const TestEngine engine(comm, model);
        engine.load_all(0);
        RANK_OK(zc_zero_update_begin(engine));
        engine.write(1);
        if (rank == 1)
          while (!refused) sleep_ms(1);  // its values of version 1 come late
        RANK_OK(zc_zero_publish(engine, nullptr));
        if (rank == 0) {
          RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
          run_threads(2, [&](int thread) {
            if (thread == 0) {
              engine.check_values(0, engine.acquire(0), 1);
              return;
            }
            sleep_ms(100);
            RANK_OK(zc_zero_end(engine));
            const zc_status status = zc_zero_update_begin(engine);
            refused = true;
            RANK_CHECK(status == ZC_STATE, "%s", zc_status_name(status));
          });
          RANK_OK(zc_zero_release(engine, 0, nullptr));
        }
        engine.update(2);
        RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
        engine.visit(0, 2);
        RANK_OK(zc_zero_end(engine));
      },
      ranks);
}

}  // namespace
