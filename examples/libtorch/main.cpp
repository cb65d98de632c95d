// Trains a small convolutional network on Fashion-MNIST, one rank of a job: zc run -n 2 -- zc_libtorch --stage 3
//
// A step takes some micro-batches, split over the ranks. Losses and accuracy do not depend on the stage, nor on whether
// one rank takes all micro-batches or each of several takes one. --plain is LibTorch without ZeroComm, and says the
// same.
#include <algorithm>
#include <exception>
#include <numeric>

#include "data.hpp"
#include "model.hpp"
#include "options.hpp"
#include "report.hpp"
#include "sharded_module.hpp"

namespace fashion {
namespace {

struct Batch {
  torch::Tensor pictures, labels;
};

// The pictures whose numbers are order[first], order[first + 1], ...
Batch take(const Pictures& from, const std::vector<std::size_t>& order, std::size_t first, std::size_t count) {
  const auto rows = static_cast<std::int64_t>(count);
  const Batch batch{torch::empty({rows, 1, kSide, kSide}), torch::empty({rows}, torch::kInt64)};
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t which = order[first + i];
    const auto pixels = std::span(from.pixels).subspan(which * kPixels, kPixels);
    std::transform(pixels.begin(), pixels.end(), batch.pictures.data_ptr<float>() + i * kPixels, brightness);
    batch.labels.data_ptr<std::int64_t>()[i] = from.labels[which];
  }
  return batch;
}

struct Data {
  Pictures pictures;
  std::vector<std::size_t> order = shuffled(pictures.count(), 1);

