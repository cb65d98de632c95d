// Values in and out: loading, export, shards and pieces, blockers, the gradient buffer, fetching ahead.
#include "world.hpp"

#include <atomic>
#include <random>

namespace {

using namespace zerocomm::test;

constexpr zc_stage kStages[] = {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3};
struct Cut {
  zc_stage stage;
  zc_placement placement;
};
constexpr Cut kCuts[] = {{ZC_STAGE_0, ZC_PLACEMENT_PER_UNIT}, {ZC_STAGE_1, ZC_PLACEMENT_PER_UNIT},
                         {ZC_STAGE_2, ZC_PLACEMENT_PER_UNIT}, {ZC_STAGE_3, ZC_PLACEMENT_PER_UNIT},
                         {ZC_STAGE_0, ZC_PLACEMENT_FLAT},     {ZC_STAGE_1, ZC_PLACEMENT_FLAT},
                         {ZC_STAGE_2, ZC_PLACEMENT_FLAT},     {ZC_STAGE_3, ZC_PLACEMENT_FLAT}};

TEST(Load, compares_what_the_ranks_bring_and_names_the_tensor_that_differs) {
  const Model model({tensor("a", "u", 10), tensor("b", "u", 10)}, shape(3, ZC_STAGE_3));
  run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
    const TestEngine engine(comm, model);
    float a[10] = {}, b[10] = {};
    if (rank == 2) b[9] = 1;
    const void* full[] = {a, b};
    RANK_STATUS(ZC_MISMATCH, zc_zero_load(engine, 0, full, ZC_DTYPE_NONE, ZC_NONE));
    RANK_ERROR_SAYS("tensor b");
    RANK_ERROR_SAYS("rank 0");
    RANK_ERROR_SAYS("rank 2");
    engine.load_unit(0, 4);  // nothing was stored, everything is usable
    RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
    engine.visit(0, 4);
    RANK_OK(zc_zero_end(engine));
  });
}

TEST(Load, of_another_unit_or_root_on_one_rank_is_a_mismatch) {
  const Model model({tensor("a", "u", 10), tensor("b", "v", 10)}, shape(2, ZC_STAGE_3));
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    const TestEngine engine(comm, model);
    const float values[10] = {};
    const void* full[] = {values};
    RANK_STATUS(ZC_MISMATCH, zc_zero_load(engine, static_cast<std::size_t>(rank), full, ZC_DTYPE_NONE, ZC_NONE));
    RANK_ERROR_SAYS("unit");
    RANK_STATUS(ZC_MISMATCH, zc_zero_load(engine, 0, full, ZC_DTYPE_NONE, rank == 0 ? ZC_NONE : 0));
    RANK_ERROR_SAYS("root");
    RANK_STATUS(ZC_MISMATCH, zc_zero_load(engine, 0, full, rank == 0 ? ZC_DTYPE_NONE : ZC_DTYPE_F32, 0));
    RANK_ERROR_SAYS("dtype");
    RANK_STATUS(ZC_ARGUMENT, zc_zero_load(engine, 7, full, ZC_DTYPE_NONE, ZC_NONE));
    RANK_STATUS(ZC_ARGUMENT, zc_zero_load(engine, 0, full, ZC_DTYPE_BF16, ZC_NONE));
    RANK_STATUS(ZC_ARGUMENT, zc_zero_load(engine, 0, full, ZC_DTYPE_NONE, 2));
    RANK_STATUS(ZC_ARGUMENT, zc_zero_load(engine, 0, nullptr, ZC_DTYPE_NONE, ZC_NONE));
    engine.load_all(1);
  });
}

// More than one piece of staging, and values that only the root has.
TEST(Load, broadcasts_the_values_of_a_root) {
  constexpr std::size_t kCount = 300'001;
  for (const auto [stage, placement] : kCuts) {
    const Model model({tensor("big", "u", kCount), tensor("small", "u", 3)}, shape(3, stage, 0, placement));
    run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
      const TestEngine engine(comm, model);
      if (rank == 1)
        engine.load_unit(0, 6, 1);
      else
        RANK_OK(zc_zero_load(engine, 0, nullptr, ZC_DTYPE_F32, 1));
      RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
      engine.visit(0, 6);
      RANK_OK(zc_zero_end(engine));
      engine.check_padding(rank);
    });
  }
}

