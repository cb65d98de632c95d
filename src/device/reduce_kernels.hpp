// The one-pass reduction kernel, written once for all element types and operations, and compiled for every level.
//
// A group of a few vectors is reduced over all inputs in registers and then stored into all outputs, so all inputs of a
// group are read before any of it is stored; that is why an output may be one of the inputs.
#pragma once

#include "device/kernels.hpp"
#include "device/vector_element.hpp"
#include "device/vector_ops.hpp"

namespace zerocomm::device::ZC_LEVEL {

template <class In, class Out, class Op>
class Reduction {
  using Value = typename In::Value;
  using State = typename Op::State;
  static constexpr std::size_t kParts = In::kParts;
  static constexpr std::size_t kElements = In::kElements;  // of the smallest step
  static_assert(kParts == Out::kParts && kElements == Out::kElements && sizeof(Value) == sizeof(typename Out::Value));
  static constexpr std::size_t kSteps = 4 / kParts;  // of a group: four vectors of state

 public:
  static constexpr std::size_t kGroup = kSteps * kElements;
  static constexpr std::size_t kChunk = kChunkBytes / sizeof(Value);
  static_assert(kChunk % kGroup == 0 && sizeof(typename In::Stored) <= sizeof(Value));

  static void run(const ReducePass& pass, std::size_t i, std::size_t end) noexcept {
    const Local local{static_cast<const State*>(pass.before), static_cast<State*>(pass.after),
                      static_cast<Value>(pass.premul), static_cast<Value>(pass.divisor), pass};
    for (; i + kGroup <= end; i += kGroup) reduce_group<kSteps, true>(local, i, kGroup);
    if constexpr (!kPartsAreFast)
      for (; i + kElements <= end; i += kElements) reduce_group<1, true>(local, i, kElements);
    for (; i < end; i += kElements) reduce_group<1, false>(local, i, lesser(kElements, end - i));
  }

 private:
  // A copy, which no store to an output can change.
  struct Local {
    const State* before;
    State* after;
    Value premul, divisor;
    ReducePass pass;
  };

  // A group of whole vectors, or one step of `count` elements.
  template <std::size_t kN, bool kWhole>
  [[gnu::always_inline]] static void load_elements(const void* input, std::size_t i, std::size_t count,
                                                   Vec<Value>* values) noexcept {
    const auto* from = static_cast<const typename In::Stored*>(input) + i;
    for (std::size_t s = 0; s < kN; ++s) {
      if constexpr (kWhole)
        In::unpack(load<In::kRawBytes>(from + s * kElements), values + s * kParts);
      else
        In::unpack(load_part<In::kRawBytes>(from, count), values);
    }
  }

  template <std::size_t kN, bool kWhole>
  [[gnu::always_inline]] static void reduce_group(const Local& local, std::size_t i, std::size_t count) noexcept {
    constexpr std::size_t kVectors = kN * kParts;
    const ReducePass& pass = local.pass;
    Vec<State> state[kVectors];
    Vec<Value> x[kVectors];
    std::size_t rank = 0;
    if (local.before == nullptr) {
      load_elements<kN, kWhole>(pass.inputs[0], i, count, x);
      for (std::size_t v = 0; v < kVectors; ++v) state[v] = Op::first(x[v], local.premul);
      rank = 1;
    } else {
      for (std::size_t v = 0; v < kVectors; ++v) state[v] = load<kVectorBytes>(local.before + i + v * kLanes<State>);
    }
    for (; rank < pass.input_count; ++rank) {
      load_elements<kN, kWhole>(pass.inputs[rank], i, count, x);
      for (std::size_t v = 0; v < kVectors; ++v) state[v] = Op::next(state[v], x[v], local.premul);
    }
    if (local.after != nullptr) {
      for (std::size_t v = 0; v < kVectors; ++v) store(local.after + i + v * kLanes<State>, state[v]);
      return;
    }
    for (std::size_t v = 0; v < kVectors; ++v) x[v] = Op::last(state[v]);
    if (pass.accumulate)
      add_and_store<kN, kWhole>(local, i + pass.output_offset, count, x);
    else
      store_to_all<kN, kWhole>(local, i + pass.output_offset, count, x);
  }

  [[gnu::always_inline]] static Vec<Value> divide(Vec<Value> x, Value divisor) noexcept {
    if constexpr (TypeOf<Value>::kIsFloat)
      if (divisor != 0) return x / divisor;
    return x;
  }