  Batch micro_batch(std::size_t index) const {
    constexpr std::size_t kCount = 64;
    return take(pictures, order, index % (order.size() / kCount) * kCount, kCount);
  }
};

// How many pictures of the test set a model gets right, of every `ranks`-th batch from number `rank` on.
template <class Forward>
std::int64_t count_correct(const Pictures& test, std::size_t rank, std::size_t ranks, Forward forward) {
  constexpr std::size_t kCount = 500;
  const torch::NoGradGuard no_gradients;
  std::vector<std::size_t> order(test.count());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::int64_t correct = 0;
  for (std::size_t first = rank * kCount; first < order.size(); first += ranks * kCount) {
    const Batch batch = take(test, order, first, std::min(kCount, order.size() - first));
    correct += forward(batch.pictures).argmax(1).eq(batch.labels).sum().template item<std::int64_t>();
  }
  return correct;
}

// LibTorch alone: autograd itself adds up the gradients of the micro-batches.
void train_plain(const Options& options, const Data& train, const Pictures& test) {
  const std::size_t micro_batches = options.micro_batches == 0 ? 2 : options.micro_batches;
  torch::nn::Sequential model = make_model();
  const std::vector<torch::Tensor> parameters = model->parameters();
  Adam adam(options.steps);
  Report report;
  for (std::size_t step = 0; step < options.steps; ++step) {
    std::vector<float> losses;
    for (std::size_t m = 0; m < micro_batches; ++m) {
      const Batch batch = train.micro_batch(step * micro_batches + m);
      const torch::Tensor loss = torch::nll_loss(model->forward(batch.pictures), batch.labels);
      loss.backward();
      losses.push_back(loss.item<float>());
    }
    for (const torch::Tensor& parameter : parameters) parameter.grad().div_(static_cast<double>(micro_batches));
    const torch::NoGradGuard no_gradients;
    adam.step(parameters);
    for (const torch::Tensor& parameter : parameters) parameter.mutable_grad().reset();
    report.losses(step, losses);
  }
  report.finish(count_correct(test, 0, 1, [&](const torch::Tensor& x) { return model->forward(x); }), test.count());
}

void print_bytes(zc_zero* zero, const Adam& adam) {
  zc_zero_ledger ledger{};
  ledger.struct_size = sizeof ledger;
  check(zc_zero_get_ledger(zero, &ledger));
  zc_zero_stats stats{};
  stats.struct_size = sizeof stats;
  check(zc_zero_get_stats(zero, &stats));
  std::printf(
      "bytes of rank 0: parameters %zu, gradients %zu, moments %zu; gathered units %zu, gradients in flight %zu\n",
      ledger.parameter_bytes, ledger.gradient_bytes, adam.moment_bytes(), ledger.gather_bytes, ledger.slot_bytes);
  std::printf("units used %" PRIu64 " times, of that fetched ahead or kept %" PRIu64 "; buckets reduced %" PRIu64
              ", of that during backward %" PRIu64 "\n",
              stats.hits + stats.late_hits + stats.misses, stats.hits + stats.late_hits, stats.buckets_reduced,
              stats.buckets_before_end);
}

zc_phase phase_of(std::size_t pass, std::size_t passes) {
  if (passes == 1) return ZC_PHASE_ONLY;
  if (pass == 0) return ZC_PHASE_FIRST;
  return pass + 1 == passes ? ZC_PHASE_LAST : ZC_PHASE_MIDDLE;
}

ShardedModule shard(zc_comm* comm, zc_stage stage, std::size_t passes) {
  constexpr std::size_t kLargestBytes = std::size_t{40} << 10;  // what the largest unit takes, and any gradient
  zc_layout_config cut{};
  cut.struct_size = sizeof cut;
  cut.stage = stage;
  cut.bucket_bytes = kLargestBytes;
  zc_zero_config config{};
  config.struct_size = sizeof config;
  config.micro_steps = static_cast<std::int32_t>(passes);
  config.budget_bytes = 4 * kLargestBytes;  // the unit in use, the next one, and two buckets of gradients
  return ShardedModule(comm, make_model(), cut, config);
}

void train_sharded(zc_comm* comm, const Options& options, const Data& train, const Pictures& test) {
  std::int32_t rank_number = 0, rank_count = 0;
  check(zc_comm_rank(comm, &rank_number));
  check(zc_comm_size(comm, &rank_count));
  const auto rank = static_cast<std::size_t>(rank_number), ranks = static_cast<std::size_t>(rank_count);
  std::size_t micro_batches = options.micro_batches;
  if (micro_batches == 0) micro_batches = ranks == 1 ? 2 : ranks;
  TORCH_CHECK(micro_batches % ranks == 0, micro_batches, " micro-batches cannot be shared by ", ranks, " ranks");
  const std::size_t passes = micro_batches / ranks;

  ShardedModule model = shard(comm, options.stage, passes);
  Adam adam(options.steps);
  Report report;
  zc_coll_options control{};
  control.struct_size = sizeof control;
  control.traffic = ZC_TRAFFIC_CONTROL;
  for (std::size_t step = 0; step < options.steps; ++step) {
    std::vector<float> losses(micro_batches);
    for (std::size_t pass = 0; pass < passes; ++pass) {
      const Batch batch = train.micro_batch(step * micro_batches + pass * ranks + rank);
      model.begin("train", phase_of(pass, passes));
      const torch::Tensor loss = torch::nll_loss(model.forward(batch.pictures), batch.labels);
      loss.backward();
      model.end();
      const auto own = loss.item<float>();
      check(zc_all_gather(comm, &own, losses.data() + pass * ranks, 1, ZC_DTYPE_F32, &control));
    }
    model.update([&] { adam.step(model.owned()); });
    if (rank == 0) report.losses(step, losses);
  }

  // Every rank tests its share: a pass without gradients needs no other rank.
  std::int64_t correct = 0;
  model.begin("test", ZC_PHASE_EVAL);
  const std::int64_t own = count_correct(test, rank, ranks, [&](const torch::Tensor& x) { return model.forward(x); });
  model.end();
  check(zc_all_reduce(comm, &own, &correct, 1, ZC_DTYPE_I64, ZC_OP_SUM, &control));
  if (rank != 0) return;
  report.finish(correct, test.count());
  print_bytes(model.engine(), adam);
}

void run(const Options& options) {
  at::set_num_threads(1);
  at::globalContext().setDeterministicAlgorithms(true, false);
  const Data train{read_pictures(options.data, "train")};
  const Pictures test = read_pictures(options.data, "t10k");
  if (options.plain) return train_plain(options, train, test);
  zc_comm* comm = nullptr;
  check(zc_comm_create(nullptr, &comm));
  const std::unique_ptr<zc_comm, decltype(&zc_comm_destroy)> owner(comm, zc_comm_destroy);
  train_sharded(comm, options, train, test);
}

}  // namespace
}  // namespace fashion

int main(int argc, char** argv) {
  try {
    fashion::run(fashion::parse_options(std::span(argv, static_cast<std::size_t>(argc))));
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "zc_libtorch: %s\n", error.what_without_backtrace());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "zc_libtorch: %s\n", error.what());
    return 1;
  }
  return 0;
}