TEST(Load, of_f32_values_keeps_masters_exact_and_rounds_the_16_bit_storage_once) {
  std::vector<float> values;
  std::mt19937 random(5);
  for (int i = 0; i < 101; ++i) values.push_back(static_cast<float>(static_cast<double>(random()) / 3e9 - 0.5));
  values[0] = 1.0F + 0x1p-8F;             // halfway between two bf16 values: to even
  values[1] = 1.0F + 0x1p-8F + 0x1p-20F;  // just above it
  std::vector<std::uint16_t> rounded(values.size());
  ASSERT_EQ(zc_cast(values.data(), ZC_DTYPE_F32, rounded.data(), ZC_DTYPE_BF16, values.size()), ZC_OK);
  for (const zc_stage stage : kStages) {
    for (const std::int32_t root : {ZC_NONE, 1}) {
      const Model model({tensor("w", "u", values.size(), ZC_DTYPE_BF16)}, shape(2, stage));
      run_ranks(2, [&](zc_comm* comm, std::int32_t) {
        const TestEngine engine(comm, model);
        const void* full[] = {values.data()};
        RANK_OK(zc_zero_load(engine, 0, full, ZC_DTYPE_F32, root));
        std::vector<float> master(values.size());
        std::vector<std::uint16_t> parameter(values.size());
        RANK_OK(zc_zero_export(engine, 0, ZC_STATE_MASTER, master.data()));
        RANK_OK(zc_zero_export(engine, 0, ZC_STATE_PARAMETER, parameter.data()));
        RANK_CHECK(master == values, "masters are not what was loaded");
        RANK_CHECK(parameter == rounded, "parameters are not rounded once");
      });
    }
  }
}

// A unit that was fetched ahead before it was loaded must not keep what it had then.
TEST(Load, replaces_what_was_gathered_before_it) {
  const Model model({tensor("a", "u", 10), tensor("b", "v", 10)}, shape(2, ZC_STAGE_3));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    const TestEngine engine(comm, model);
    engine.load_unit(0, 3);
    RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
    engine.visit(0, 3);
    RANK_OK(zc_zero_prefetch(engine, 1));
    RANK_OK(zc_zero_end(engine));
    engine.load_unit(1, 3);
    RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
    engine.visit(1, 3);
    RANK_OK(zc_zero_end(engine));
  });
}

TEST(Export, gives_whole_tensors_to_one_rank_alone_in_every_stage) {
  for (const auto [stage, placement] : kCuts) {
    const Model model(mixed(), shape(3, stage, 0, placement));
    std::atomic<bool> exported{false};
    run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
      const TestEngine engine(comm, model);
      engine.load_all(0);
      engine.update(9);
      if (rank == 1) {
        for (const std::size_t tensor : std::vector<std::size_t>{0, 1, 2, 3, 4, 5}) {
          const zc_tensor& of = model.tensor_of(tensor);
          const std::size_t owner = tensor == 4 ? 0 : tensor;
          std::vector<float> master(of.count), parameter(of.count);
          RANK_OK(zc_zero_export(engine, tensor, ZC_STATE_MASTER, master.data()));
          RANK_OK(zc_zero_export(engine, tensor, ZC_STATE_PARAMETER, parameter.data()));
          for (std::size_t e = 0; e < of.count; ++e) {
            const float wanted = value_of(of.dtype, of.frozen != 0 ? 0 : 9, owner, e);
            RANK_CHECK(master[e] == wanted && read_element(of.dtype, parameter.data(), e) == wanted,
                       "tensor %s, element %zu", of.name, e);
          }
        }
        RANK_STATUS(ZC_ARGUMENT, zc_zero_export(engine, 0, ZC_STATE_GRADIENT, nullptr));
        RANK_STATUS(ZC_ARGUMENT, zc_zero_export(engine, 6, ZC_STATE_PARAMETER, nullptr));
        exported = true;
      } else {
        while (!exported) sleep_ms(1);  // in no call of the library
      }
    });
  }
}