  template <bool kWhole, class Raw>
  [[gnu::always_inline]] static void store_raw(const ReducePass& pass, typename Out::Stored* to, std::size_t count,
                                               Raw raw) noexcept {
    if constexpr (!kWhole)
      store_part(to, raw, count);
    else if (pass.streaming && is_aligned<Out::kRawBytes>(to))
      stream(to, raw);
    else
      store(to, raw);
  }

  template <std::size_t kN, bool kWhole>
  [[gnu::always_inline]] static void store_to_all(const Local& local, std::size_t i, std::size_t count,
                                                  Vec<Value>* result) noexcept {
    const ReducePass& pass = local.pass;
    typename Out::Raw raw[kN];
    for (std::size_t v = 0; v < kN * kParts; ++v) result[v] = divide(result[v], local.divisor);
    for (std::size_t s = 0; s < kN; ++s) raw[s] = Out::pack(result + s * kParts);
    for (std::size_t k = 0; k < pass.output_count; ++k) {
      auto* to = static_cast<typename Out::Stored*>(pass.outputs[k]) + i;
      for (std::size_t s = 0; s < kN; ++s) store_raw<kWhole>(pass, to + s * kElements, count, raw[s]);
    }
  }

  // What an output holds comes first: held + result, then the division, then the one rounding.
  template <std::size_t kN, bool kWhole>
  [[gnu::always_inline]] static void add_and_store(const Local& local, std::size_t i, std::size_t count,
                                                   const Vec<Value>* result) noexcept {
    const ReducePass& pass = local.pass;
    for (std::size_t k = 0; k < pass.output_count; ++k) {
      auto* to = static_cast<typename Out::Stored*>(pass.outputs[k]) + i;
      for (std::size_t s = 0; s < kN; ++s, to += kElements) {
        Vec<Value> sum[kParts];
        if constexpr (kWhole)
          Out::unpack(load<Out::kRawBytes>(to), sum);
        else
          Out::unpack(load_part<Out::kRawBytes>(to, count), sum);
        for (std::size_t v = 0; v < kParts; ++v)
          sum[v] = divide(plus<Value>(sum[v], result[s * kParts + v]), local.divisor);
        store_raw<kWhole>(pass, to, count, Out::pack(sum));
      }
    }
  }
};

template <class In, class Out, class Op, bool kAverage>
constexpr ReduceShape kShape{Reduction<In, Out, Op>::run,    sizeof(typename In::Stored),
                             sizeof(typename Out::Stored),   Reduction<In, Out, Op>::kGroup,
                             Reduction<In, Out, Op>::kChunk, kAverage};

template <class In, class Out, class Op, bool kAverage>
void reduce_to_one(const void* const* inputs, std::size_t input_count, void* out, std::size_t count,
                   const ReduceArgs& args) noexcept {
  run_reduction(kShape<In, Out, Op, kAverage>, inputs, input_count, &out, 1, count, args);
}

template <class In, class Out, class Op, bool kAverage>
void reduce_to_many(const void* const* inputs, std::size_t input_count, void* const* outputs, std::size_t output_count,
                    std::size_t count, const ReduceArgs& args) noexcept {
  run_reduction(kShape<In, Out, Op, kAverage>, inputs, input_count, outputs, output_count, count, args);
}

template <class In, class Out, class Op, bool kAverage = false>
constexpr ReduceKernels kernels_of() noexcept {
  return {reduce_to_one<In, Out, Op, kAverage>, reduce_to_many<In, Out, Op, kAverage>};
}

// Every operation that the type of `In` has; no kernel for the others.
template <class In, class Out>
ReduceKernels kernels_for_op(zc_op op) noexcept {
  using Value = typename In::Value;
  switch (op) {
    case ZC_OP_SUM:
      return kernels_of<In, Out, SumOp<Value>>();
    case ZC_OP_MIN:
      return kernels_of<In, Out, ExtremeOp<Value, false>>();
    case ZC_OP_MAX:
      return kernels_of<In, Out, ExtremeOp<Value, true>>();
    case ZC_OP_PROD:
      return kernels_of<In, Out, ProdOp<Value>>();
    default:
      break;
  }
  if constexpr (TypeOf<Value>::kIsFloat) {
    if (op == ZC_OP_AVG) return kernels_of<In, Out, SumOp<Value>, true>();
    if (op == ZC_OP_PREMUL_SUM) return kernels_of<In, Out, PremulSumOp<Value>>();
  }
  return {};
}

}  // namespace zerocomm::device::ZC_LEVEL
