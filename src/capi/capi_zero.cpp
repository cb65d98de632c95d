// zero.h: the engine.
#include "capi/guard.hpp"
#include "capi/handles_engine.hpp"
#include "capi/handles_layout.hpp"
#include "engine/engine.hpp"

#include <zerocomm/zero.h>

#include <memory>

namespace {

using namespace zerocomm;
using capi::check_stream;
using capi::guard;

template <class Handle>
Handle& checked(Handle* zero) {
  return capi::checked_handle(zero, "engine");
}

}  // namespace

zc_status zc_zero_create(zc_comm* comm, const zc_layout* layout, const zc_zero_config* config, zc_zero** zero) {
  return guard([&]() -> zc_status {
    ZC_REQUIRE(comm != nullptr && layout != nullptr && zero != nullptr, ZC_ARGUMENT, "comm, layout or zero is NULL");
    *zero = std::make_unique<zc_zero>(comm, layout->value,
                                      engine::complete_config(capi::read_struct(config, "zc_zero_config")))
                .release();
    return ZC_OK;
  });
}

zc_status zc_zero_destroy(zc_zero* zero) {
  if (zero == nullptr) return ZC_OK;
  return guard([&] {
    delete &checked(zero);  // in a forked child nothing is touched: threads of the parent may be inside
    return ZC_OK;
  });
}

zc_status zc_zero_load(zc_zero* zero, size_t unit, const void* const* full, zc_dtype dtype, int32_t root) {
  return guard([&] { return checked(zero).load(unit, full, dtype, root); });
}

zc_status zc_zero_begin(zc_zero* zero, const char* pass, zc_phase phase) {
  return guard([&] { return checked(zero).noted("zero begin").begin(pass, phase); });
}

zc_status zc_zero_acquire(zc_zero* zero, size_t unit, const void** tensors, size_t tensor_capacity, void* stream) {
  return guard([&] {
    check_stream(stream);
    return checked(zero).noted("zero acquire", unit).acquire(unit, tensors, tensor_capacity);
  });
}

zc_status zc_zero_release(zc_zero* zero, size_t unit, void* stream) {
  return guard([&] {
    check_stream(stream);
    return checked(zero).release(unit);
  });
}

zc_status zc_zero_prefetch(zc_zero* zero, size_t unit) {
  return guard([&] { return checked(zero).prefetch(unit); });
}

zc_status zc_zero_grad_ready(zc_zero* zero, size_t use, const void* gradient, void* stream) {
  return guard([&] {
    check_stream(stream);
    return checked(zero).noted("zero grad_ready", use).grad_ready(use, gradient);
  });
}

zc_status zc_zero_grad_absent(zc_zero* zero, size_t use) {
  return guard([&] { return checked(zero).noted("zero grad_absent", use).grad_absent(use); });
}

zc_status zc_zero_grad_buffer(zc_zero* zero, size_t use, void** gradient) {
  return guard([&] { return checked(zero).grad_buffer(use, gradient); });
}

zc_status zc_zero_end(zc_zero* zero) {
  return guard([&] { return checked(zero).noted("zero end").end(); });
}

zc_status zc_zero_norm(zc_zero* zero, zc_norm* norm) {
  return guard([&] { return checked(zero).noted("zero norm").norm(norm); });
}

zc_status zc_zero_scale(zc_zero* zero, double factor) {
  return guard([&] { return checked(zero).scale(factor); });
}

zc_status zc_zero_update_begin(zc_zero* zero) {
  return guard([&] { return checked(zero).noted("zero update").update_begin(); });
}

zc_status zc_zero_cast(zc_zero* zero) {
  return guard([&] { return checked(zero).cast(); });
}

zc_status zc_zero_publish(zc_zero* zero, void* stream) {
  return guard([&] {
    check_stream(stream);
    return checked(zero).noted("zero publish").publish();
  });
}

zc_status zc_zero_publish_unchanged(zc_zero* zero) {
  return guard([&] { return checked(zero).noted("zero unchanged").publish_unchanged(); });
}

zc_status zc_zero_pieces(const zc_zero* zero, const zc_zero_piece** pieces, size_t* piece_count, size_t* state_count) {
  return guard([&] { return checked(zero).pieces(pieces, piece_count, state_count); });
}

zc_status zc_zero_state(const zc_zero* zero, zc_state state, size_t buffer, void** shard, size_t* count) {
  return guard([&] { return checked(zero).state(state, buffer, shard, count); });
}

zc_status zc_zero_export(zc_zero* zero, size_t tensor, zc_state state, void* destination) {
  return guard([&] { return checked(zero).export_tensor(tensor, state, destination); });
}

zc_status zc_zero_blockers(const zc_zero* zero, size_t bucket, int32_t rank, size_t* uses, size_t capacity,
                           size_t* count) {
  return guard([&] { return checked(zero).blockers(bucket, rank, uses, capacity, count); });
}

zc_status zc_zero_get_stats(const zc_zero* zero, zc_zero_stats* stats) {
  return guard([&] {
    capi::write_struct(checked(zero).stats(), stats, "zc_zero_stats");
    return ZC_OK;
  });
}

zc_status zc_zero_get_ledger(const zc_zero* zero, zc_zero_ledger* ledger) {
  return guard([&] {
    capi::write_struct(checked(zero).ledger(), ledger, "zc_zero_ledger");
    return ZC_OK;
  });
}
