// How the library reports failure inside itself.
//
// Set-up code (create, parse, build, verify) throws Error; the C boundary in src/capi is the only
// place that catches. The data path is noexcept: it records a text with fail() and returns the status.
#pragma once

#include <zerocomm/status.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace zerocomm {

// A status with the text that explains it: what was asked, what was found, on which rank.
class Error : public std::runtime_error {
 public:
  Error(zc_status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  zc_status status() const noexcept { return status_; }

 private:
  zc_status status_;
};

// printf into a std::string; the compiler checks the format.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

// Makes `text` the last error of this thread and returns `status`. Never allocates.
zc_status record_error(zc_status status, const char* text) noexcept;

// printf into the last error of this thread; returns `status`. Never allocates.
[[gnu::format(printf, 2, 3)]] zc_status fail(zc_status status, const char* pattern, ...) noexcept;

}  // namespace zerocomm

// Set-up code: throws Error(status, text) unless the condition holds.
#define ZC_REQUIRE(condition, status, ...)                                              \
  do {                                                                                  \
    if (!(condition)) throw ::zerocomm::Error(status, ::zerocomm::format(__VA_ARGS__)); \
  } while (0)

// Data path: returns from the enclosing function with the status of `expression` unless it is ZC_OK.
#define ZC_TRY(expression)                                                                             \
  do {                                                                                                 \
    if (const zc_status zc_try_status_ = (expression); zc_try_status_ != ZC_OK) return zc_try_status_; \
  } while (0)

// A condition that only a defect of the library can break.
#define ZC_ASSERT(condition)                                                                                 \
  do {                                                                                                       \
    if (!(condition))                                                                                        \
      throw ::zerocomm::Error(ZC_INTERNAL, ::zerocomm::format("%s:%d: %s", __FILE__, __LINE__, #condition)); \
  } while (0)