TEST(Shards, hold_what_the_pieces_point_to) {
  for (const auto [cut_stage, placement] : kCuts) {
    const zc_stage stage = cut_stage;
    const bool flat = placement == ZC_PLACEMENT_FLAT;
    const Model model(mixed(), shape(3, stage, 0, placement));
    run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
      const TestEngine engine(comm, model);
      engine.load_all(2);
      const TestEngine::Pieces pieces = engine.pieces();
      std::size_t state_end = 0, found = 0;
      std::vector<std::size_t> shard_pieces;
      for (const zc_zero_piece& piece : pieces) {
        RANK_CHECK(piece.state_offset == state_end, "a gap before state element %zu", piece.state_offset);
        state_end += piece.count;
      }
      RANK_CHECK(state_end == pieces.state_count, "%zu of %zu", state_end, pieces.state_count);
      for (std::size_t buffer = 0; buffer < model.info().buffer_count; ++buffer) {
        const zc_piece* wanted = nullptr;
        std::size_t wanted_count = 0;
        RANK_OK(zc_layout_pieces(model.get(), rank, buffer, &wanted, &wanted_count));
        zc_buffer_info info{};
        info.struct_size = sizeof info;
        RANK_OK(zc_layout_get_buffer(model.get(), buffer, &info));
        for (std::size_t i = 0; i < wanted_count; ++i) {
          if (info.frozen != 0 || stage == ZC_STAGE_0) continue;
          const auto at = std::find_if(pieces.begin(), pieces.end(), [&](const zc_zero_piece& piece) {
            return piece.tensor == wanted[i].tensor && piece.tensor_offset == wanted[i].tensor_offset &&
                   piece.count == wanted[i].count;
          });
          RANK_CHECK(at != pieces.end(), "no piece for tensor %zu at %zu", wanted[i].tensor, wanted[i].tensor_offset);
          ++found;
          const auto check = [&](zc_state state, const void* address, std::size_t element_bytes) {
            void* shard = nullptr;
            std::size_t count = 0;
            const zc_status status = zc_zero_state(engine, state, buffer, &shard, &count);
            if (status == ZC_UNSUPPORTED) return false;
            RANK_OK(status);
            RANK_CHECK(count == info.shard_count, "%zu elements", count);
            RANK_CHECK(address == static_cast<std::byte*>(shard) + wanted[i].shard_offset * element_bytes, "state %d",
                       static_cast<int>(state));
            return true;
          };
          const bool has_parameters = check(ZC_STATE_PARAMETER, at->parameter, zc_dtype_bytes(info.dtype));
          RANK_CHECK(has_parameters == (stage == ZC_STAGE_3 || flat), "parameters");  // flat: one run of the replica
          const bool has_masters = check(ZC_STATE_MASTER, at->master, sizeof(float));
          RANK_CHECK(has_masters == (has_parameters || info.dtype != ZC_DTYPE_F32), "masters");
          const bool has_gradients = check(ZC_STATE_GRADIENT, at->gradient, sizeof(float));
          RANK_CHECK(has_gradients || stage == ZC_STAGE_1, "gradients");
        }
      }
      RANK_CHECK(stage == ZC_STAGE_0 || found == pieces.count, "%zu of %zu pieces", found, pieces.count);
    });
  }
}

