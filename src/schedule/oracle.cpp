// Picks the accumulation type, unpacks bytes, runs the machine over values, packs the result.
#include "schedule/oracle.hpp"

#include "schedule/contract.hpp"
#include "schedule/machine.hpp"
#include "schedule/schedule_text.hpp"
#include "schedule/values.hpp"
#include "schedule/verify.hpp"

#include <cstring>

namespace zerocomm::schedule {
namespace {

bool is_f32_family(zc_dtype dtype) { return dtype == ZC_DTYPE_F32 || dtype == ZC_DTYPE_F16 || dtype == ZC_DTYPE_BF16; }

template <class Stored>
Stored load_as(const std::byte* from) {
  Stored value{};
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
T load(zc_dtype dtype, const std::byte* from) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == ZC_DTYPE_BF16) return to_float(load_as<BF16>(from));
    if (dtype == ZC_DTYPE_F16) return to_float(load_as<F16>(from));
  }
  return load_as<T>(from);
}

template <class T>
void store(zc_dtype dtype, T value, std::byte* to) {
  if constexpr (std::is_same_v<T, float>) {
    const std::uint16_t bits = dtype == ZC_DTYPE_BF16 ? bf16_from_float(value) : f16_from_float(value);
    if (dtype != ZC_DTYPE_F32) {
      std::memcpy(to, &bits, sizeof bits);
      return;
    }
  }
  std::memcpy(to, &value, sizeof value);
}

struct Call {
  const Schedule& schedule;
  const Partition& partition;
  zc_dtype input;
  zc_dtype output;
  std::span<const Bytes> inputs;

  std::size_t elements(ChunkRuns chunks) const {
    std::size_t sum = 0;
    for (std::uint32_t i = 0; i < chunks.runs; ++i)
      sum += partition.range(chunks.run(i).first, chunks.run(i).count).count;
    return sum;
  }
};

template <class T>
std::vector<Bytes> run(const Call& call, const Reduction<T>& reduction) {
  const Key& key = call.schedule.key;
  Values<T> values(call.schedule, reduction);
  const std::size_t in_bytes = zc_dtype_bytes(call.input), out_bytes = zc_dtype_bytes(call.output);
  for (std::uint32_t rank = 0; rank < key.ranks; ++rank) {
    const std::byte* from = call.inputs[rank].data();
    const ChunkRange range = input_chunks(key, rank);
    for (std::uint32_t c = range.first; c < range.first + range.count; ++c)
      for (std::size_t n = call.partition.range(c).count; n > 0; --n, from += in_bytes)
        values.input[rank][c].values.push_back(load<T>(call.input, from));
  }
  ZC_REQUIRE(run_schedule(call.schedule, values, kUnbounded).finished(), ZC_ARGUMENT, "the schedule never ends");

  std::vector<Bytes> outputs(key.ranks);
  for (std::uint32_t rank = 0; rank < key.ranks; ++rank) {
    const ChunkRuns chunks = output_chunks(key, rank);
    outputs[rank].resize(checked_mul(call.elements(chunks), out_bytes));
    std::byte* to = outputs[rank].data();
    for (std::uint32_t c = 0; c < key.chunks; ++c) {
      if (!chunks.contains(c)) continue;
      const std::vector<T>& chunk = values.output[rank][c].values;
      ZC_REQUIRE(chunk.size() == call.partition.range(c).count, ZC_ARGUMENT,
                 "the schedule leaves %zu elements in output[%u] of rank %u", chunk.size(), c, rank);
      for (const T value : chunk) store<T>(call.output, value, to), to += out_bytes;
    }
  }
  return outputs;
}

