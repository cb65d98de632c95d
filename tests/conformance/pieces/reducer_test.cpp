// A reducer gives the bits of an engine and of zc_reduce_scatter, and holds no memory for parameters.
#include "pieces.hpp"

#include "support/exact_data.hpp"

#include <cmath>
#include <numeric>

namespace zerocomm::test {
namespace {

// Values whose f32 sums round: every change of their order shows.
float rough(std::uint64_t key) {
  const std::uint64_t draw = mix(key, 3);
  const float value = std::ldexp(1.0F + static_cast<float>(draw >> 41) * 0x1p-23F, static_cast<int>(draw % 17) - 8);
  return (draw >> 20 & 1) != 0 ? -value : value;
}
Gradients rough_gradients(const Model& model, std::int32_t rank, int pass) {
  const std::uint64_t key = mix(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(pass));
  return Gradients(model, [&](std::size_t use, std::size_t e) { return rough(mix(mix(key, use), e)); });
}

// Reduced gradients of a rank by (tensor, element).
using Bits = std::map<std::pair<std::size_t, std::size_t>, std::uint32_t>;
Bits bits_of(const TestEngine::Pieces& pieces) {
  Bits bits;
  for (const zc_zero_piece& piece : pieces)
    for (std::size_t i = 0; i < piece.count; ++i) {
      std::uint32_t word = 0;
      std::memcpy(&word, piece.gradient + i, sizeof word);
      bits[{piece.tensor, piece.tensor_offset + i}] = word;
    }
  return bits;
}

struct Row {
  std::int32_t ranks;
  zc_stage stage;
  zc_placement placement;
  zc_accumulation accumulation;
  zc_slices slices;
};

class ReducerBits : public testing::TestWithParam<Row> {};

TEST_P(ReducerBits, are_those_of_an_engine_of_the_same_layout) {
  const Row& row = GetParam();
  const Model model(mixed_tensors(), shape(row.ranks, row.stage, 256, row.placement));
  run_ranks(row.ranks, [&](zc_comm* comm, std::int32_t rank) {
    zc_reducer_config config = reducer_options();
    config.micro_steps = 3;
    config.accumulation = row.accumulation;
    config.slices = row.slices;
    config.gradient_slots = 1;
    zc_zero_config same = options();
    same.micro_steps = 3;
    same.accumulation = row.accumulation;
    const TestReducer reducer(comm, model, config);
    const TestEngine engine(comm, model, same);
    engine.load_all();
    for (int step = 0; step < 2; ++step) {
      constexpr zc_phase kPhases[] = {ZC_PHASE_FIRST, ZC_PHASE_MIDDLE, ZC_PHASE_LAST};
      for (int pass = 0; pass < 3; ++pass) {
        const Gradients gradients = rough_gradients(model, rank, 3 * step + pass);
        RANK_OK(zc_reducer_begin(reducer, kPhases[pass]));
        // Every rank in an order of its own.
        const std::size_t uses = model.info().use_count;
        for (std::size_t i = 0; i < uses; ++i) {
          const std::size_t use = rank % 2 == 0 ? uses - 1 - i : (i + static_cast<std::size_t>(rank)) % uses;
          if (model.trainable(use)) RANK_OK(zc_reducer_grad_ready(reducer, use, gradients.of(use), nullptr));
        }
        RANK_OK(zc_reducer_end(reducer));
        RANK_OK(zc_zero_begin(engine, "train", kPhases[pass]));
        gradients.report_all(engine);
        RANK_OK(zc_zero_end(engine));
      }
      const Bits found = bits_of(reducer.pieces()), wanted = bits_of(engine.pieces());
      RANK_CHECK(found == wanted, "%zu and %zu elements", found.size(), wanted.size());
      zc_norm mine{}, theirs{};
      mine.struct_size = theirs.struct_size = sizeof mine;
      RANK_OK(zc_reducer_norm(reducer, &mine));
      RANK_OK(zc_zero_norm(engine, &theirs));
      RANK_CHECK(mine.norm == theirs.norm && mine.norm > 0, "%g and %g", mine.norm, theirs.norm);
      RANK_OK(zc_reducer_scale(reducer, 0.5));
      RANK_OK(zc_zero_scale(engine, 0.5));
      RANK_CHECK(bits_of(reducer.pieces()) == bits_of(engine.pieces()), "after scale");
      RANK_OK(zc_zero_publish_unchanged(engine));
    }
  });
}

std::vector<Row> rows() {
  std::vector<Row> rows;
  for (const zc_stage stage : {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3})
    for (const zc_placement placement : {ZC_PLACEMENT_PER_UNIT, ZC_PLACEMENT_FLAT})
      for (const zc_accumulation order : {ZC_ACCUMULATE_REDUCE_EACH, ZC_ACCUMULATE_FIRST})
        rows.push_back({static_cast<std::int32_t>(1 + rows.size() % 5), stage, placement, order,
                        rows.size() % 3 == 0 ? ZC_SLICES_STATIC : ZC_SLICES_CLAIMED});
  return rows;
}
INSTANTIATE_TEST_SUITE_P(rows, ReducerBits, testing::ValuesIn(rows()));

// One tensor per unit whose count every number of ranks divides: a rank's shard is its block of a reduce-scatter.
TEST(ReducerBits, are_those_of_a_reduce_scatter) {
  for (const zc_stage stage : {ZC_STAGE_2, ZC_STAGE_3})
    for (const zc_dtype dtype : {ZC_DTYPE_F32, ZC_DTYPE_BF16})
      for (const std::int32_t ranks : {2, 3, 5}) {
        const std::size_t share = 64, count = share * static_cast<std::size_t>(ranks);
        const Model model({tensor("a", "u0", count, dtype), tensor("b", "u1", 3 * count, dtype)},
                          shape(ranks, stage, 1));
        run_ranks(ranks, [&](zc_comm* comm, std::int32_t rank) {
          const TestReducer reducer(comm, model);
          const Gradients gradients = rough_gradients(model, rank, 0);
          reducer.step(gradients);
          float* output = nullptr;
          std::size_t output_count = 0;
          RANK_OK(zc_reducer_output(reducer, 0, &output, &output_count));
          RANK_CHECK(output_count == 4 * share, "%zu elements", output_count);
          std::vector<float> wanted(4 * share);
          zc_coll_options options{};
          options.struct_size = sizeof options;
          options.output_dtype = ZC_DTYPE_F32;
          RANK_OK(zc_reduce_scatter(comm, gradients.of(0), wanted.data(), share, dtype, ZC_OP_AVG, &options));
          RANK_OK(
              zc_reduce_scatter(comm, gradients.of(1), wanted.data() + share, 3 * share, dtype, ZC_OP_AVG, &options));
          RANK_CHECK(std::memcmp(output, wanted.data(), wanted.size() * sizeof(float)) == 0, "stage %d, %s, %d ranks",
                     static_cast<int>(stage), zc_dtype_name(dtype), ranks);
        });
      }
}

TEST(Reducer, output_is_one_array_per_buffer_and_pieces_are_its_real_elements) {
  for (const zc_stage stage : {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3})
    for (const zc_placement placement : {ZC_PLACEMENT_PER_UNIT, ZC_PLACEMENT_FLAT}) {
      const Model model(mixed_tensors(), shape(3, stage, 256, placement));
      run_ranks(3, [&](zc_comm* comm, std::int32_t rank) {
        const TestReducer reducer(comm, model);
        reducer.step(Gradients(model, [](std::size_t use, std::size_t e) { return static_cast<float>(use + e + 1); }));
        const float ties = 2;  // the tied tensor has two equal shapes of gradients, of uses 0 and 7
        reducer.check_gradients([&](std::size_t t, std::size_t e) {
          return t == 0 ? ties * static_cast<float>(e + 1) + 7 : static_cast<float>(t + e + 1);
        });
        std::set<const float*> real;
        std::size_t next_state = 0;
        for (const zc_zero_piece& piece : reducer.pieces()) {
          RANK_CHECK(piece.parameter == nullptr && piece.master == nullptr, "a reducer has no parameters");
          RANK_CHECK(piece.state_offset == next_state, "states have a gap at %zu", next_state);
          next_state += piece.count;
          for (std::size_t i = 0; i < piece.count; ++i) real.insert(piece.gradient + i);
        }
        RANK_CHECK(next_state == reducer.pieces().state_count, "%zu states", next_state);
        std::size_t found = 0;
        for (std::size_t buffer = 0; buffer < model.info().buffer_count; ++buffer) {
          const zc_buffer_info info = buffer_of(model, buffer);
          float* output = nullptr;
          std::size_t count = 0;
          if (info.frozen != 0) {
            RANK_STATUS(ZC_ARGUMENT, zc_reducer_output(reducer, buffer, &output, &count));
            RANK_ERROR_SAYS("frozen");
            continue;
          }
          RANK_OK(zc_reducer_output(reducer, buffer, &output, &count));
          RANK_CHECK(count == info.shard_count * (stage == ZC_STAGE_0 ? 3 : 1), "%zu elements", count);
          for (std::size_t i = 0; i < count; ++i) {
            const bool is_real = real.count(output + i) != 0;
            found += is_real;
            RANK_CHECK(is_real || output[i] == 0, "padding %zu of buffer %zu is not zero", i, buffer);
          }
          if (stage == ZC_STAGE_0) continue;
          // And the layout says the same.
          const zc_piece* pieces = nullptr;
          std::size_t piece_count = 0;
          RANK_OK(zc_layout_pieces(model.get(), rank, buffer, &pieces, &piece_count));
          for (std::size_t p = 0; p < piece_count; ++p)
            RANK_CHECK(real.count(output + pieces[p].shard_offset) != 0, "piece");
        }
        RANK_CHECK(found == real.size(), "%zu of %zu real elements lie in outputs", found, real.size());
      });
    }
}

// 4 + 4 bytes per element are gone: shards of gradients, two slots, and words.
TEST(Reducer, holds_gradients_and_slots_alone) {
  const Model model({tensor("a", "u0", 4096, ZC_DTYPE_BF16), tensor("b", "u1", 4096, ZC_DTYPE_BF16)},
                    shape(2, ZC_STAGE_3, 1));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    const auto held_bytes = [&] {
      zc_ledger ledger{};
      ledger.struct_size = sizeof ledger;
      RANK_OK(zc_comm_ledger(comm, &ledger));
      return ledger.window_bytes + ledger.memory_bytes;
    };
    const std::size_t before_bytes = held_bytes();
    zc_reducer_config config = reducer_options();
    config.gradient_slots = 1;
    const TestReducer reducer(comm, model, config);
    const zc_reducer_ledger ledger = reducer.ledger();
    RANK_CHECK(ledger.gradient_bytes == 4096 * sizeof(float), "%zu", ledger.gradient_bytes);
    RANK_CHECK(ledger.slot_bytes == 4096 * 2, "%zu", ledger.slot_bytes);
    RANK_CHECK(held_bytes() - before_bytes == ledger.gradient_bytes + ledger.slot_bytes, "%zu",
               held_bytes() - before_bytes);
    RANK_CHECK(ledger.total_bytes == ledger.gradient_bytes + ledger.slot_bytes + ledger.control_bytes, "%zu",
               ledger.total_bytes);
    reducer.step(Gradients(model, [](std::size_t, std::size_t) { return 2.0F; }));
    reducer.check_gradients([](std::size_t, std::size_t) { return 2.0F; });
    const zc_reducer_stats stats = reducer.stats();
    RANK_CHECK(stats.buckets_reduced == 2 && stats.slot_peak_bytes == 4096 * 2, "%llu buckets, %llu bytes",
               static_cast<unsigned long long>(stats.buckets_reduced),
               static_cast<unsigned long long>(stats.slot_peak_bytes));
    RANK_CHECK(stats.reduce_logical_bytes == 4096 * 2, "%llu",
               static_cast<unsigned long long>(stats.reduce_logical_bytes));
  });
}

}  // namespace
}  // namespace zerocomm::test
