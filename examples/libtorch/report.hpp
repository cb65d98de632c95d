// What a training prints: the same lines whoever ran it.
#pragma once

#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

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

}  // namespace fashion
