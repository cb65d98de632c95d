// The C boundary: the only place where exceptions become statuses, and where option structs of callers are read.
#pragma once

#include "base/check.hpp"

#include <zerocomm/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace zerocomm::capi {

// Runs `body`, which returns a zc_status or throws.
template <class Body>
zc_status guard(Body&& body) noexcept {
  try {
    return body();
  } catch (const Error& error) {
    return record_error(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(ZC_NO_MEMORY, "the system had no memory for the library's own bookkeeping");
  } catch (const std::exception& error) {
    return fail(ZC_INTERNAL, "unexpected: %s", error.what());
  }
}

// No struct of this interface will ever be larger: a size beyond it is a member that was not set.
inline constexpr std::size_t kMostStructBytes = 4096;

inline void check_struct_bytes(std::size_t bytes, const char* name) {
  ZC_REQUIRE(bytes >= sizeof(std::size_t) && bytes <= kMostStructBytes, ZC_ARGUMENT,
             "%s.struct_size is %zu; set it to sizeof(%s)", name, bytes, name);
}

// A deadline of an option struct: not negative, or ZC_POLL. Throws Error(ARGUMENT).
inline std::int64_t check_deadline(std::int64_t deadline_ns) {
  ZC_REQUIRE(deadline_ns >= 0 || deadline_ns == ZC_POLL, ZC_ARGUMENT,
             "deadline_ns is %lld; it is not negative, 0 for the default, or ZC_POLL",
             static_cast<long long>(deadline_ns));
  return deadline_ns;
}

// Reads a size-prefixed struct of a caller that may have been built with an older or newer header: members that the
// caller does not know take their defaults (zero); members that this library does not know must be zero.
// NULL gives all defaults. Throws Error(ARGUMENT) with the offset of the first unknown byte that is not zero.
template <class Struct>
Struct read_struct(const Struct* theirs, const char* name) {
  Struct mine{};
  if (theirs == nullptr) return mine;
  const std::size_t their_bytes = theirs->struct_size;
  check_struct_bytes(their_bytes, name);
  std::memcpy(static_cast<void*>(&mine), theirs, their_bytes < sizeof(Struct) ? their_bytes : sizeof(Struct));
  const auto* bytes = reinterpret_cast<const unsigned char*>(theirs);
  for (std::size_t i = sizeof(Struct); i < their_bytes; ++i)
    ZC_REQUIRE(bytes[i] == 0, ZC_ARGUMENT,
               "%s has a member at byte %zu that this library (%zu bytes) does not know, and it is not zero", name, i,
               sizeof(Struct));
  mine.struct_size = sizeof(Struct);
  return mine;
}

// Writes as much of `mine` as the caller's struct holds, and zeros behind it. Throws Error(ARGUMENT) if struct_size was
// not set.
template <class Struct>
void write_struct(const Struct& mine, Struct* theirs, const char* name) {
  ZC_REQUIRE(theirs != nullptr, ZC_ARGUMENT, "%s is NULL", name);
  const std::size_t their_bytes = theirs->struct_size;
  check_struct_bytes(their_bytes, name);
  std::memcpy(static_cast<void*>(theirs), &mine, their_bytes < sizeof(Struct) ? their_bytes : sizeof(Struct));
  if (their_bytes > sizeof(Struct))
    std::memset(reinterpret_cast<unsigned char*>(theirs) + sizeof(Struct), 0, their_bytes - sizeof(Struct));
  theirs->struct_size = their_bytes;
}

}  // namespace zerocomm::capi
