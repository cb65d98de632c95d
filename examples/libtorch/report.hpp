// What a training prints: lines that are the same whoever ran it, and what an engine holds and did.
#pragma once

#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <zerocomm/zerocomm.hpp>

namespace fashion {

class Report {
 public:
  // The losses of a step's micro-batches, in order.
  void losses(std::size_t step, std::span<const float> all) {
    double sum = 0;
    for (const float loss : all) {
      add_to_hash(loss);
      sum += loss;
    }
    if (step % 20 == 0) std::printf("step %3zu  loss %.6f\n", step, sum / static_cast<double>(all.size()));
  }

  void finish(std::int64_t correct, std::size_t pictures) const {
    std::printf("losses %016" PRIx64 "\ncorrect %" PRId64 " of %zu\n", hash_, correct, pictures);
  }

 private:
  // FNV-1a over the bits of all losses: one bit of one loss changes it.
  void add_to_hash(float loss) {
    std::array<unsigned char, sizeof loss> bytes{};
    std::memcpy(bytes.data(), &loss, sizeof loss);
    for (const unsigned char byte : bytes) hash_ = (hash_ ^ byte) * 0x100000001b3U;
  }

  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

// What a rank holds for a model, LibTorch's activations and its gradients of the present pass apart: at every stage the
// latter are as large as the parameters. Memory of the engine is all there from its creation on.
inline void print_engine(const zc::Zero& zero, std::size_t moment_bytes) {
  const zc_zero_ledger held = zero.ledger();
  const zc_zero_stats did = zero.stats();
  std::printf(
      "bytes %zu: parameters %zu, gradients %zu, moments %zu, gathered units %zu, gradients in flight %zu, "
      "control %zu\n",
      held.total_bytes + moment_bytes, held.parameter_bytes, held.gradient_bytes, moment_bytes, held.gather_bytes,
      held.slot_bytes, held.control_bytes);
  std::printf("gathered peak %" PRIu64 ", budget peak %" PRIu64 " of %" PRIu64 "\n", did.gathered_peak_bytes,
              did.budget_peak_bytes, did.budget_bytes);
  std::printf("units prefetched %" PRIu64 ", used %" PRIu64 " times and missing %" PRIu64 " times; buckets %" PRIu64
              ", reduced during backward %" PRIu64 "\n",
              did.prefetches, did.hits + did.late_hits + did.misses, did.misses, did.buckets_reduced,
              did.buckets_before_end);
}

}  // namespace fashion
