// fetcher.h: the parameters of an engine alone.
#include "capi/guard.hpp"
#include "capi/handles_engine.hpp"
#include "capi/handles_layout.hpp"
#include "engine/engine.hpp"

#include <zerocomm/fetcher.h>

#include <memory>

namespace {

using namespace zerocomm;
using capi::check_stream;
using capi::guard;

template <class Handle>
Handle& checked(Handle* fetcher) {
  return capi::checked_handle(fetcher, "fetcher");
}

zc_zero_config as_engine(const zc_fetcher_config& config) {
  zc_zero_config result{};
  result.struct_size = sizeof result;
  result.budget_bytes = config.budget_bytes;
  result.max_held_bytes = config.max_held_bytes;
  result.prefetch = config.prefetch;
  result.drop_released = config.drop_released;
  result.poison = config.poison;
  result.deadline_ns = config.deadline_ns;
  result.gather_allocator = config.gather_allocator;
  result.shared_views = config.shared_views;
  return result;
}

}  // namespace

zc_status zc_fetcher_create(zc_comm* comm, const zc_layout* layout, const zc_fetcher_config* config,
                            zc_fetcher** fetcher) {
  return guard([&]() -> zc_status {
    ZC_REQUIRE(comm != nullptr && layout != nullptr && fetcher != nullptr, ZC_ARGUMENT,
               "comm, layout or fetcher is NULL");
    const zc_fetcher_config mine = capi::read_struct(config, "zc_fetcher_config");
    *fetcher =
        std::make_unique<zc_fetcher>(comm, layout->value, engine::complete_config(as_engine(mine), engine::kFetcher),
                                     engine::kFetcher, mine.shards)
            .release();
    return ZC_OK;
  });
}

zc_status zc_fetcher_destroy(zc_fetcher* fetcher) {
  if (fetcher == nullptr) return ZC_OK;
  return guard([&] {
    delete &checked(fetcher);
    return ZC_OK;
  });
}

zc_status zc_fetcher_begin(zc_fetcher* fetcher, const char* pass) {
  return guard([&] { return checked(fetcher).noted("fetcher begin").begin(pass, ZC_PHASE_EVAL); });
}

zc_status zc_fetcher_acquire(zc_fetcher* fetcher, size_t unit, const void** tensors, size_t tensor_capacity,
                             void* stream) {
  return guard([&] {
    check_stream(stream);
    return checked(fetcher).noted("fetcher acquire", unit).acquire(unit, tensors, tensor_capacity);
  });
}

zc_status zc_fetcher_release(zc_fetcher* fetcher, size_t unit, void* stream) {
  return guard([&] {
    check_stream(stream);
    return checked(fetcher).release(unit);
  });
}

zc_status zc_fetcher_prefetch(zc_fetcher* fetcher, size_t unit) {
  return guard([&] { return checked(fetcher).prefetch(unit); });
}

zc_status zc_fetcher_end(zc_fetcher* fetcher) {
  return guard([&] { return checked(fetcher).noted("fetcher end").end(); });
}

zc_status zc_fetcher_shard(const zc_fetcher* fetcher, size_t buffer, void** shard, size_t* count) {
  return guard([&] { return checked(fetcher).state(ZC_STATE_PARAMETER, buffer, shard, count); });
}

zc_status zc_fetcher_update_begin(zc_fetcher* fetcher) {
  return guard([&] { return checked(fetcher).noted("fetcher update").update_begin(); });
}

zc_status zc_fetcher_publish(zc_fetcher* fetcher, void* stream) {
  return guard([&] {
    check_stream(stream);
    return checked(fetcher).noted("fetcher publish").publish();
  });
}

zc_status zc_fetcher_publish_unchanged(zc_fetcher* fetcher) {
  return guard([&] { return checked(fetcher).noted("fetcher unchanged").publish_unchanged(); });
}

zc_status zc_fetcher_get_stats(const zc_fetcher* fetcher, zc_fetcher_stats* stats) {
  return guard([&] {
    const zc_zero_stats all = checked(fetcher).stats();
    zc_fetcher_stats mine{};
    mine.hits = all.hits;
    mine.late_hits = all.late_hits;
    mine.misses = all.misses;
    mine.prefetches = all.prefetches;
    mine.prefetches_wasted = all.prefetches_wasted;
    mine.evictions = all.evictions;
    mine.gathered_peak_bytes = all.gathered_peak_bytes;
    mine.budget_bytes = all.budget_bytes;
    mine.generation = all.generation;
    mine.gather_logical_bytes = all.gather_logical_bytes;
    mine.views = all.views;
    capi::write_struct(mine, stats, "zc_fetcher_stats");
    return ZC_OK;
  });
}

zc_status zc_fetcher_get_ledger(const zc_fetcher* fetcher, zc_fetcher_ledger* ledger) {
  return guard([&] {
    const auto& checked_fetcher = checked(fetcher);
    const zc_zero_ledger all = checked_fetcher.ledger();
    zc_fetcher_ledger mine{};
    mine.parameter_bytes = all.parameter_bytes;
    mine.gather_bytes = all.gather_bytes;
    mine.control_bytes = all.control_bytes;
    mine.total_bytes = all.total_bytes;
    mine.caller_parameter_bytes = checked_fetcher.caller_parameter_bytes();
    mine.caller_gather_bytes = all.caller_gather_bytes;
    capi::write_struct(mine, ledger, "zc_fetcher_ledger");
    return ZC_OK;
  });
}