template <class T>
std::vector<Bytes> reduce(const Call& call, const Elements& elements) {
  Reduction<T> reduction{elements.op, T{}, call.output, call.schedule.key.ranks};
  if constexpr (std::is_integral_v<T>) {
    ZC_REQUIRE(elements.op != ZC_OP_AVG, ZC_UNSUPPORTED, "AVG of integers");
    // 2^digits and its negative are exact in double, the largest value itself need not be.
    const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
    const bool fits = elements.premul == std::trunc(elements.premul) && elements.premul < limit &&
                      elements.premul >= (std::is_signed_v<T> ? -limit : 0.0);
    ZC_REQUIRE(elements.op != ZC_OP_PREMUL_SUM || fits, ZC_UNSUPPORTED, "%s times %g", zc_dtype_name(call.input),
               elements.premul);
    if (elements.op == ZC_OP_PREMUL_SUM) reduction.premul = static_cast<T>(elements.premul);
  } else {
    reduction.premul = static_cast<T>(elements.premul);
  }
  return run(call, reduction);
}

void check_buffers(const Call& call) {
  const Key& key = call.schedule.key;
  ZC_REQUIRE(key.chunks == 0 || call.partition.chunks() == key.chunks, ZC_ARGUMENT,
             "a partition into %zu chunks for a schedule of %u", call.partition.chunks(), key.chunks);
  ZC_REQUIRE(call.inputs.size() == key.ranks, ZC_ARGUMENT, "%zu inputs for %u ranks", call.inputs.size(), key.ranks);
  for (std::uint32_t rank = 0; rank < key.ranks; ++rank) {
    const std::size_t wanted = checked_mul(call.elements({input_chunks(key, rank)}), zc_dtype_bytes(call.input));
    ZC_REQUIRE(call.inputs[rank].size() == wanted, ZC_ARGUMENT, "rank %u brings %zu bytes, not %zu", rank,
               call.inputs[rank].size(), wanted);
  }
}

}  // namespace

std::vector<Bytes> run_oracle(const Schedule& schedule, const Partition& partition, const Elements& elements,
                              std::span<const Bytes> inputs) {
  require_runnable(schedule);
  for (const RankSchedule& rank : schedule.ranks)
    for (const Lane& lane : rank.lanes)
      for (const Step& step : lane.steps)
        ZC_REQUIRE(step.codec == 0, ZC_UNSUPPORTED, "`%s`: values behind a codec are not known here",
                   step_text(step).c_str());
  const bool reduces = is_reduction(schedule.key.collective);
  const zc_dtype output = elements.output == ZC_DTYPE_NONE || !reduces ? elements.input : elements.output;
  const Call call{schedule, partition, elements.input, output, inputs};
  ZC_REQUIRE(zc_dtype_bytes(elements.input) > 0, ZC_ARGUMENT, "no element type");
  check_buffers(call);
  if (!reduces) {
    switch (zc_dtype_bytes(elements.input)) {
      case 1:
        return run<std::uint8_t>(call, {});
      case 2:
        return run<std::uint16_t>(call, {});
      case 4:
        return run<std::uint32_t>(call, {});
      default:
        return run<std::uint64_t>(call, {});
    }
  }
  ZC_REQUIRE(elements.op >= ZC_OP_SUM && elements.op <= ZC_OP_PREMUL_SUM, ZC_ARGUMENT, "no operation");
  ZC_REQUIRE(output == elements.input || (is_f32_family(output) && is_f32_family(elements.input)), ZC_UNSUPPORTED,
             "a reduction from %s to %s", zc_dtype_name(elements.input), zc_dtype_name(output));
  switch (elements.input) {
    case ZC_DTYPE_F64:
      return reduce<double>(call, elements);
    case ZC_DTYPE_F32:
    case ZC_DTYPE_F16:
    case ZC_DTYPE_BF16:
      return reduce<float>(call, elements);
    case ZC_DTYPE_I64:
      return reduce<std::int64_t>(call, elements);
    case ZC_DTYPE_I32:
      return reduce<std::int32_t>(call, elements);
    case ZC_DTYPE_U8:
      return reduce<std::uint8_t>(call, elements);
    case ZC_DTYPE_I8:
      return reduce<std::int8_t>(call, elements);
    default:
      throw Error(ZC_UNSUPPORTED, format("a reduction of %s", zc_dtype_name(elements.input)));
  }
}

}  // namespace zerocomm::schedule