TEST(Blockers, name_the_uses_that_keep_a_bucket_from_being_complete_on_another_rank) {
  const Model model({tensor("a", "u", 4), tensor("b", "u", 4), tied(tensor("a2", "u", 4), "a")}, shape(2, ZC_STAGE_2));
  ASSERT_EQ(model.info().bucket_count, 1U);
  std::atomic<int> turn{0};
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    const TestEngine engine(comm, model);
    engine.load_all();
    const Gradients gradients(model, [](std::size_t, std::size_t) { return 1.0F; });
    const auto report = [&](std::size_t use) { RANK_OK(zc_zero_grad_ready(engine, use, gradients.of(use), nullptr)); };
    const auto await = [&](int value) {
      while (turn < value) std::this_thread::yield();
    };
    const auto blockers = [&](std::int32_t of) {
      std::size_t uses[3] = {}, count = 0;
      RANK_OK(zc_zero_blockers(engine, 0, of, uses, 3, &count));
      std::vector<std::size_t> result(uses, uses + count);
      std::sort(result.begin(), result.end());
      return result;
    };
    RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
    if (rank == 0) {
      report(1);
      turn = 1;
      await(2);
      RANK_CHECK(blockers(1) == (std::vector<std::size_t>{1, 2}), "%zu", blockers(1).size());
      RANK_CHECK(blockers(0) == (std::vector<std::size_t>{0, 2}), "%zu", blockers(0).size());
      std::size_t first = 9, count = 0;
      RANK_OK(zc_zero_blockers(engine, 0, 1, &first, 1, &count));
      RANK_CHECK(count == 2, "%zu", count);
      RANK_STATUS(ZC_ARGUMENT, zc_zero_blockers(engine, 1, 1, &first, 1, &count));
      RANK_STATUS(ZC_ARGUMENT, zc_zero_blockers(engine, 0, 2, &first, 1, &count));
      turn = 3;
      await(4);
      RANK_CHECK(blockers(1).empty(), "rank 1 has reported all");
      report(0);
      report(2);
    } else {
      await(1);
      report(0);
      turn = 2;
      await(3);
      report(1);
      RANK_OK(zc_zero_grad_absent(engine, 2));
      turn = 4;
    }
    RANK_OK(zc_zero_end(engine));
  });
}

TEST(GradientBuffer, gives_the_same_bits_without_a_copy) {
  for (const zc_dtype dtype : {ZC_DTYPE_F32, ZC_DTYPE_BF16}) {
    const Model model({tensor("a", "u", 100, dtype), tensor("b", "v", 31, dtype)}, shape(3, ZC_STAGE_1, 64));
    run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
      const TestEngine engine(comm, model), twin(comm, model);
      engine.load_all();
      twin.load_all();
      for (int step = 0; step < 3; ++step) {
        const Gradients gradients(model, [&](std::size_t use, std::size_t e) {
          std::mt19937 random(static_cast<unsigned>(rank * 1000 + step * 100) +
                              static_cast<unsigned>(use * 7 + e * 13));
          return static_cast<float>(static_cast<double>(random()) / 4e9 - 0.5);
        });
        RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
        RANK_OK(zc_zero_begin(twin, "train", ZC_PHASE_ONLY));
        for (const std::size_t use : std::vector<std::size_t>{1, 0}) {
          void* place = nullptr;
          RANK_OK(zc_zero_grad_buffer(engine, use, &place));
          std::memcpy(place, gradients.of(use), model.tensor_of(use).count * zc_dtype_bytes(dtype));
          RANK_OK(zc_zero_grad_ready(engine, use, place, nullptr));
        }
        gradients.report_all(twin);
        RANK_OK(zc_zero_end(engine));
        RANK_OK(zc_zero_end(twin));
        const TestEngine::Pieces mine = engine.pieces(), theirs = twin.pieces();
        for (std::size_t i = 0; i < mine.count; ++i)
          RANK_CHECK(
              std::memcmp(mine.data[i].gradient, theirs.data[i].gradient, mine.data[i].count * sizeof(float)) == 0,
              "piece %zu", i);
        engine.update(static_cast<std::uint64_t>(step));
        twin.update(static_cast<std::uint64_t>(step));
      }
    });
  }
}

TEST(GradientBuffer, is_unsupported_outside_stage_1_and_for_tied_tensors) {
  for (const zc_stage stage : kStages) {
    const Model model(mixed(), shape(2, stage));
    run_ranks(2, [&](zc_comm* comm, std::int32_t) {
      const TestEngine engine(comm, model);
      void* place = nullptr;
      RANK_STATUS(stage == ZC_STAGE_1 ? ZC_OK : ZC_UNSUPPORTED, zc_zero_grad_buffer(engine, 1, &place));
      RANK_STATUS(ZC_UNSUPPORTED, zc_zero_grad_buffer(engine, 0, &place));
      RANK_STATUS(ZC_UNSUPPORTED, zc_zero_grad_buffer(engine, 4, &place));
      RANK_STATUS(ZC_ARGUMENT, zc_zero_grad_buffer(engine, 2, &place));
    });
  }
}

class FetchingAhead : public testing::TestWithParam<std::int32_t> {};

