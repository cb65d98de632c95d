// pre_reduce sees every gradient once, in the library's copy, before any other rank does.
#include "pieces.hpp"

#include <future>
#include <mutex>

namespace zerocomm::test {
namespace {

// Doubles every element and adds 1, so that a piece seen twice, not at all, or in vain shows in the sum.
struct Doubler {
  std::mutex mutex;
  std::map<std::size_t, int> calls;  // by use, since clear
  std::string wrong;
  const Model* model = nullptr;
  bool passes_first = false;

  static void run(void* context, const zc_gradient_piece* piece) {
    auto& self = *static_cast<Doubler*>(context);
    for (std::size_t i = 0; i < piece->count; ++i) {
      if (piece->dtype == ZC_DTYPE_F32) {
        auto& value = static_cast<float*>(piece->data)[i];
        value = 2 * value + 1;
      } else {
        const float value = 2 * read_element(ZC_DTYPE_BF16, piece->data, i) + 1;
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        static_cast<std::uint16_t*>(piece->data)[i] = static_cast<std::uint16_t>(bits >> 16);
      }
    }
    const zc_use_info use = self.model->use(piece->use);
    const zc_dtype dtype = self.passes_first ? ZC_DTYPE_F32 : self.model->tensor_of(use.tensor).dtype;
    const std::lock_guard lock(self.mutex);
    ++self.calls[piece->use];
    if (piece->tensor != use.tensor || piece->tensor_offset != use.in_tensor.offset ||
        piece->count != use.in_tensor.count || piece->dtype != dtype || use.stored_tensor != use.tensor)
      self.wrong = zerocomm::format("use %zu: tensor %zu, elements %zu from %zu on, %s", piece->use, piece->tensor,
                                    piece->count, piece->tensor_offset, zc_dtype_name(piece->dtype));
  }
};

// Small whole numbers: all sums are exact in bf16.
float plain(std::int32_t rank, int pass, std::size_t use, std::size_t element) {
  return static_cast<float>((static_cast<std::size_t>(rank) + 3 * static_cast<std::size_t>(pass) + use + element) % 5);
}
// Which uses a rank has a gradient of in a pass.
bool present(std::int32_t rank, int pass, std::size_t use, bool some_absent) {
  if (!some_absent) return true;
  return use == 5 ? false : (static_cast<std::size_t>(rank) + static_cast<std::size_t>(pass) + use) % 3 != 0;
}

struct Row {
  zc_launch launch;
  zc_accumulation accumulation;
  bool some_absent;
  zc_absent policy;
};

class PreReduce : public testing::TestWithParam<Row> {
 protected:
  static constexpr std::int32_t kRanks = 3;
  static constexpr int kPasses = 2;
  // What a rank brings of a stored use, after the hook, over the passes of a step. *calls: how often the hook sees it.
  static float brought(const Row& row, const Model& model, std::int32_t rank, std::size_t stored, std::size_t element,
                       int* calls) {
    float all = 0, sum = 0;
    bool any = false;
    *calls = 0;
    for (int pass = 0; pass < kPasses; ++pass) {
      float of_pass = 0;
      bool here = false;
      for (std::size_t use = 0; use < model.info().use_count; ++use) {
        if (model.use(use).stored_tensor != stored || !present(rank, pass, use, row.some_absent)) continue;
        here = true;
        of_pass += plain(rank, pass, use, element);
      }
      any = any || here;
      sum += of_pass;
      *calls += here;
      all += here ? 2 * of_pass + 1 : 0;
    }
    if (row.accumulation == ZC_ACCUMULATE_REDUCE_EACH) return all;
    *calls = any;
    return any ? 2 * sum + 1 : 0;
  }
};

TEST_P(PreReduce, sees_each_piece_once_and_has_its_exact_effect) {
  const Row& row = GetParam();
  for (const zc_stage stage : {ZC_STAGE_0, ZC_STAGE_2, ZC_STAGE_3}) {
    const Model model(mixed_tensors(), shape(kRanks, stage, 256));
    run_ranks(kRanks, [&](zc_comm* comm, std::int32_t rank) {
      Doubler hook;
      hook.model = &model;
      hook.passes_first = row.accumulation == ZC_ACCUMULATE_FIRST;
      zc_reducer_config config = reducer_options();
      config.launch = row.launch;
      config.accumulation = row.accumulation;
      config.absent = row.policy;
      config.micro_steps = kPasses;
      config.gradient_divisor = 1;
      config.pre_reduce = &Doubler::run;
      config.pre_reduce_context = &hook;
      const TestReducer reducer(comm, model, config);
      for (int step = 0; step < 2; ++step) {
        hook.calls.clear();
        for (int pass = 0; pass < kPasses; ++pass) {
          const auto rule = [&](std::size_t use, std::size_t e) { return plain(rank, pass, use, e); };
          const Gradients gradients(model, rule), untouched(model, rule);
          RANK_OK(zc_reducer_begin(reducer, pass == 0 ? ZC_PHASE_FIRST : ZC_PHASE_LAST));
          for (std::size_t use = 0; use < model.info().use_count; ++use) {
            if (!model.trainable(use)) continue;
            if (present(rank, pass, use, row.some_absent))
              RANK_OK(zc_reducer_grad_ready(reducer, use, gradients.of(use), nullptr));
            else if (row.policy == ZC_ABSENT_ERROR || use % 2 == 0)
              RANK_OK(zc_reducer_grad_absent(reducer, use));
          }
          RANK_OK(zc_reducer_end(reducer));
          for (std::size_t use = 0; use < model.info().use_count; ++use) {
            const zc_use_info info = model.use(use);
            const std::size_t bytes = info.in_tensor.count * zc_dtype_bytes(model.tensor_of(info.tensor).dtype);
            RANK_CHECK(bytes == 0 || std::memcmp(gradients.of(use), untouched.of(use), bytes) == 0,
                       "the caller's gradient of use %zu was written", use);
          }
        }
        RANK_CHECK(hook.wrong.empty(), "%s", hook.wrong.c_str());
        reducer.check_gradients([&](std::size_t t, std::size_t e) {
          float sum = 0;
          for (std::int32_t r = 0, calls = 0; r < kRanks; ++r) sum += brought(row, model, r, t, e, &calls);
          return sum;
        });
        for (std::size_t use = 0; use < model.info().use_count; ++use) {
          const zc_use_info info = model.use(use);
          int calls = 0;
          if (model.trainable(use) && info.stored_tensor == info.tensor && info.in_tensor.count != 0)
            brought(row, model, rank, use, 0, &calls);
          RANK_CHECK(hook.calls[use] == calls, "use %zu was seen %d times instead of %d in step %d", use,
                     hook.calls[use], calls, step);
        }
      }
    });
  }
}

std::vector<Row> rows() {
  std::vector<Row> rows;
  for (const zc_launch launch : {ZC_LAUNCH_COMPLETE, ZC_LAUNCH_END})
    for (const zc_accumulation order : {ZC_ACCUMULATE_REDUCE_EACH, ZC_ACCUMULATE_FIRST}) {
      rows.push_back({launch, order, false, ZC_ABSENT_ERROR});
      rows.push_back({launch, order, true, ZC_ABSENT_ERROR});
      rows.push_back({launch, order, true, ZC_ABSENT_ZERO});
    }
  return rows;
}
INSTANTIATE_TEST_SUITE_P(rows, PreReduce, testing::ValuesIn(rows()));

// In stage 1 gradients may be written to the library's buffers: there the hook works on what the caller wrote.
TEST(PreReduceOfAnEngine, works_at_every_stage_and_on_gradient_buffers) {
  for (const zc_stage stage : {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3}) {
    const Model model({tensor("a", "u0", 33), tensor("b", "u1", 70), frozen(tensor("c", "u1", 8))}, shape(2, stage, 1));
    run_ranks(2, [&](zc_comm* comm, std::int32_t rank) {
      Doubler hook;
      hook.model = &model;
      zc_zero_config config = options();
      config.gradient_divisor = 1;
      if (rank == 0) config.pre_reduce = &Doubler::run;  // one rank alone may have one
      config.pre_reduce_context = &hook;
      const TestEngine engine(comm, model, config);
      engine.load_all();
      for (int step = 0; step < 2; ++step) {
        const Gradients gradients(model, [&](std::size_t use, std::size_t e) { return plain(rank, step, use, e); });
        RANK_OK(zc_zero_begin(engine, "train", ZC_PHASE_ONLY));
        RANK_OK(zc_zero_grad_ready(engine, 0, gradients.of(0), nullptr));
        void* buffer = nullptr;
        const void* second = gradients.of(1);
        if (stage == ZC_STAGE_1) {
          RANK_OK(zc_zero_grad_buffer(engine, 1, &buffer));
          std::memcpy(buffer, second, 70 * sizeof(float));
          second = buffer;
        }
        RANK_OK(zc_zero_grad_ready(engine, 1, second, nullptr));
        RANK_OK(zc_zero_end(engine));
        engine.check_gradients(
            [&](std::size_t t, std::size_t e) { return 2 * plain(0, step, t, e) + 1 + plain(1, step, t, e); });
        engine.update(static_cast<std::uint64_t>(step));
      }
      RANK_CHECK(hook.wrong.empty() && hook.calls.size() == (rank == 0 ? 2 : 0), "%s", hook.wrong.c_str());
    });
  }
}

// While one thread is in the hook, others of its rank can use the reducer.
TEST(PreReduce, is_called_under_no_lock_of_the_library) {
  struct Outside {
    const TestReducer* reducer = nullptr;
    const Gradients* gradients = nullptr;
    std::atomic<int> calls{0};
    std::atomic<bool> blocked{false};
    std::thread other;
    std::promise<void> done;
    zc_status status = ZC_INTERNAL;
  };
  const Model model({tensor("a", "u0", 33), tensor("b", "u1", 70)}, shape(2, ZC_STAGE_2, 1));
  run_ranks(2, [&](zc_comm* comm, std::int32_t) {
    Outside outside;
    zc_reducer_config config = reducer_options();
    config.pre_reduce_context = &outside;
    config.pre_reduce = [](void* context, const zc_gradient_piece*) {
      auto& at = *static_cast<Outside*>(context);
      if (at.calls.fetch_add(1) != 0) return;
      at.other = std::thread([&at] {
        at.reducer->stats();
        at.status = zc_reducer_grad_ready(*at.reducer, 0, at.gradients->of(0), nullptr);
        at.done.set_value();
      });
      at.blocked = at.done.get_future().wait_for(std::chrono::seconds(20)) != std::future_status::ready;
    };
    const TestReducer reducer(comm, model, config);
    const Gradients gradients(model, [](std::size_t, std::size_t) { return 1.0F; });
    outside.reducer = &reducer;
    outside.gradients = &gradients;
    RANK_OK(zc_reducer_begin(reducer, ZC_PHASE_ONLY));
    RANK_OK(zc_reducer_grad_ready(reducer, 1, gradients.of(1), nullptr));
    outside.other.join();
    RANK_OK(outside.status);
    RANK_OK(zc_reducer_end(reducer));
    RANK_CHECK(!outside.blocked && outside.calls == 2, "%d calls", outside.calls.load());
    reducer.check_gradients([](std::size_t, std::size_t) { return 1.0F; });
  });
}

}  // namespace
}  // namespace zerocomm::test
