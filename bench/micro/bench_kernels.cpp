// How fast the kernels reduce and copy, for each level, way to store, type, number of inputs and size.
//
//   bench_kernels --benchmark_filter='reduce/bf16/.*/avx512' --benchmark_min_time=0.1
//
// bytes_per_second counts what is read and written, without the reads of lines before ordinary stores; items are output
// elements. Buffers are warm: what fits into a cache is there.
#include "device/copy.hpp"
#include "device/reduce.hpp"

#include <benchmark/benchmark.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace zerocomm::device;

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // of all buffers of one benchmark

// Buffers that each begin on a page; in huge pages where the system has them.
class Arena {
 public:
  Arena(std::size_t buffers, std::size_t bytes)
      : stride_((bytes + 2 * kPageBytes - 1) / kPageBytes * kPageBytes), mapped_bytes_(buffers * stride_) {
    base_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) throw std::runtime_error("no memory for the buffers");
    madvise(base_, mapped_bytes_, MADV_HUGEPAGE);
    std::memset(base_, 0, mapped_bytes_);
  }
  ~Arena() { munmap(base_, mapped_bytes_); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  void* buffer(std::size_t i) const { return static_cast<unsigned char*>(base_) + i * stride_; }

 private:
  std::size_t stride_, mapped_bytes_;
  void* base_ = nullptr;
};

struct Types {
  const char* name;
  zc_dtype in, out;
};
constexpr Types kTypes[] = {
    {"f32", ZC_DTYPE_F32, ZC_DTYPE_F32},          {"bf16", ZC_DTYPE_BF16, ZC_DTYPE_BF16},
    {"f16", ZC_DTYPE_F16, ZC_DTYPE_F16},          {"bf16_to_f32", ZC_DTYPE_BF16, ZC_DTYPE_F32},
    {"f32_to_bf16", ZC_DTYPE_F32, ZC_DTYPE_BF16}, {"f64", ZC_DTYPE_F64, ZC_DTYPE_F64},
    {"i32", ZC_DTYPE_I32, ZC_DTYPE_I32},
};
constexpr std::size_t kInputs[] = {1, 2, 4, 8, 17};
constexpr std::size_t kBytes[] = {16 << 10, 64 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20};  // of one input

std::string suffix(std::size_t bytes, Level level, Stores stores) {
  return "bytes:" + std::to_string(bytes) + "/" + level_name(level) +
         (stores == Stores::streaming ? "/streaming" : "/cached");
}

void reduce(benchmark::State& state, const Types& types, std::size_t inputs, std::size_t bytes, Level level,
            Stores stores) {
  const std::size_t count = bytes / zc_dtype_bytes(types.in), out_bytes = count * zc_dtype_bytes(types.out);
  const Arena arena(inputs + 1, std::max(bytes, out_bytes));
  std::vector<const void*> sources;
  for (std::size_t r = 0; r < inputs; ++r) sources.push_back(arena.buffer(r));
  const ReduceFn run = find_reduce(level, types.in, types.out, ZC_OP_SUM);
  ReduceArgs args;
  args.stores = stores;
  for (auto _ : state) run(sources.data(), inputs, arena.buffer(inputs), count, args);
  state.SetBytesProcessed(
      static_cast<std::int64_t>(static_cast<std::size_t>(state.iterations()) * (inputs * bytes + out_bytes)));
  state.SetItemsProcessed(static_cast<std::int64_t>(static_cast<std::size_t>(state.iterations()) * count));
}

void copy_to(benchmark::State& state, std::size_t outputs, std::size_t bytes, Level level, Stores stores) {
  const Arena arena(outputs + 1, bytes);
  std::vector<void*> destinations;
  for (std::size_t k = 0; k < outputs; ++k) destinations.push_back(arena.buffer(k));
  const CopyToManyFn run = find_copy_to_many(level);
  for (auto _ : state) run(arena.buffer(outputs), destinations.data(), outputs, bytes, stores);
  state.SetBytesProcessed(
      static_cast<std::int64_t>(static_cast<std::size_t>(state.iterations()) * (outputs + 1) * bytes));
}

void add_benchmarks(std::size_t bytes, Level level, Stores stores) {
  for (const Types& types : kTypes)
    for (const std::size_t inputs : kInputs) {
      if ((inputs + 2) * bytes > kMostBytes) continue;
      const std::string name = std::string("reduce/") + types.name + "/inputs:" + std::to_string(inputs) + "/";
      benchmark::RegisterBenchmark((name + suffix(bytes, level, stores)).c_str(), [=](benchmark::State& state) {
        reduce(state, types, inputs, bytes, level, stores);
      });
    }
  for (const std::size_t outputs : {std::size_t{1}, std::size_t{2}, std::size_t{4}})
    benchmark::RegisterBenchmark(
        ("copy/outputs:" + std::to_string(outputs) + "/" + suffix(bytes, level, stores)).c_str(),
        [=](benchmark::State& state) { copy_to(state, outputs, bytes, level, stores); });
}

}  // namespace

int main(int argc, char** argv) {
  for (const Level level : kLevels) {
    if (!has_level(level)) continue;
    for (const std::size_t bytes : kBytes)
      for (const Stores stores : {Stores::cached, Stores::streaming}) add_benchmarks(bytes, level, stores);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
