// request.h: the end of calls in flight.
#include "capi/guard.hpp"
#include "comm/requests.hpp"

namespace {

using namespace zerocomm;
using capi::guard;

void check(zc_request** request) { ZC_REQUIRE(request != nullptr, ZC_ARGUMENT, "request is NULL"); }

zc_status wait(zc_request*& request) {
  if (request == nullptr) return ZC_OK;
  const zc_status status = request->table->wait(*request);
  if (status != ZC_FORKED) request = nullptr;
  return status;
}

}  // namespace

zc_status zc_request_test(zc_request** request, int32_t* done) {
  return guard([&]() -> zc_status {
    check(request);
    ZC_REQUIRE(done != nullptr, ZC_ARGUMENT, "done is NULL");
    bool over = *request == nullptr;
    zc_status status = ZC_OK;
    if (!over) status = (*request)->table->test(**request, &over);
    if (over) *request = nullptr;
    *done = over ? 1 : 0;
    return status;
  });
}

zc_status zc_request_wait(zc_request** request) {
  return guard([&]() -> zc_status {
    check(request);
    return wait(*request);
  });
}

zc_status zc_request_wait_all(zc_request** requests, size_t count) {
  return guard([&]() -> zc_status {
    ZC_REQUIRE(requests != nullptr || count == 0, ZC_ARGUMENT, "requests is NULL");
    zc_status first = ZC_OK;
    std::string text;
    for (size_t i = 0; i < count; ++i) {
      const zc_status status = wait(requests[i]);
      if (status == ZC_OK || first != ZC_OK) continue;
      first = status;
      text = zc_last_error();
    }
    return first == ZC_OK ? ZC_OK : record_error(first, text.c_str());
  });
}

zc_status zc_request_cancel(zc_request** request) {
  return guard([&]() -> zc_status {
    check(request);
    ZC_REQUIRE(*request != nullptr, ZC_ARGUMENT, "there is no request to cancel");
    const zc_status status = (*request)->table->cancel(**request);
    if (status == ZC_OK) *request = nullptr;
    return status;
  });
}
