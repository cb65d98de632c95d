// Handles of engines and of their parts: what every call checks first.
#pragma once

#include "base/check.hpp"

#include <zerocomm/zero.h>

namespace zerocomm::capi {

// `object` says in texts what the handle is: "engine", "reducer", "fetcher".
template <class Handle>
Handle& checked_handle(Handle* handle, const char* object) {
  ZC_REQUIRE(handle != nullptr, ZC_ARGUMENT, "the %s is NULL", object);
  ZC_REQUIRE(handle->in_this_process(), ZC_FORKED, "this %s belongs to the parent of this process", object);
  return *handle;
}

inline void check_stream(const void* stream) {
  ZC_REQUIRE(stream == nullptr, ZC_UNSUPPORTED, "a stream was given, and this library was built for host memory only");
}

}  // namespace zerocomm::capi
