// reducer.h: the gradients of an engine alone.
#include "capi/guard.hpp"
#include "capi/handles_engine.hpp"
#include "capi/handles_layout.hpp"
#include "engine/engine.hpp"

#include <zerocomm/reducer.h>

#include <memory>

namespace {

using namespace zerocomm;
using capi::check_stream;
using capi::guard;

template <class Handle>
Handle& checked(Handle* reducer) {
  return capi::checked_handle(reducer, "reducer");
}

zc_zero_config as_engine(const zc_reducer_config& config) {
  zc_zero_config result{};
  result.struct_size = sizeof result;
  result.gradient_slots = config.gradient_slots;
  result.micro_steps = config.micro_steps;
  result.accumulation = config.accumulation;
  result.absent = config.absent;
  result.launch = config.launch;
  result.slices = config.slices;
  result.poison = config.poison;
  result.gradient_divisor = config.gradient_divisor;
  result.deadline_ns = config.deadline_ns;
  result.pre_reduce = config.pre_reduce;
  result.pre_reduce_context = config.pre_reduce_context;
  return result;
}

}  // namespace

zc_status zc_reducer_create(zc_comm* comm, const zc_layout* layout, const zc_reducer_config* config,
                            zc_reducer** reducer) {
  return guard([&]() -> zc_status {
    ZC_REQUIRE(comm != nullptr && layout != nullptr && reducer != nullptr, ZC_ARGUMENT,
               "comm, layout or reducer is NULL");
    const zc_zero_config options = as_engine(capi::read_struct(config, "zc_reducer_config"));
    *reducer = std::make_unique<zc_reducer>(comm, layout->value, engine::complete_config(options, engine::kReducer),
                                            engine::kReducer)
                   .release();
    return ZC_OK;
  });
}

zc_status zc_reducer_destroy(zc_reducer* reducer) {
  if (reducer == nullptr) return ZC_OK;
  return guard([&] {
    delete &checked(reducer);
    return ZC_OK;
  });
}

zc_status zc_reducer_begin(zc_reducer* reducer, zc_phase phase) {
  return guard([&] {
    ZC_REQUIRE(phase != ZC_PHASE_EVAL, ZC_ARGUMENT, "a pass with phase EVAL has no gradients to reduce");
    return checked(reducer).noted("reducer begin").begin("gradients", phase);
  });
}

zc_status zc_reducer_grad_ready(zc_reducer* reducer, size_t use, const void* gradient, void* stream) {
  return guard([&] {
    check_stream(stream);
    return checked(reducer).noted("reducer grad_ready", use).grad_ready(use, gradient);
  });
}

zc_status zc_reducer_grad_absent(zc_reducer* reducer, size_t use) {
  return guard([&] { return checked(reducer).noted("reducer grad_absent", use).grad_absent(use); });
}

zc_status zc_reducer_end(zc_reducer* reducer) {
  return guard([&] { return checked(reducer).noted("reducer end").end(); });
}

zc_status zc_reducer_output(const zc_reducer* reducer, size_t buffer, float** gradients, size_t* count) {
  return guard([&] { return checked(reducer).reduced(buffer, gradients, count); });
}

zc_status zc_reducer_pieces(const zc_reducer* reducer, const zc_zero_piece** pieces, size_t* piece_count,
                            size_t* state_count) {
  return guard([&] { return checked(reducer).pieces(pieces, piece_count, state_count); });
}

zc_status zc_reducer_norm(zc_reducer* reducer, zc_norm* norm) {
  return guard([&] { return checked(reducer).noted("reducer norm").norm(norm); });
}

zc_status zc_reducer_scale(zc_reducer* reducer, double factor) {
  return guard([&] { return checked(reducer).scale(factor); });
}

zc_status zc_reducer_blockers(const zc_reducer* reducer, size_t bucket, int32_t rank, size_t* uses, size_t capacity,
                              size_t* count) {
  return guard([&] { return checked(reducer).blockers(bucket, rank, uses, capacity, count); });
}

zc_status zc_reducer_get_stats(const zc_reducer* reducer, zc_reducer_stats* stats) {
  return guard([&] {
    const zc_zero_stats all = checked(reducer).stats();
    zc_reducer_stats mine{};
    mine.buckets_reduced = all.buckets_reduced;
    mine.buckets_before_end = all.buckets_before_end;
    mine.buckets_padding_bytes = all.buckets_padding_bytes;
    mine.slices_own = all.slices_own;
    mine.slices_helped = all.slices_helped;
    mine.slot_peak_bytes = all.budget_peak_bytes;
    mine.reduce_logical_bytes = all.reduce_logical_bytes;
    capi::write_struct(mine, stats, "zc_reducer_stats");
    return ZC_OK;
  });
}

zc_status zc_reducer_get_ledger(const zc_reducer* reducer, zc_reducer_ledger* ledger) {
  return guard([&] {
    const zc_zero_ledger all = checked(reducer).ledger();
    zc_reducer_ledger mine{};
    mine.gradient_bytes = all.gradient_bytes;
    mine.slot_bytes = all.slot_bytes;
    mine.control_bytes = all.control_bytes;
    mine.total_bytes = all.total_bytes;
    capi::write_struct(mine, ledger, "zc_reducer_ledger");
    return ZC_OK;
  });
}
