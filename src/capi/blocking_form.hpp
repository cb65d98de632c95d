// Options of calls that have the blocking, native form alone.
#pragma once

#include "capi/guard.hpp"
#include "comm/comm.hpp"

#include <zerocomm/coll.h>

namespace zerocomm::capi {

// Reads them. Throws Error: UNSUPPORTED for another form, ARGUMENT for a deadline that is none.
inline zc_coll_options read_blocking_form(const comm::Comm& comm, const zc_coll_options* options, const char* call) {
  const zc_coll_options mine = read_struct(options, "zc_coll_options");
  ZC_REQUIRE(mine.stream == nullptr, ZC_UNSUPPORTED,
             "rank %d: a stream was given, and this library was built for host memory only", comm.rank());
  ZC_REQUIRE(mine.deadline_ns >= 0, ZC_ARGUMENT, "rank %d: a collective waits for all ranks and cannot be polled",
             comm.rank());
  ZC_REQUIRE(mine.request == nullptr && mine.tag == 0 && mine.algorithm == nullptr && mine.schedule == nullptr,
             ZC_UNSUPPORTED, "rank %d: %s has the blocking, native form alone", comm.rank(), call);
  return mine;
}

}  // namespace zerocomm::capi
