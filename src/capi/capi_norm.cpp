// norm.h: exact sums of squares.
#include "base/float_env.hpp"
#include "capi/guard.hpp"
#include "device/exact_sum.hpp"

#include <zerocomm/norm.h>

#include <cmath>

using namespace zerocomm;

static_assert(sizeof(zc_exact_sum) == sizeof(device::ExactSum), "the public words are the sum itself");

zc_status zc_exact_sum_add_squares(zc_exact_sum* sum, const void* elements, size_t count, zc_dtype dtype) {
  return capi::guard([&]() -> zc_status {
    ZC_REQUIRE(sum != nullptr && (elements != nullptr || count == 0), ZC_ARGUMENT, "sum or elements is NULL");
    const DefaultFloatEnv environment;
    device::ExactSum exact;
    std::memcpy(static_cast<void*>(&exact), sum, sizeof exact);
    ZC_TRY(device::add_squares(exact, dtype, elements, count));
    std::memcpy(sum, &exact, sizeof exact);
    return ZC_OK;
  });
}

zc_status zc_exact_sum_round(const zc_exact_sum* sum, zc_norm* norm) {
  return capi::guard([&]() -> zc_status {
    ZC_REQUIRE(sum != nullptr, ZC_ARGUMENT, "sum is NULL");
    const DefaultFloatEnv environment;
    device::ExactSum exact;
    std::memcpy(static_cast<void*>(&exact), sum, sizeof exact);
    zc_norm mine{};
    mine.sum_squares = exact.round();
    mine.norm = std::sqrt(mine.sum_squares);
    mine.nan_count = exact.nan_count;
    mine.inf_count = exact.inf_count;
    capi::write_struct(mine, norm, "zc_norm");
    return ZC_OK;
  });
}
