// Trains a small network on Fashion-MNIST with LibTorch and ZeRO:
//
//   zc run -n 2 -- zc_fashion --stage 3
//
// A step takes `--micro` micro-batches, shared out over the ranks in rank order, so the losses do not depend on the
// number of ranks, bit for bit. Rank 0 prints a hash of all losses and the accuracy on the test images.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fashion.hpp"
#include "sharded.hpp"

namespace {

struct Options {
  zc_stage stage = ZC_STAGE_3;
  int steps = 200, micro = 2;
  bool verbose = false;
  std::string data = "/usr/share/datasets/fashion-mnist";
};

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--verbose") {
      options.verbose = true;
      continue;
    }
    if (i + 1 == argc) throw std::runtime_error(name + " needs a value");
    const std::string value = argv[++i];
    constexpr zc_stage kStages[] = {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3};
    if (name == "--stage" && value.size() == 1 && value[0] >= '0' && value[0] <= '3')
      options.stage = kStages[value[0] - '0'];
    else if (name == "--steps" && std::atoi(value.c_str()) > 0)
      options.steps = std::atoi(value.c_str());
    else if (name == "--micro" && std::atoi(value.c_str()) > 0)
      options.micro = std::atoi(value.c_str());
    else if (name == "--data")
      options.data = value;
    else
      throw std::runtime_error(name + " " + value +
                               ": zc_fashion [--stage 0..3] [--steps N] [--micro N] [--data DIR] [--verbose]");
  }
  return options;
}

std::vector<torch::nn::Sequential> make_units() {
  using namespace torch::nn;
  torch::manual_seed(1);  // every rank makes the same numbers, and the library compares them
  std::vector<Sequential> units;
  units.push_back(Sequential(Linear(784, 128), ReLU()));
  units.push_back(Sequential(Linear(128, 96), ReLU()));
  units.push_back(Sequential(Linear(96, 64), ReLU()));
  units.push_back(Sequential(Linear(64, 10)));
  return units;
}

// AdamW on what this rank owns: it sees pieces, and neither padding nor ranks nor stages.
class AdamW {
 public:
  explicit AdamW(const zc::Zero& zero) : zero_(&zero), first_(zero.state_count()), second_(zero.state_count()) {}
  void step() {
    zero_->update_begin();
    ++steps_;
    const float mean = 1 - static_cast<float>(std::pow(0.9, steps_)),
                square = 1 - static_cast<float>(std::pow(0.999, steps_));
    for (const zc_zero_piece& piece : zero_->pieces())
      for (std::size_t i = 0; i < piece.count; ++i) {
        const float g = piece.gradient[i];
        float &m = first_[piece.state_offset + i], &v = second_[piece.state_offset + i];
        m = 0.9F * m + 0.1F * g;
        v = 0.999F * v + 0.001F * (g * g);
        piece.master[i] -= 3e-3F * (m / mean / (std::sqrt(v / square) + 1e-8F) + 0.01F * piece.master[i]);
      }
    zero_->publish();
  }

 private:
  const zc::Zero* zero_;
  std::vector<float> first_, second_;
  int steps_ = 0;
};

zc_phase phase_of(int pass, int passes) {
  if (passes == 1) return ZC_PHASE_ONLY;
  return pass == 0 ? ZC_PHASE_FIRST : pass + 1 == passes ? ZC_PHASE_LAST : ZC_PHASE_MIDDLE;
}

double accuracy(Sharded& model, const Fashion& test) {
  constexpr std::int64_t kRows = 1000;
  std::int64_t right = 0;
  for (std::int64_t first = 0; first < test.labels.size(0); first += kRows) {
    const Fashion batch = test.rows(first, std::min(kRows, test.labels.size(0) - first));
    model.begin("test", ZC_PHASE_EVAL);
    right += model.forward(batch.images).argmax(1).eq(batch.labels).sum().item<std::int64_t>();
    model.end();
  }
  return static_cast<double>(right) / static_cast<double>(test.labels.size(0));
}

void run(const Options& options) {
  constexpr std::int64_t kRows = 64;
  at::set_num_threads(1);
  const zc::Comm comm = zc::Comm::create();
  const int ranks = comm.size(), rank = comm.rank(), passes = options.micro / ranks;
  if (passes * ranks != options.micro)
    throw std::runtime_error(std::to_string(options.micro) + " micro-batches cannot be shared out over " +
                             std::to_string(ranks) + " ranks");
  const Fashion train = Fashion::read(options.data, "train");
  Sharded model(comm, make_units(), options.stage, passes);
  AdamW optimizer(model.engine());
  std::vector<float> losses(static_cast<std::size_t>(passes)), all(losses.size() * static_cast<std::size_t>(ranks));
  std::uint64_t hash = 0xcbf29ce484222325;
  for (int step = 0; step < options.steps; ++step) {
    for (int pass = 0; pass < passes; ++pass) {
      const int micro = rank * passes + pass;
      const Fashion batch = train.rows((std::int64_t{step} * options.micro + micro) * kRows, kRows);
      model.begin("train", phase_of(pass, passes));
      const torch::Tensor logits = model.forward(batch.images).requires_grad_(true);
      const torch::Tensor loss = torch::nn::functional::cross_entropy(logits, batch.labels);
      loss.backward();
      model.backward(logits.grad());
      model.end();
      losses[static_cast<std::size_t>(pass)] = loss.item<float>();
    }
    optimizer.step();
    zc::gather_to_root(comm, losses, all, 0);
    if (rank != 0) continue;
    for (const float loss : all) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &loss, sizeof bits);
      hash = (hash ^ bits) * 0x100000001b3;
      if (options.verbose) std::printf("step %d loss %a\n", step, static_cast<double>(loss));
    }
  }
  if (rank == 0) {
    const double right = accuracy(model, Fashion::read(options.data, "t10k"));
    zc_zero_ledger ledger{};
    ledger.struct_size = sizeof ledger;
    zc::check(zc_zero_get_ledger(model.engine().get(), &ledger));
    std::printf("losses %016llx last %.4f accuracy %.4f bytes %zu\n", static_cast<unsigned long long>(hash),
                static_cast<double>(all.back()), right, ledger.total_bytes);
  }
  zc::barrier(comm);  // rank 0 reads the shards of all
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(read_options(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "zc_fashion: %s\n", error.what());
    return 1;
  }
}
