// Trains a small convolutional network on Fashion-MNIST with LibTorch and ZeRO:
//
//   zc run -n 2 -- zc_libtorch --stage 3
//
// A step takes some micro-batches, shared out over the ranks. Losses and accuracy depend neither on the stage nor on
// whether one rank takes all micro-batches or each of several takes one. --plain is LibTorch without ZeroComm, and its
// losses and accuracy are the same, bit for bit.
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <numeric>
#include <span>

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

// The pictures whose numbers are in `which`.
Batch take(const Pictures& from, std::span<const std::size_t> which) {
  const auto rows = static_cast<std::int64_t>(which.size());
  const Batch batch{torch::empty({rows, 1, kSide, kSide}), torch::empty({rows}, torch::kInt64)};
  for (std::size_t i = 0; i < which.size(); ++i) {
    const auto pixels = std::span(from.pixels).subspan(which[i] * kPixels, kPixels);
    std::transform(pixels.begin(), pixels.end(), batch.pictures.data_ptr<float>() + i * kPixels, brightness);
    batch.labels.data_ptr<std::int64_t>()[i] = from.labels[which[i]];
  }
  return batch;
}

struct Data {
  Pictures pictures;
  std::vector<std::size_t> order = shuffled(pictures.count(), 1);

  Batch micro_batch(std::size_t index) const {
    constexpr std::size_t kRows = 64;
    return take(pictures, std::span(order).subspan(index % (order.size() / kRows) * kRows, kRows));
  }
};

// How many pictures of the test set a model gets right, of every `ranks`-th batch from number `rank` on.
template <class Forward>
std::int64_t count_correct(const Pictures& test, std::size_t rank, std::size_t ranks, Forward forward) {
  constexpr std::size_t kRows = 500;
  const torch::NoGradGuard no_gradients;
  std::vector<std::size_t> order(test.count());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::int64_t correct = 0;
  for (std::size_t first = rank * kRows; first < order.size(); first += ranks * kRows) {
    const Batch batch = take(test, std::span(order).subspan(first, std::min(kRows, order.size() - first)));
    correct += forward(batch.pictures).argmax(1).eq(batch.labels).sum().template item<std::int64_t>();
  }
  return correct;
}

constexpr zc_traffic kReport = ZC_TRAFFIC_CONTROL;  // booked apart from the training's own bytes

// LibTorch alone: autograd itself adds up the gradients of the micro-batches, and they are divided once.
void train_plain(const Options& options, const Data& train, const Pictures& test) {
  torch::nn::Sequential model = make_model();
  const std::vector<torch::Tensor> parameters = model->parameters();
  Adam adam(options.steps);
  Report report;
  for (std::size_t step = 0; step < options.steps; ++step) {
    std::vector<float> losses;
    for (std::size_t m = 0; m < options.micro_batches; ++m) {
      const Batch batch = train.micro_batch(step * options.micro_batches + m);
      const torch::Tensor loss = torch::nll_loss(model->forward(batch.pictures), batch.labels);
      loss.backward();
      losses.push_back(loss.item<float>());
    }
    for (const torch::Tensor& parameter : parameters) parameter.grad().div_(static_cast<double>(options.micro_batches));
    adam.step(parameters);
    model->zero_grad(true);
    report.losses(step, losses);
  }
  report.finish(count_correct(test, 0, 1, [&](const torch::Tensor& x) { return model->forward(x); }), test.count());
}

// What a program needs to train and to test with ZeRO is the integration: compare_test.py counts these lines with those
// of sharded_module.hpp. Sharing out the data, and gathering losses for the report, is not part of it.
void train_sharded(const Options& options, const Data& train, const Pictures& test) {
  const zc::Comm comm = zc::Comm::create();
  const auto rank = static_cast<std::size_t>(comm.rank()), ranks = static_cast<std::size_t>(comm.size());
  const std::size_t passes = options.micro_batches / ranks;
  TORCH_CHECK(passes * ranks == options.micro_batches, "--micro-batches ", options.micro_batches,
              " cannot be shared out over ", ranks, " ranks");
  torch::nn::Sequential network = make_model();
  ShardedModule model(comm, network, options.stage, static_cast<int>(passes));
  // by whether a pass is the first of its step, and whether it is the last
  constexpr zc_phase kPhases[2][2] = {{ZC_PHASE_MIDDLE, ZC_PHASE_LAST}, {ZC_PHASE_FIRST, ZC_PHASE_ONLY}};
  Adam adam(options.steps);
  Report report;
  for (std::size_t step = 0; step < options.steps; ++step) {
    std::vector<float> losses(options.micro_batches);
    for (std::size_t pass = 0; pass < passes; ++pass) {
      const Batch batch = train.micro_batch(step * options.micro_batches + pass * ranks + rank);
      model.engine().begin("train", kPhases[pass == 0][pass + 1 == passes]);
      const torch::Tensor loss = torch::nll_loss(model.forward(batch.pictures), batch.labels);
      loss.backward();
      model.engine().end();
      network->zero_grad(true);
      const std::array own{loss.item<float>()};
      zc::all_gather(comm, own, std::span(losses).subspan(pass * ranks, ranks), {.traffic = kReport});
    }
    model.engine().update_begin();
    adam.step(model.owned());
    model.engine().publish();
    if (rank == 0) report.losses(step, losses);
  }

  // Every rank tests its share: a pass without gradients needs no other rank.
  model.engine().begin("test", ZC_PHASE_EVAL);
  const std::array own{count_correct(test, rank, ranks, [&](const torch::Tensor& x) { return model.forward(x); })};
  model.engine().end();
  std::array<std::int64_t, 1> correct{};
  zc::all_reduce(comm, own, correct, ZC_OP_SUM, {.traffic = kReport});
  if (rank != 0) return;
  report.finish(correct[0], test.count());
  print_engine(model.engine(), adam.moment_bytes());
}

void run(const Options& options) {
  at::set_num_threads(1);
  at::globalContext().setDeterministicAlgorithms(true, false);
  const Data train{read_pictures(options.data, "train")};
  const Pictures test = read_pictures(options.data, "t10k");
  (options.plain ? train_plain : train_sharded)(options, train, test);
}

}  // namespace
}  // namespace fashion

int main(int argc, char** argv) {
  try {
    fashion::run(fashion::parse_options(std::span(argv, static_cast<std::size_t>(argc))));
    return 0;
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "zc_libtorch: %s\n", error.what_without_backtrace());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "zc_libtorch: %s\n", error.what());
  }
  return 1;
}
