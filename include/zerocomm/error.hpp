/**
 * The exception of the C++ twins.
 *
 * The twins (*.hpp, namespace zc) are the C API for C++20: handles that destroy themselves, spans in place of pointer and
 * count, dtypes taken from element types, statuses thrown. They are inline code over the exported C functions, so a program
 * may mix both, and no C++ symbol is part of the library's binary interface.
 */
#pragma once

#include <zerocomm/status.h>

#include <stdexcept>
#include <string>

namespace zc {

/** What every function of the twins throws, beside std::bad_alloc: a status and its text, "MISMATCH: ...". */
class Error : public std::runtime_error {
 public:
  Error(zc_status status, const std::string &text)
      : std::runtime_error(std::string(zc_status_name(status)) + ": " + text), status_(status) {}

  zc_status status() const noexcept { return status_; }
  /** What the error ends. */
  zc_scope scope() const noexcept { return zc_status_scope(status_); }
  /** Whether the communicator may be used afterwards. */
  bool comm_usable() const noexcept { return zc_status_comm_usable(status_) != 0; }

 private:
  zc_status status_;
};

/** Throw if a call of the C API has failed, with the text of this thread's last error. */
inline void check(zc_status status) {
  if (status != ZC_OK) throw Error(status, zc_last_error());
}

}  // namespace zc
