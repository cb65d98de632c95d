// What a rank throws when it finds something wrong. A rank may be a thread or another process, so assertions of the
// test framework do not belong there: the text travels, and whoever runs the ranks reports it.
#pragma once

#include "base/check.hpp"

#include <zerocomm/status.h>

#include <stdexcept>
#include <string>

namespace zerocomm::test {

class RankFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void check_status(zc_status found, zc_status wanted, const char* file, int line, const char* what) {
  if (found == wanted) return;
  throw RankFailure(format("%s:%d: %s gave %s, not %s; last error: %s", file, line, what, zc_status_name(found),
                           zc_status_name(wanted), zc_last_error()));
}

inline void check_text(const std::string& text, const std::string& part, const char* file, int line) {
  if (text.find(part) == std::string::npos)
    throw RankFailure(format("%s:%d: \"%s\" is not in \"%s\"", file, line, part.c_str(), text.c_str()));
}

}  // namespace zerocomm::test

// In the code of a rank: the condition holds, or this rank has failed with the printf text.
#define RANK_CHECK(condition, ...)                                                                            \
  do {                                                                                                        \
    if (!(condition))                                                                                         \
      throw ::zerocomm::test::RankFailure(::zerocomm::format("%s:%d: %s: ", __FILE__, __LINE__, #condition) + \
                                          ::zerocomm::format(__VA_ARGS__));                                   \
  } while (0)

// The call returns ZC_OK, or that status.
#define RANK_OK(call) ::zerocomm::test::check_status((call), ZC_OK, __FILE__, __LINE__, #call)
#define RANK_STATUS(wanted, call) ::zerocomm::test::check_status((call), (wanted), __FILE__, __LINE__, #call)

// The last error of this thread says `part`.
#define RANK_ERROR_SAYS(part) ::zerocomm::test::check_text(zc_last_error(), (part), __FILE__, __LINE__)