TEST_P(FetchingAhead, is_as_far_as_asked_and_right) {
  std::vector<std::string> names;
  for (int i = 0; i < 6; ++i) names.push_back(zerocomm::format("t%d", i));
  std::vector<zc_tensor> tensors;
  for (const std::string& name : names) tensors.push_back(frozen(tensor(name.c_str(), name.c_str(), 256)));
  const Model model(tensors, shape(2, ZC_STAGE_3));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    zc_zero_config config = options();
    config.budget_bytes = 2 * 1024;
    config.prefetch = GetParam();
    const TestEngine engine(comm, model, config);
    engine.load_all(1);
    zc_zero_stats before{}, after{};
    for (int pass = 0; pass < 3; ++pass) {
      before = engine.stats();
      RANK_OK(zc_zero_begin(engine, "pass", ZC_PHASE_EVAL));
      for (std::size_t unit = 0; unit < 6; ++unit) engine.visit(unit, 0);
      RANK_OK(zc_zero_end(engine));
      after = engine.stats();
    }
    const std::uint64_t hits = after.hits + after.late_hits - before.hits - before.late_hits,
                        misses = after.misses - before.misses;
    if (GetParam() == ZC_NONE)
      RANK_CHECK(after.prefetches == 0 && misses >= 4, "%llu misses", static_cast<unsigned long long>(misses));
    else
      RANK_CHECK(hits == 6 && misses == 0, "%llu hits of 6", static_cast<unsigned long long>(hits));
    RANK_CHECK(after.prefetches_wasted <= after.prefetches, "waste");
    RANK_CHECK(after.evictions >= 4 * 3, "%llu evictions", static_cast<unsigned long long>(after.evictions));
    RANK_CHECK(after.gathered_peak_bytes <= 2 * 1024, "%llu bytes",
               static_cast<unsigned long long>(after.gathered_peak_bytes));
    // What the fetches received: half of each unit, as often as one was fetched.
    RANK_CHECK(after.gather_logical_bytes == (after.misses + after.prefetches) * 512, "%llu bytes",
               static_cast<unsigned long long>(after.gather_logical_bytes));
  });
}
INSTANTIATE_TEST_SUITE_P(Units, FetchingAhead, testing::Values(ZC_NONE, 0, 1));

TEST(FetchingAhead, by_hand_makes_the_next_acquire_a_hit) {
  const Model model({tensor("a", "u", 10), tensor("b", "v", 10)}, shape(2, ZC_STAGE_3));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    zc_zero_config config = options();
    config.prefetch = ZC_NONE;
    const TestEngine engine(comm, model, config);
    engine.load_all(1);
    RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
    RANK_OK(zc_zero_prefetch(engine, 1));
    RANK_OK(zc_zero_prefetch(engine, 1));  // it is there
    engine.visit(1, 1);
    engine.visit(0, 1);
    RANK_OK(zc_zero_end(engine));
    const zc_zero_stats stats = engine.stats();
    RANK_CHECK(stats.hits == 1 && stats.misses == 1 && stats.prefetches == 1 && stats.prefetches_wasted == 0,
               "%llu hits", static_cast<unsigned long long>(stats.hits));
    RANK_STATUS(ZC_ARGUMENT, zc_zero_prefetch(engine, 2));
  });
}

// Owners that have not published yet: a prefetch does not wait, an acquire does.
TEST(FetchingAhead, by_hand_before_the_owners_have_published_is_again) {
  const Model model({tensor("a", "u", 10)}, shape(2, ZC_STAGE_3));
  std::atomic<bool> looked{false};
  run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
    const TestEngine engine(comm, model);
    engine.load_all(1);
    RANK_OK(zc_zero_update_begin(engine));
    engine.write(2);
    if (rank == 1)
      while (!looked) sleep_ms(1);
    RANK_OK(zc_zero_publish(engine, nullptr));
    RANK_OK(zc_zero_begin(engine, "eval", ZC_PHASE_EVAL));
    if (rank == 0) RANK_STATUS(ZC_AGAIN, zc_zero_prefetch(engine, 0));
    looked = true;
    engine.visit(0, 2);
    RANK_OK(zc_zero_end(engine));
  });
}

}  // namespace
