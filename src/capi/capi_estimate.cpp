// estimate.h: reads the caller's structs, calls src/shard.
#include "capi/guard.hpp"
#include "capi/handles_layout.hpp"
#include "shard/estimate.hpp"

namespace shard = zerocomm::shard;
using zerocomm::capi::guard;
using zerocomm::capi::read_struct;
using zerocomm::capi::write_struct;

zc_status zc_estimate_layout(const zc_layout* layout, int32_t rank, const zc_estimate_config* config,
                             zc_estimate* estimate) {
  return guard([&] {
    ZC_REQUIRE(layout != nullptr, ZC_ARGUMENT, "the layout is NULL");
    const zc_estimate_config mine = read_struct(config, "zc_estimate_config");
    write_struct(shard::estimate_layout(layout->value, rank, mine), estimate, "zc_estimate");
    return ZC_OK;
  });
}

zc_status zc_estimate_count(size_t parameter_count, int32_t ranks, zc_stage stage, zc_dtype parameter_dtype,
                            const zc_estimate_config* config, zc_estimate* estimate) {
  return guard([&] {
    const zc_estimate_config mine = read_struct(config, "zc_estimate_config");
    write_struct(shard::estimate_count(parameter_count, ranks, stage, parameter_dtype, mine), estimate, "zc_estimate");
    return ZC_OK;
  });
}
